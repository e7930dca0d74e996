package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.icebergcrypto.metadata.CanonicalDocument;
import io.icebergcrypto.metadata.MetadataPlace;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.iceberg.util.ByteBuffers;
import org.junit.jupiter.api.Test;

/**
 * The canonical form and the MAC of metadata, as {@code tests/vectors/metadata-macs.json} has them
 * for other programs; {@code tests/unit/test_metadata_macs.py} is one. With {@code
 * ICEBERG_CRYPTO_WRITE_VECTORS=1} in the environment this test writes the file.
 */
class CanonicalFormTest {
  private static final Path FILE =
      Path.of(System.getProperty("iceberg.crypto.root"), "tests/vectors/metadata-macs.json");
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
  private static final String PLACE = "s3://b/t/metadata/00007-x.metadata.json";
  private static final String[] KEKS = {
    "000102030405060708090a0b0c0d0e0f",
    "000102030405060708090a0b0c0d0e0f1011121314151617",
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  };

  private final JsonArray vectors = new JsonArray();

  @Test
  void theVectorsAreThoseOfThisCode() throws IOException {
    everyForm();
    everyPlace();
    JsonObject file = new JsonObject();
    file.addProperty("format", "v2.hmac-sha256");
    file.add("vectors", vectors);
    file.add("refused", refused());
    // a line for each; in ASCII, so that no editor changes what looks like white space
    String text =
        ascii(new GsonBuilder().disableHtmlEscaping().create().toJson(file))
            .replace("{\"what\"", "\n{\"what\"")
            .replace("],\"refused\"", "],\n\"refused\"");
    if ("1".equals(System.getenv("ICEBERG_CRYPTO_WRITE_VECTORS"))) {
      Files.writeString(FILE, text + "\n");
    }

    assertThat(JsonParser.parseString(Files.readString(FILE))).isEqualTo(file);
    assertThat(vectors.size()).isGreaterThan(20);
  }

  private void everyForm() {
    add("nothing", "{}");
    add("white space and order", "{ \"b\" : 1 ,\n\t\"a\":\r\n2, \"aa\":3, \"A\":4, \"\":5 }");
    add(
        "the MAC is left out",
        "{\"properties\":{\"encryption.metadata-mac\":\"any\",\"p\":\"1\"}}");
    add("nothing but the MAC", "{\"properties\":{\"encryption.metadata-mac\":\"any\"}}");
    add(
        "elsewhere it is not left out",
        "{\"encryption.metadata-mac\":\"1\",\"x\":{\"properties\":{\"encryption.metadata-mac\":1}}}");
    add("properties that are no object", "{\"properties\":\"text\"}");
    add(
        "empty values",
        "{\"a\":[],\"b\":{},\"c\":\"\",\"d\":null,\"e\":[[],{}],\"f\":{\"\":\"\"}}");
    add("booleans", "{\"no\":false,\"yes\":true}");
    add(
        "integers",
        "{\"a\":[0,-0,-1,9007199254740993,9223372036854775807,-9223372036854775808],"
            + "\"b\":123456789012345678901234567890}");
    add("other numbers", "{\"a\":[0.1,1.50,1E2,1e+2,1e-7,-0.0,100.0,2.2250738585072014E-308]}");
    add(
        "nesting",
        "{\"z\":[{\"y\":[1,[2,{\"x\":{\"w\":[]}}]]},[[[[\"deep\"]]]]],\"a\":{\"b\":{\"c\":0}}}");
    add("nested 199 deep", "{\"a\":" + "[".repeat(199) + "]".repeat(199) + "}");
    add(
        "control characters",
        "{\"a\":\"" + escapes(0, 32) + "\",\"b\":\"\\u007f\\u0080\\u009f\\u00a0\"}");
    add(
        "control characters in names",
        "{"
            + IntStream.range(0, 32)
                .mapToObj(c -> String.format("\"n\\u%04x\":%d", c, c))
                .collect(Collectors.joining(","))
            + "}");
    add("short escapes", "{\"a\":\"\\b\\f\\n\\r\\t\\\"\\\\\\/\"}");
    add("line separators", "{\"a\":\"\u2027\u2028\u2029\u202a\",\"\u2028\":\"\\u2028\\u2029\"}");
    add("not escaped", "{\"a\":\"<>&'=/\\u0041\\u003c\u00fc\u20ac\ufeff\"}");
    add(
        "surrogate pairs",
        "{\"a\":\"\\ud834\\udd1e \ud834\udd1e\",\"\ud83d\ude00\":\"\\uD83D\\uDE00\"}");
    add(
        "names by UTF-16, not by code points",
        "{\"\uff5e\":1,\"\ud800\udc00\":2,\"\ue000\":3,\"\ud7ff\":4,\"\uff5e\ud800\udc00\":5,\"a\":6,\"\u00e4\":7,\"\ud800\udc00\uff5e\":8}");
    add("combining characters stay", "{\"\u00e9\":1,\"e\u0301\":2}");
    add(
        "a table",
        "{\"format-version\":3,\"table-uuid\":\""
            + UUID
            + "\",\"location\":\"s3://b/t\",\"last-updated-ms\":1700000000000,"
            + "\"properties\":{\"encryption.key-id\":\"k1\",\"owner\":\"\u00c5sa\"},"
            + "\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\","
            + "\"required\":true,\"type\":\"long\"}]}],\"current-snapshot-id\":null,\"refs\":{},"
            + "\"encryption-keys\":[{\"key-id\":\"kek\",\"encrypted-key-metadata\":\"AAECAw==\","
            + "\"encrypted-by-id\":\"k1\",\"properties\":{\"KEY_TIMESTAMP\":\"1700000000000\"}}]}");
  }

