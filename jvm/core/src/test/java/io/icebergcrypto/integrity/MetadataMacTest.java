package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.junit.jupiter.api.Test;

/** The MAC of metadata: what others must be able to compute again. */
class MetadataMacTest {
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";

  private static SecretKeySpec key() {
    byte[] kek = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");
    return MetadataMac.key(ByteBuffer.wrap(kek), UUID);
  }

  private static byte[] signed(byte[] json, MetadataPlace place, SecretKeySpec key) {
    return MetadataMac.make(json, place, key, "kek").putInto(json);
  }

  private static TableMetadata at(String location, Map<String, String> properties) {
    return TestLake.metadata(location, properties);
  }

  @Test
  void theKeyIsAsAnotherProgramDerivesIt() {
    // Python's hmac: HMAC(KEK, 00000001 || label || 00 || UUID || 00000100)
    assertThat(key().getEncoded())
        .asHexString()
        .isEqualToIgnoringCase("c85ef85202ad66c5f1f0f0ce0dbef3642edde6edbe96526890e210ca249cf35d");
  }

  @Test
  void aSignedDocumentIsReadWithItsCode() {
    TableMetadata metadata =
        TestLake.metadata(
            "s3://b/t",
            Map.of(
                "format-version",
                "3",
                "b",
                "\u00fc\"<\n\\\"encryption.metadata-mac\":\"x\"",
                "half",
                "\ud800",
                MetadataMac.PROPERTY,
                "an \"older\" one\\"));
    MetadataPlace place = new MetadataPlace("/b/t/metadata", 7);
    SecretKeySpec key = key();
    byte[] json = signed(CanonicalJson.written(metadata), place, key);
    TableMetadata signed = CanonicalJson.read(json);
    MetadataMac mac = MetadataMac.parse(signed.properties().get(MetadataMac.PROPERTY));
    assertThat(signed.properties()).containsEntry("half", "?");
    assertThat(signed.properties()).containsEntry("b", metadata.properties().get("b"));
    assertThat(signed.lastUpdatedMillis()).isEqualTo(metadata.lastUpdatedMillis());
    assertThat(mac.version()).isEqualTo(7);
    assertThat(mac.kekId()).isEqualTo("kek");
    assertThat(CanonicalJson.written(signed)).isEqualTo(json);
    assertThat(mac.matches(json, place, key)).isTrue();
    assertThat(mac.matches(json, new MetadataPlace("/b/t/metadata", 8), key)).isFalse();
    assertThat(mac.matches(json, new MetadataPlace("/b/u/metadata", 7), key)).isFalse();
  }

  /** Where the digits are, nothing else may be, as the MAC is made without them. */
  @Test
  void noByteIsAnother() {
    MetadataPlace place = new MetadataPlace("/b/t", 7);
    String text = "{\"properties\":{\"encryption.metadata-mac\":\"\",\"a\":\"b\"},\"c\":[]}";
    byte[] json = signed(text.getBytes(StandardCharsets.UTF_8), place, key());
    MetadataMac mac =
        MetadataMac.parse(
            CanonicalJson.parse(new String(json, StandardCharsets.UTF_8))
                .getAsJsonObject("properties")
                .get(MetadataMac.PROPERTY)
                .getAsString());
    assertThat(mac.matches(json, place, key())).isTrue();
    for (int at = 0; at < json.length; at++) {
      json[at] ^= 1;
      assertThat(mac.matches(json, place, key())).as("byte %d", at).isFalse();
      json[at] ^= 1;
    }
  }

