package io.icebergcrypto.format;

import com.google.gson.JsonParser;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Reads JSON strictly, and writes its canonical form at once: members in the order of their names,
 * no white space, numbers as they are. Metadata of megabytes is read with each load of a table, so
 * most bytes are copied as they are, and members are sorted where their object ends.
 */
public final class CanonicalJsonReader {
  /** More than any metadata has, and far less than would overflow the stack. */
  public static final int MAX_DEPTH = 200;

  private static final int LONGEST_NUMBER = 1000; // Gson reads hardly longer ones

  /** Objects with no more members are sorted without objects for these. */
  private static final int FEW = 40;

  /** For each member of the objects that are being read: its start, its name's end, its end. */
  private static final int PER_MEMBER = 3;

  /** The bytes of a string that stand for themselves. */
  private static final boolean[] PLAIN = new boolean[256];

  static {
    Arrays.fill(PLAIN, ' ', 0x80, true);
    PLAIN['"'] = false;
    PLAIN['\\'] = false;
  }

  private final byte[] in;
  private int at = 0; // in it
  private byte[] out;
  private int end = 0; // of what is in out
  private byte[] moved = new byte[0];
  private int[] marks = new int[64 * PER_MEMBER];
  private int marked = 0;
  private boolean plain; // whether the string that was read last is ASCII without escapes
  private final Map<Integer, String> names = new HashMap<>(); // those that are not, by their start

  /**
   * A member of an object.
   *
   * @param bytes the form of the whole document
   * @param start where the member's is in it, with its name
   * @param value where that of its value is
   * @param end its end
   * @param below the members of its value, where these are listed; else null
   */
  public record Member(
      String name, byte[] bytes, int start, int value, int end, List<Member> below) {}

  /**
   * Reads nothing yet.
   *
   * @param in a document in UTF-8
   */
  public CanonicalJsonReader(byte[] in) {
    this.in = in;
    this.out = new byte[in.length + 64];
  }

  /**
   * The members of the document, which must be an object.
   *
   * @param listed the one whose own members are listed, too, if it is an object
   * @throws IllegalArgumentException when it is not a JSON object in UTF-8, is nested too deeply,
   *     or an object in it has two members of one name
   */
  public List<Member> read(String listed) {
    if (in.length > 2
        && (in[0] & 0xff) == 0xef
        && (in[1] & 0xff) == 0xbb
        && (in[2] & 0xff) == 0xbf) {
      at = 3; // a byte order mark
    }

    if (next() != '{') {
      throw wrong("it is not a JSON object");
    }

    List<Member> members = list(0, listed);
    if (next() >= 0) {
      throw unexpected();
    }

    return members;
  }

  /** The members of an object, which stay where they are. */
  private List<Member> list(int depth, String listed) {
    int base = marked;
    Map<String, List<Member>> below = new HashMap<>();
    int c = next();
    while (c != '}') {
      int mark = name(c);
      c = next();
      String name = nameOf(mark);
      if (c == '{' && name.equals(listed)) {
        below.put(name, list(depth + 1, null));
      } else {
        value(c, depth + 1);
      }

      marks[mark + 2] = end;
      c = separator('}');
    }

    sort(base);
    List<Member> members = new ArrayList<>();
    for (int mark = base; mark < marked; mark += PER_MEMBER) {
      String name = nameOf(mark);
      members.add(
          new Member(
              name, out, marks[mark], marks[mark + 1] + 1, marks[mark + 2], below.get(name)));
    }

    marked = base;
    return members;
  }

  private void value(int c, int depth) {
    if (depth > MAX_DEPTH) {
      throw wrong("its JSON is nested too deeply");
    }

    switch (c) {
      case '{' -> object(depth);
      case '[' -> array(depth);
      case '"' -> string();
      case 't' -> literal("true");
      case 'f' -> literal("false");
      case 'n' -> literal("null");
      default -> number(c);
    }
  }

  private void array(int depth) {
    put('[');
    int c = next();
    boolean first = true;
    while (c != ']') {
      if (!first) {
        put(',');
      }

      first = false;
      value(c, depth + 1);
      c = separator(']');
    }

    put(']');
  }

  private void object(int depth) {
    int base = marked;
    put('{');
    int start = end;
    int c = next();
    while (c != '}') {
      if (end > start) {
        put(',');
      }

      int mark = name(c);
      value(next(), depth + 1);
      marks[mark + 2] = end;
      c = separator('}');
    }

    if (sort(base)) {
      moved = moved.length < end - start ? new byte[2 * (end - start)] : moved;
      System.arraycopy(out, start, moved, 0, end - start);
      end = start;
      for (int mark = base; mark < marked; mark += PER_MEMBER) {
        if (end > start) {
          out[end++] = ',';
        }

        int length = marks[mark + 2] - marks[mark];
        System.arraycopy(moved, marks[mark] - start, out, end, length);
        end += length;
      }
    }

    marked = base;
    put('}');
  }

