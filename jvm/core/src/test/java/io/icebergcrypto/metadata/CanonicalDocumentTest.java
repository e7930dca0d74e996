package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Fuzz;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The canonical form that is made in one pass is that of the document that is read as a tree. */
class CanonicalDocumentTest {
  private static final String START = "{\"file-version\":7,\"folder\":\"/ü\",\"metadata\":";

  private static final String[] VALID = {
    "{}",
    " { \"b\" : [ 1 , 2.50, -0, 1E+2, {\"x\": \"\\u00fc\"} ], \"a\": {\"t\": true, \"n\": null} } ",
    "{\"properties\": {\"z\": \"\", \"a\\\"b\": \"\\/\\\\\\b\\f\\n\\r\\t\\u001f\\u007f\\u2028\"},"
        + " \"e\": [], \"d\": {}, \"c\": null, \"b\": [[[]]], \"a\": false}",
    // in UTF-16 the first comes first, in UTF-8 the second
    "{\"\ufffd\": 1, \"\ud83d\ude00\": \"\\ud83d\\ude00 \u2029\", \"\u00e9\": 3, \"e\\u0301\": 4}",
    "{\"snapshots\": [{\"snapshot-id\": 9007199254740993, \"summary\": {\"operation\": \"append\","
        + " \"added\": \"1\"}, \"key-id\": \"k\"}], \"properties\": [1], \"b\\u0000\": {\"\": 1}}",
  };

  private static final String[] INVALID = {
    "",
    "1",
    "[{}]",
    "{} {}",
    "{\"a\": 1,}",
    "{\"a\": [1,]}",
    "{\"a\": [,1]}",
    "{,\"a\": 1}",
    "{\"a\": 1 \"b\": 2}",
    "{\"a\" 1}",
    "{a: 1}",
    "{\"a\": 1, \"\\u0061\": 2}",
    "{\"s\": [{\"ü\": 1, \"\\u00fc\": 2}]}",
    "{\"a\": 01}",
    "{\"a\": +1}",
    "{\"a\": 1.}",
    "{\"a\": .5}",
    "{\"a\": 1e}",
    "{\"a\": -}",
    "{\"a\": NaN}",
    "{\"a\": True}",
    "{\"a\": nul}",
    "{\"a\": 'b'}",
    "{\"a\": \"\t\"}",
    "{\"a\": \"\\x41\"}",
    "{\"a\": \"\\u00g0\"}",
    "{\"a\": \"\\ud800\"}",
    "{\"a\": \"\\ud800\\u0041\"}",
    "{\"a\": \"\\udc00\"}",
    "{\"a\": \"b",
    "{\"a\": /**/ 1}",
  };

  /** By the tree; null when it is refused. */
  private static String expected(byte[] json) {
    try {
      String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(json)).toString();
      String form = CanonicalJson.canonical(CanonicalJson.parse(text));
      StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(form));
      return START + form + "}";
    } catch (CharacterCodingException | IllegalArgumentException e) {
      return null;
    }
  }

  private static String form(CanonicalDocument document) {
    byte[] written = new byte[1 << 20];
    ByteBuffer out = ByteBuffer.wrap(written);
    document.writeAfter(7, "/ü", out::put);
    return new String(written, 0, out.position(), StandardCharsets.UTF_8);
  }

  private static String actual(byte[] json) {
    try {
      return form(CanonicalDocument.parse(json));
    } catch (IllegalArgumentException e) {
      return null;
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void itIsThatOfTheTree() {
    for (String json : VALID) {
      assertThat(actual(bytes(json))).as(json).isNotNull().isEqualTo(expected(bytes(json)));
      assertThat(actual(bytes("\ufeff" + json))).isEqualTo(expected(bytes(json)));
    }

    List<Integer> numbers = new ArrayList<>(IntStream.range(0, 500).boxed().toList());
    Collections.shuffle(numbers, new Random(Fuzz.SEED));
    String many = // an object with many members, in one with many members, not in order
        numbers.stream()
            .map(n -> "\"" + n + (n % 7 == 0 ? "\\n" : "") + "\": {\"b\": " + n + ", \"a\": 1}")
            .collect(Collectors.joining(",", "{\"z\": {", "}, \"a\": 0}"));
    assertThat(actual(bytes(many))).isNotNull().isEqualTo(expected(bytes(many)));
  }

  @Test
  void whatTheTreeRefusesIsRefused() {
    for (String json : INVALID) {
      assertThat(expected(bytes(json))).as(json).isNull();
      assertThat(actual(bytes(json))).as(json).isNull();
    }

    for (int depth : new int[] {198, 199, 200, 201, 100_000}) {
      byte[] nested = bytes("{\"a\":" + "[".repeat(depth) + "]".repeat(depth) + "}");
      assertThat(actual(nested)).as("%d", depth).isEqualTo(expected(nested));
    }

    for (int second : new int[] {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0}) {
      for (int first = 0x80; first < 0x100; first++) {
        for (int length = 2; length <= 4; length++) {
          byte[] json = bytes("{\"a\": \"    \"}");
          json[7] = (byte) first;
          json[8] = (byte) second;
          for (int i = 2; i < length; i++) {
            json[7 + i] = (byte) 0x80;
          }

          assertThat(actual(json)).isEqualTo(expected(json));
        }
      }
    }
  }

  @Test
  void hostileDocuments() {
    Fuzz.run(
        1,
        round -> {
          byte[] json = round.mutated(bytes(round.oneOf(VALID)));
          String form = actual(json);
          assertThat(form).isEqualTo(expected(json));
          return form != null;
        });
  }

  @Test
  void membersCanBeLeftOut() {
    CanonicalDocument all = CanonicalDocument.parse(bytes(VALID[2]));
    assertThat(form(all.withoutProperties(Set.of("z"))))
        .contains("\"properties\":{\"a\\\"b\":\"/\\\\\\b\\f\\n\\r\\t\\u001f\u007f\\u2028\"}");
    CanonicalDocument none = all.withoutProperties(Set.of("z", "a\"b"));
    assertThat(form(none)).endsWith(",\"e\":[],\"properties\":{}}}");
    assertThat(all.isSame(CanonicalDocument.parse(bytes(VALID[2])))).isTrue();
    assertThat(all.isSame(none)).isFalse();
    assertThat(none.isSame(CanonicalDocument.parse(bytes(VALID[0])))).isFalse();
  }
}
