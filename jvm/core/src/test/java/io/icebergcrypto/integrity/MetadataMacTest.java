package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import io.icebergcrypto.metadata.CanonicalDocument;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.junit.jupiter.api.Test;

/** The MAC of metadata: what others must be able to compute again. */
class MetadataMacTest {
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";

  private static SecretKeySpec key() {
    byte[] kek = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");
    return MetadataMac.key(ByteBuffer.wrap(kek), UUID);
  }

  private static byte[] mac(String canonical) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(key());
    return mac.doFinal(canonical.replace('\'', '"').getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void theKeyIsAsAnotherProgramDerivesIt() {
    // Python's hmac: HMAC(KEK, 00000001 || label || 00 || UUID || 00000100)
    assertThat(key().getEncoded())
        .asHexString()
        .isEqualToIgnoringCase("b5779f4a375e732783268e4d1a1563e4837d3a079c5f5b048b5eeb980fdaf06c");
  }

  @Test
  void theCodeIsOverSortedJsonWithThePlace() throws Exception {
    JsonObject document =
        CanonicalJson.parse(
            "{ 'location':'s3://b/t', 'later': {'z': [1.50, 1E2, true, null, {}], 'a': ''},"
                    .replace('\'', '"')
                + "\"properties\": {\"b\": \"\\u00fc\\\"<\\n\", \"a\": \"1\","
                + " \"encryption.metadata-mac\": \"any\"}, \"refs\": {},"
                + " \"last-updated-ms\": 9007199254740993}");
    MetadataPlace place = new MetadataPlace("/b/t/metadata", 7);
    String rest = "'location':'s3://b/t','properties':{'a':'1','b':'\u00fc\\\"<\\n'}";
    String start = "{'file-version':7,'folder':'/b/t/metadata','metadata':{'last-updated-ms':";
    String later = "9007199254740993,'later':{'a':'','z':[1.50,1E2,true,null,{}]},";
    assertThat(MetadataMac.of(form(document), place, key(), "kek").mac())
        .isEqualTo(mac(start + later + rest + ",'refs':{}}}"));
  }

  @Test
  void aSignedDocumentIsReadWithItsCode() {
    TableMetadata metadata =
        TableMetadata.newTableMetadata(
            TestLake.SCHEMA,
            PartitionSpec.unpartitioned(),
            "s3://b/t",
            Map.of("format-version", "3", "b", "\u00fc\"<\n", "half", "\ud800"));
    TableMetadata written = CanonicalJson.asRead(metadata);
    assertThat(written.properties()).containsEntry("half", "?").containsEntry("b", "\u00fc\"<\n");
    MetadataPlace place = new MetadataPlace("/b/t/metadata", 7);
    SecretKeySpec key = key();
    MetadataMac mac = MetadataMac.of(form(CanonicalJson.of(written)), place, key, "kek");
    TableMetadata signed = mac.addTo(CanonicalJson.of(written));
    assertThat(signed.lastUpdatedMillis()).isEqualTo(metadata.lastUpdatedMillis());
    assertThat(MetadataMac.parse(signed.properties().get(MetadataMac.PROPERTY))).isEqualTo(mac);
    CanonicalDocument read =
        CanonicalDocument.of(
            TableMetadataParser.fromJson("s3://b/x.json", TableMetadataParser.toJson(signed)));
    assertThat(mac.matches(read, place, key)).isTrue();
    assertThat(mac.matches(read, new MetadataPlace("/b/t/metadata", 8), key)).isFalse();
    assertThat(mac.matches(read, new MetadataPlace("/b/u/metadata", 7), key)).isFalse();
  }

  /** In UTF-8 half of a surrogate pair would become the question mark that was signed. */
  @Test
  void halfOfASurrogatePairIsNoQuestionMark() {
    MetadataPlace place = new MetadataPlace("", 0);
    CanonicalDocument signed = form(CanonicalJson.parse("{\"a\": \"?\"}"));
    MetadataMac mac = MetadataMac.of(signed, place, key(), "kek");
    assertThat(mac.matches(signed, place, key())).isTrue();
    byte[] other = "{\"a\": \"\\ud800\"}".getBytes(StandardCharsets.UTF_8);
    assertThatThrownBy(() -> CanonicalDocument.parse(other))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static CanonicalDocument form(JsonObject document) {
    return CanonicalDocument.parse(
        CanonicalJson.canonical(document).getBytes(StandardCharsets.UTF_8));
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
    String tag = "v2.hmac-sha256";
    MetadataMac mac = MetadataMac.parse(tag + ".3." + hex + ".a.b/c==");
    assertThat(mac.kekId()).isEqualTo("a.b/c==");
    assertThat(mac.value()).isEqualTo(tag + ".3." + hex + ".a.b/c==");
    for (String rest : new String[] {"", ".3.00.k", ".99999999999." + hex + ".k"}) {
      assertThat(MetadataMac.parse(tag + rest)).isNull();
    }

    assertThat(MetadataMac.parse(tag + ".3." + hex + ".")).isNull();
    for (String value : new String[] {null, "", "v1.3." + hex + ".k", "v2.3." + hex + ".k", hex}) {
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
    assertThat(AuthenticatedFolder.above(folder + "/snap-1.avro"))
        .isEqualTo("s3://b/t/metadata/snap-1.avro");
    assertThat(AuthenticatedFolder.above("/t/metadata/snap-1.avro"))
        .isEqualTo("/t/metadata/snap-1.avro");
  }
}