  /** What follows a value: the end, or the first character behind a comma, which no end is. */
  private int separator(char close) {
    int c = next();
    if (c == close) {
      return c;
    } else if (c != ',') {
      throw unexpected();
    }

    c = next();
    if (c == close) {
      throw unexpected();
    }

    return c;
  }

  /** Reads a name, and the colon; returns its mark. */
  private int name(int c) {
    if (c != '"') {
      throw unexpected();
    }

    int mark = marked;
    marked += PER_MEMBER;
    if (marked > marks.length) {
      marks = Arrays.copyOf(marks, 2 * marks.length);
    }

    marks[mark] = end;
    string();
    marks[mark + 1] = end;
    if (!plain) {
      names.put(
          end,
          unescaped(
              new String(out, marks[mark] + 1, end - marks[mark] - 2, StandardCharsets.UTF_8)));
    }

    if (next() != ':') {
      throw unexpected();
    }

    put(':');
    return mark;
  }

  private String nameOf(int mark) {
    String special = names.get(marks[mark + 1]);
    return special != null
        ? special
        : new String(
            out, marks[mark] + 1, marks[mark + 1] - marks[mark] - 2, StandardCharsets.US_ASCII);
  }

  /**
   * Puts the marks of an object's members in the order of their names.
   *
   * @return whether they were in another one
   */
  private boolean sort(int base) {
    int from = base + PER_MEMBER;
    while (from < marked && compare(from - PER_MEMBER, from) < 0) {
      from += PER_MEMBER;
    }

    if (from >= marked) {
      return false;
    }

    if (marked - base <= FEW * PER_MEMBER) {
      insert(base, from);
    } else {
      int[] before = Arrays.copyOfRange(marks, base, marked);
      int[] order =
          IntStream.iterate(base, mark -> mark < marked, mark -> mark + PER_MEMBER)
              .boxed()
              .sorted(this::compare)
              .mapToInt(mark -> mark - base)
              .toArray();
      for (int i = 0; i < order.length; i++) {
        System.arraycopy(before, order[i], marks, base + i * PER_MEMBER, PER_MEMBER);
      }
    }

    for (int mark = base + PER_MEMBER; mark < marked; mark += PER_MEMBER) {
      if (compare(mark - PER_MEMBER, mark) == 0) {
        throw wrong("two members have one name: " + nameOf(mark));
      }
    }

    return true;
  }

  /** Insertion sort of those from a mark on; the ones before are sorted. */
  private void insert(int base, int from) {
    int[] one = new int[PER_MEMBER];
    for (int mark = from; mark < marked; mark += PER_MEMBER) {
      int to = mark;
      while (to > base && compare(to - PER_MEMBER, mark) > 0) {
        to -= PER_MEMBER;
      }

      System.arraycopy(marks, mark, one, 0, PER_MEMBER);
      System.arraycopy(marks, to, marks, to + PER_MEMBER, mark - to);
      System.arraycopy(one, 0, marks, to, PER_MEMBER);
    }
  }

  /** As {@link String#compareTo}: by UTF-16, which bytes have the same order as for ASCII only. */
  private int compare(int a, int b) {
    boolean bytes =
        names.isEmpty() || !names.containsKey(marks[a + 1]) && !names.containsKey(marks[b + 1]);
    int first = out[marks[a] + 1] - out[marks[b] + 1];
    if (bytes && first != 0 && out[marks[a] + 1] > '"' && out[marks[b] + 1] > '"') {
      return first;
    }

    return bytes
        ? Arrays.compare(out, marks[a] + 1, marks[a + 1] - 1, out, marks[b] + 1, marks[b + 1] - 1)
        : nameOf(a).compareTo(nameOf(b));
  }

  /** Reads a string behind its first quotation mark. */
  private void string() {
    put('"');
    plain = true;
    while (true) {
      int from = at;
      while (at < in.length && PLAIN[in[at] & 0xff]) {
        at++;
      }

      reserve(at - from);
      System.arraycopy(in, from, out, end, at - from);
      end += at - from;
      int c = take();
      if (c == '"') {
        put('"');
        return;
      }

      plain = false;
      if (c == '\\') {
        escape();
      } else if (c >= 0x80) {
        unicode(c);
      } else {
        throw unexpected();
      }
    }
  }