  /** In UTF-8 half of a surrogate pair would become the question mark that was signed. */
  @Test
  void halfOfASurrogatePairIsNoQuestionMark() {
    TableMetadata metadata =
        TestLake.metadata("s3://b/t", Map.of("format-version", "3", "half", "\ud800"));
    assertThatThrownBy(() -> CanonicalJson.bytes(metadata))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void whatIsAmbiguousOrNoJsonIsRefused() {
    for (String text :
        new String[] {
          "{\"a\": 1, \"a\": 1}",
          "{\"s\": [{\"a\": 1, \"\\u0061\": 2}]}",
          "{\"a\": 1} {}",
          "[1]",
          "\"a\"",
          "",
          "{\"a\": 01}",
          "{'a': 1}",
          "{\"a\": NaN}",
          "{\"a\": 1",
          "{\"a\":" + "[".repeat(100_000) + "]".repeat(100_000) + "}",
        }) {
      assertThatThrownBy(() -> CanonicalJson.parse(text))
          .as(text.substring(0, Math.min(40, text.length())))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void whatIsNoCodeIsNotTakenForOne() {
    String hex = "0".repeat(64);
    String tag = "v3.hmac-sha256";
    MetadataMac mac = MetadataMac.parse(tag + ".3." + hex + ".a.b/c==");
    assertThat(mac.kekId()).isEqualTo("a.b/c==");
    assertThat(mac.value()).isEqualTo(tag + ".3." + hex + ".a.b/c==");
    for (String rest : new String[] {"", ".3.00.k", ".99999999999." + hex + ".k"}) {
      assertThat(MetadataMac.parse(tag + rest)).isNull();
    }

    assertThat(MetadataMac.parse(tag + ".3." + hex + ".")).isNull();
    for (String value :
        new String[] {null, "", "v1.3." + hex + ".k", "v2.hmac-sha256.3." + hex + ".k", hex}) {
      assertThat(MetadataMac.parse(value)).isNull();
    }
  }

  @Test
  void aPlaceIsReadFromTheFilesName() {
    assertThat(MetadataPlace.of("s3a://b/t/metadata/00012-abc.gz.metadata.json"))
        .isEqualTo(MetadataPlace.of("s3://b/t/metadata/00012-def.metadata.json"))
        .isEqualTo(new MetadataPlace("/b/t/metadata", 12));
    assertThat(MetadataPlace.of("file:/w/t/metadata/v3.metadata.json"))
        .isEqualTo(MetadataPlace.of("/w/t/metadata/v3.gz.metadata.json"))
        .isEqualTo(MetadataPlace.of("hdfs://host:8020/w/t/metadata/v3.metadata.json"))
        .isEqualTo(MetadataPlace.of("hdfs:///w/t/metadata/v3.metadata.json"))
        .isEqualTo(MetadataPlace.of("viewfs://service/w/t/metadata/v3.metadata.json"))
        .isEqualTo(new MetadataPlace("/w/t/metadata", 3));
    assertThat(MetadataPlace.of("s3://b/w/t/metadata/v3.metadata.json"))
        .isNotEqualTo(MetadataPlace.of("s3://c/w/t/metadata/v3.metadata.json"));
    assertThat(MetadataPlace.of("/w/t/metadata/other.json").version()).isEqualTo(-1);
    assertThat(MetadataPlace.of("x")).isEqualTo(new MetadataPlace("", -1));
  }

  @Test
  void aFolderSaysWhichTableItIsOf() {
    String folder = "s3://b/t/metadata/authenticated-" + UUID;
    assertThat(AuthenticatedFolder.uuid(folder + "/00001-x.metadata.json")).isEqualTo(UUID);
    assertThat(AuthenticatedFolder.uuid("s3://b/t/metadata/00001-x.metadata.json")).isNull();
    TableMetadata anothers = at("s3://b/u", Map.of("write.metadata.path", folder));
    TableMetadata own = TableMetadata.buildFrom(anothers).assignUUID(UUID).build();
    String file = folder + "/snap-1.avro";
    assertThat(AuthenticatedFolder.above(null, anothers, file))
        .isEqualTo("s3://b/u/metadata/snap-1.avro");
    assertThat(AuthenticatedFolder.above(null, own, file))
        .isEqualTo("s3://b/t/metadata/snap-1.avro");
    assertThat(AuthenticatedFolder.above(at("s3://b/t", Map.of()), own, file))
        .as("of a table that moves")
        .isEqualTo("s3://b/u/metadata/snap-1.avro");
  }
}