  private void everyPlace() {
    for (String file :
        new String[] {
          "s3a://bucket/db/t/metadata/00000-x.metadata.json",
          "hdfs://name-node:8020/w/t/metadata/v12.metadata.json",
          "hdfs:///w/t/metadata/v12.gz.metadata.json",
          "viewfs://cluster/w/t/metadata/v1.metadata.json",
          "file:/w/t/metadata/v1.metadata.json",
          "file:///w/t/metadata/v1.metadata.json",
          "/w/t/metadata/v1.metadata.json",
          "abfss://box@account.dfs.core.windows.net/t/metadata/12345-x.gz.metadata.json",
          "gs://b\u00fccket/t \u2028/metadata/00010-x.metadata.json"
        }) {
      add("a file at " + file, file, "{\"a\":1}");
    }
  }

  private static String signed(CanonicalDocument document, MetadataPlace place) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    document
        .withoutProperties(Set.of("encryption.metadata-mac"))
        .writeAfter(
            place.version(),
            place.folder(),
            bytes -> out.writeBytes(ByteBuffers.toByteArray(bytes)));
    return out.toString(StandardCharsets.UTF_8);
  }

  private static String escapes(int from, int to) {
    return IntStream.range(from, to)
        .mapToObj(c -> String.format("\\u%04X", c))
        .collect(Collectors.joining());
  }

  private void add(String what, String document) {
    add(what, PLACE, document);
  }

  private void add(String what, String file, String text) {
    String kek = KEKS[vectors.size() % KEKS.length];
    MetadataPlace place = MetadataPlace.of(file);
    CanonicalDocument document = CanonicalDocument.parse(text.getBytes(StandardCharsets.UTF_8));
    MetadataMac mac =
        MetadataMac.of(
            document,
            place,
            MetadataMac.key(ByteBuffer.wrap(HexFormat.of().parseHex(kek)), UUID),
            "kek");
    JsonObject vector = new JsonObject();
    vector.addProperty("what", what);
    vector.addProperty("file", file);
    vector.addProperty("document", text);
    vector.addProperty("kek", kek);
    vector.addProperty("table-uuid", UUID);
    vector.addProperty("canonical", signed(document, place));
    vector.addProperty("value", mac.value());
    vectors.add(vector);
  }

  /** Documents of which no MAC is made. */
  private static JsonArray refused() {
    JsonArray all = new JsonArray();
    for (String document :
        new String[] {
          "",
          "[]",
          "{} {}",
          "{\"a\":1,\"a\":1}",
          "{\"a\":1,\"\\u0061\":2}",
          "{\"a\":{\"b\":1,\"b\":2}}",
          "{\"a\":NaN}",
          "{\"a\":01}",
          "{\"a\":'b'}",
          "{\"a\":\"line\nbreak\"}",
          "{\"a\":1,}",
          "{\"a\":\"\\ud800\"}",
          "{\"\\udc00\":1}",
          "{\"a\":" + "[".repeat(201) + "]".repeat(201) + "}"
        }) {
      all.add(document);
      assertThatThrownBy(
              () ->
                  MetadataMac.of(
                      CanonicalDocument.parse(document.getBytes(StandardCharsets.UTF_8)),
                      MetadataPlace.of(PLACE),
                      MetadataMac.key(ByteBuffer.allocate(16), UUID),
                      "kek"))
          .as(document)
          .isInstanceOf(IllegalArgumentException.class);
    }

    return all;
  }

  private static String ascii(String json) {
    return json.chars()
        .mapToObj(c -> c < 128 ? String.valueOf((char) c) : String.format("\\u%04x", c))
        .collect(Collectors.joining());
  }
}