  /** Copies a character of several bytes, which must be well-formed (Unicode, table 3-7). */
  private void unicode(int first) {
    int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (first < 0xc2 || first > 0xf4) {
      throw notUtf8();
    }

    int code = first & (0x3f >> more);
    for (int i = 0; i < more; i++) {
      int c = take();
      boolean isWrong =
          (c & 0xc0) != 0x80
              || i == 0
                  && (first == 0xe0 && c < 0xa0
                      || first == 0xed && c > 0x9f
                      || first == 0xf0 && c < 0x90
                      || first == 0xf4 && c > 0x8f);
      if (isWrong) {
        throw notUtf8();
      }

      code = code << 6 | c & 0x3f;
    }

    write(code);
  }

  private void escape() {
    int c = take();
    switch (c) {
      case '"', '\\', '/' -> write(c);
      case 'b' -> write('\b');
      case 'f' -> write('\f');
      case 'n' -> write('\n');
      case 'r' -> write('\r');
      case 't' -> write('\t');
      case 'u' -> write(codePoint());
      default -> throw unexpected();
    }
  }

  private int codePoint() {
    char unit = (char) hexDigits();
    if (!Character.isSurrogate(unit)) {
      return unit;
    }

    if (Character.isHighSurrogate(unit) && take() == '\\' && take() == 'u') {
      char low = (char) hexDigits();
      if (Character.isLowSurrogate(low)) {
        return Character.toCodePoint(unit, low);
      }
    }

    throw wrong("it has text that is not Unicode");
  }

  private int hexDigits() {
    int value = 0;
    for (int i = 0; i < 4; i++) {
      int digit = Character.digit((char) take(), 16);
      if (digit < 0) {
        throw unexpected();
      }

      value = value << 4 | digit;
    }

    return value;
  }

  /** Writes a character as it is in the canonical form. */
  private void write(int code) {
    String escaped = escaped(code);
    if (escaped == null && code < 0x80) {
      put(code);
    } else {
      String text = escaped == null ? Character.toString(code) : escaped;
      for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
        put(b);
      }
    }
  }

  /** What the canonical form has in place of a character; null: the character. */
  private static String escaped(int code) {
    return switch (code) {
      case '"' -> "\\\"";
      case '\\' -> "\\\\";
      case '\b' -> "\\b";
      case '\f' -> "\\f";
      case '\n' -> "\\n";
      case '\r' -> "\\r";
      case '\t' -> "\\t";
      case 0x2028, 0x2029 -> String.format("\\u%04x", code);
      default -> code < ' ' ? String.format("\\u%04x", code) : null;
    };
  }

  /** The name that is written so. */
  private static String unescaped(String canonical) {
    return JsonParser.parseString('"' + canonical + '"').getAsString();
  }

  private void literal(String text) {
    put(text.charAt(0));
    for (int i = 1; i < text.length(); i++) {
      if (take() != text.charAt(i)) {
        throw unexpected();
      }

      put(text.charAt(i));
    }
  }

  private void number(int first) {
    int from = at - 1;
    int c = first == '-' ? take() : first;
    if (c < '0' || c > '9') {
      throw unexpected();
    }

    if (c != '0') {
      digits();
    }

    if (peek() == '.') {
      at++;
      requireDigits();
    }

    if (peek() == 'e' || peek() == 'E') {
      at++;
      if (peek() == '+' || peek() == '-') {
        at++;
      }

      requireDigits();
    }

    if (at - from > LONGEST_NUMBER) {
      throw wrong("it has a number of " + (at - from) + " characters");
    }

    reserve(at - from);
    System.arraycopy(in, from, out, end, at - from);
    end += at - from;
  }

  private void requireDigits() {
    int from = at;
    digits();
    if (at == from) {
      throw unexpected();
    }
  }

  private void digits() {
    while (peek() >= '0' && peek() <= '9') {
      at++;
    }
  }

  private int peek() {
    return at < in.length ? in[at] : -1;
  }

  private int take() {
    if (at == in.length) {
      throw wrong("it is not JSON: it ends early");
    }

    return in[at++] & 0xff;
  }

  /** The next character that is not white space; -1: the end. */
  private int next() {
    while (at < in.length) {
      int c = in[at++] & 0xff;
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
        return c;
      }
    }

    return -1;
  }

  private void put(int b) {
    reserve(1);
    out[end++] = (byte) b;
  }

  private void reserve(int more) {
    if (end + more > out.length) {
      out = Arrays.copyOf(out, Math.max(2 * out.length, end + more));
    }
  }

  private IllegalArgumentException unexpected() {
    return wrong("it is not JSON, at byte " + at);
  }

  private static IllegalArgumentException notUtf8() {
    return wrong("it is not JSON: it is not UTF-8");
  }

  private static IllegalArgumentException wrong(String problem) {
    return new IllegalArgumentException(problem);
  }
}
