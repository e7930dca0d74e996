package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.icebergcrypto.metadata.MetadataPlace;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.stream.Collectors;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

/**
 * The MAC of metadata, as {@code tests/vectors/metadata-macs.json} has it for other programs;
 * {@code tests/unit/test_metadata_macs.py} is one. With {@code ICEBERG_CRYPTO_WRITE_VECTORS=1} in
 * the environment this test writes the file.
 */
class MacVectorsTest {
  private static final Path FILE =
      Path.of(System.getProperty("iceberg.crypto.root"), "tests/vectors/metadata-macs.json");
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
  private static final String PLACE = "s3://b/t/metadata/00007-x.metadata.json";
  private static final String[] KEKS = {
    "000102030405060708090a0b0c0d0e0f",
    "000102030405060708090a0b0c0d0e0f1011121314151617",
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  };
  private static final String MEMBER = "\"encryption.metadata-mac\":";

  private final JsonArray vectors = new JsonArray();

  @Test
  void theVectorsAreThoseOfThisCode() throws IOException {
    everyDocument();
    everyPlace();
    JsonObject file = new JsonObject();
    file.addProperty("format", "v3.hmac-sha256");
    file.add("vectors", vectors);
    // a line for each; in ASCII, so that no editor changes what looks like white space
    String text =
        ascii(new GsonBuilder().disableHtmlEscaping().create().toJson(file))
            .replace("{\"what\"", "\n{\"what\"");
    if ("1".equals(System.getenv("ICEBERG_CRYPTO_WRITE_VECTORS"))) {
      Files.writeString(FILE, text + "\n");
    }

    assertThat(JsonParser.parseString(Files.readString(FILE))).isEqualTo(file);
    assertThat(vectors.size()).isGreaterThan(12);
  }

  private void everyDocument() {
    add("nothing but the MAC", "{\"properties\":{" + MEMBER + "\"any\"}}");
    add("another one before", "{\"properties\":{" + MEMBER + "\"v3.hmac-sha256.6.00.kek\"}}");
    add("quotes in the one before", "{\"properties\":{" + MEMBER + "\"a\\\"b\\\\\"}}");
    add(
        "its name in a string",
        "{\"a\":\"\\\"encryption.metadata-mac\\\":\\\"x\",\"properties\":{" + MEMBER + "\"\"}}");
    add(
        "its name behind it",
        "{\"properties\":{"
            + MEMBER
            + "\"\"},\"snapshots\":[{\"summary\":{"
            + MEMBER
            + "\"1\"}}]}");
    add("white space elsewhere", "{ \"properties\" :\n{ \"a\": 1,\t" + MEMBER + "\"\"} }");
    add("not ASCII", "{\"properties\":{\"a\":\"\u00fc\u20ac\ud834\udd1e\"," + MEMBER + "\"\"}}");
    add(
        "a table",
        "{\"format-version\":3,\"table-uuid\":\""
            + UUID
            + "\",\"location\":\"s3://b/t\",\"last-updated-ms\":1700000000000,"
            + "\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\","
            + "\"required\":true,\"type\":\"long\"}]}],\"properties\":{\"encryption.key-id\":\"k1\","
            + MEMBER
            + "\"\",\"owner\":\"\u00c5sa\"},\"current-snapshot-id\":null,\"refs\":{},"
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
      add("a file at " + file, file, "{\"properties\":{" + MEMBER + "\"\"}}");
    }
  }

  private void add(String what, String document) {
    add(what, PLACE, document);
  }

  private void add(String what, String file, String text) {
    String kek = KEKS[vectors.size() % KEKS.length];
    MetadataPlace place = MetadataPlace.of(file);
    SecretKeySpec key = MetadataMac.key(ByteBuffer.wrap(HexFormat.of().parseHex(kek)), UUID);
    byte[] json = text.getBytes(StandardCharsets.UTF_8);
    byte[] signed = MetadataMac.make(json, place, key, "kek").putInto(json);
    JsonObject vector = new JsonObject();
    vector.addProperty("what", what);
    vector.addProperty("file", file);
    vector.addProperty("kek", kek);
    vector.addProperty("table-uuid", UUID);
    vector.addProperty("document", text);
    vector.addProperty("signed", new String(signed, StandardCharsets.UTF_8));
    vectors.add(vector);
  }

  private static String ascii(String json) {
    return json.chars()
        .mapToObj(c -> c < 128 ? String.valueOf((char) c) : String.format("\\u%04x", c))
        .collect(Collectors.joining());
  }
}
