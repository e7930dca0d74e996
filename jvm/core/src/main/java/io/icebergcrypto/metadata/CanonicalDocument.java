package io.icebergcrypto.metadata;

import com.google.gson.JsonObject;
import io.icebergcrypto.format.CanonicalJsonReader;
import io.icebergcrypto.format.CanonicalJsonReader.Member;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;

/**
 * Table metadata in the canonical form of {@link CanonicalJson}, made in one pass over the bytes of
 * its JSON. Its members can be left out, at the top and in the table's properties.
 */
public final class CanonicalDocument {
  private static final String PROPERTIES = "properties";

  private final List<Member> members; // sorted

  private CanonicalDocument(List<Member> members) {
    this.members = members;
  }

  /**
   * Reads a document.
   *
   * @throws IllegalArgumentException when it is not a JSON object in UTF-8, is nested too deeply,
   *     or an object in it has two members of one name
   */
  public static CanonicalDocument parse(byte[] json) {
    return new CanonicalDocument(new CanonicalJsonReader(json).read(PROPERTIES));
  }

  /**
   * The form of what a catalog that is given this metadata writes to its file.
   *
   * @throws IllegalArgumentException when it has text that is not Unicode
   */
  public static CanonicalDocument of(TableMetadata metadata) {
    return parse(encoded(TableMetadataParser.toJson(metadata)));
  }

  /** Half of a surrogate pair is an error, not a question mark. */
  private static byte[] encoded(String text) {
    try {
      ByteBuffer bytes =
          StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text.toCharArray()));
      return Arrays.copyOfRange(bytes.array(), bytes.position(), bytes.limit());
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("it has text that is not Unicode", e);
    }
  }

  /** The document without some of the table's properties. */
  public CanonicalDocument withoutProperties(Set<String> names) {
    return new CanonicalDocument(
        members.stream()
            .map(
                member ->
                    member.below() == null
                        ? member
                        : new Member(
                            member.name(),
                            member.bytes(),
                            member.start(),
                            member.value(),
                            member.end(),
                            member.below().stream()
                                .filter(below -> !names.contains(below.name()))
                                .toList()))
            .toList());
  }

  /** Writes what a MAC is made over, in canonical form: the place of a file, and the document. */
  public void writeAfter(int fileVersion, String folder, Consumer<ByteBuffer> out) {
    JsonObject place = new JsonObject();
    place.addProperty("file-version", fileVersion);
    place.addProperty("folder", folder);
    String start = CanonicalJson.canonical(place);
    write(start.substring(0, start.length() - 1) + ",\"metadata\":", out);
    write(members, out);
    write("}", out);
  }

  private static void write(List<Member> members, Consumer<ByteBuffer> out) {
    String separator = "{";
    for (Member member : members) {
      write(separator, out);
      separator = ",";
      if (member.below() == null) {
        out.accept(buffer(member));
      } else {
        out.accept(
            ByteBuffer.wrap(member.bytes(), member.start(), member.value() - member.start()));
        write(member.below(), out);
      }
    }

    write(members.isEmpty() ? "{}" : "}", out);
  }

  private static ByteBuffer buffer(Member member) {
    return ByteBuffer.wrap(member.bytes(), member.start(), member.end() - member.start());
  }

  private static void write(String text, Consumer<ByteBuffer> out) {
    out.accept(ByteBuffer.wrap(encoded(text)));
  }

  /** Whether another document has the same form. */
  public boolean isSame(CanonicalDocument other) {
    return isSame(members, other.members);
  }

  private static boolean isSame(List<Member> these, List<Member> others) {
    if (these.size() != others.size()) {
      return false;
    }

    for (int i = 0; i < these.size(); i++) {
      Member a = these.get(i);
      Member b = others.get(i);
      boolean same =
          a.below() == null || b.below() == null
              ? a.below() == b.below() && buffer(a).equals(buffer(b))
              : a.name().equals(b.name()) && isSame(a.below(), b.below());
      if (!same) {
        return false;
      }
    }

    return true;
  }
}
