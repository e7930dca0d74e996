package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.catalog.MetadataCode.Place;
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

/** The code of metadata: what others must be able to compute again. */
class MetadataCodeTest {
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";

  private static SecretKeySpec key() {
    byte[] kek = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");
    return MetadataCode.key(ByteBuffer.wrap(kek), UUID);
  }

  @Test
  void theKeyIsAsAnotherProgramDerivesIt() {
    // Python's hmac: HMAC(KEK, 00000001 || label || 00 || UUID || 00000100)
    assertThat(key().getEncoded())
        .asHexString()
        .isEqualToIgnoringCase("fde51fda672dd670aaa4a1a9bc17140b76a13a597029f4400237c4cf72aa7049");
  }

  @Test
  void theCodeIsOverSortedJsonWithThePlace() throws Exception {
    TableMetadata metadata =
        TableMetadata.newTableMetadata(
            TestLake.SCHEMA,
            PartitionSpec.unpartitioned(),
            "s3://b/t",
            Map.of("format-version", "3", "b", "\u00fc\"<\n", "a", "1"));
    MetadataCode code = MetadataCode.of(metadata, new Place("/b/t/metadata", 7), key(), "kek");
    String canonical =
        String.format(
            "{'file-version':7,'folder':'/b/t/metadata','metadata':{'current-schema-id':0,"
                + "'default-sort-order-id':0,'default-spec-id':0,'format-version':3,"
                + "'last-column-id':2,'last-partition-id':999,'last-sequence-number':0,"
                + "'last-updated-ms':%d,'location':'s3://b/t','next-row-id':0,"
                + "'partition-specs':[{'fields':[],'spec-id':0}],"
                + "'properties':{'a':'1','b':'\u00fc\\\"<\\n',"
                + "'write.parquet.compression-codec':'zstd'},"
                + "'schemas':[{'fields':[{'id':1,'name':'id','required':true,'type':'long'},"
                + "{'id':2,'name':'data','required':false,'type':'string'}],'schema-id':0,"
                + "'type':'struct'}],'sort-orders':[{'fields':[],'order-id':0}],"
                + "'table-uuid':'%s'}}",
            metadata.lastUpdatedMillis(), metadata.uuid());
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(key());
    assertThat(code.code())
        .isEqualTo(mac.doFinal(canonical.replace('\'', '"').getBytes(StandardCharsets.UTF_8)));

    TableMetadata signed = code.addTo(metadata);
    assertThat(signed.lastUpdatedMillis()).isEqualTo(metadata.lastUpdatedMillis());
    assertThat(MetadataCode.parse(signed.properties().get(MetadataCode.PROPERTY))).isEqualTo(code);
    TableMetadata read =
        TableMetadataParser.fromJson("s3://b/x.json", TableMetadataParser.toJson(signed));
    assertThat(code.matches(read, new Place("/b/t/metadata", 7), key())).isTrue();
    assertThat(code.matches(read, new Place("/b/t/metadata", 8), key())).isFalse();
    assertThat(code.matches(read, new Place("/b/u/metadata", 7), key())).isFalse();
  }

  @Test
  void whatIsNoCodeIsNotTakenForOne() {
    String hex = "0".repeat(64);
    assertThat(MetadataCode.parse("v1.3." + hex + ".a.b/c==").kekId()).isEqualTo("a.b/c==");
    for (String value : new String[] {null, "", "v1", "v2.3." + hex + ".k", "v1.3.00.k", hex}) {
      assertThat(MetadataCode.parse(value)).isNull();
    }

    assertThat(MetadataCode.parse("v1.99999999999." + hex + ".k")).isNull();
    assertThat(MetadataCode.parse("v1.3." + hex + ".")).isNull();
  }

  @Test
  void aPlaceIsReadFromTheFilesName() {
    assertThat(Place.of("s3a://b/t/metadata/00012-abc.gz.metadata.json"))
        .isEqualTo(Place.of("s3://b/t/metadata/00012-def.metadata.json"))
        .isEqualTo(new Place("/b/t/metadata", 12));
    assertThat(Place.of("file:/w/t/metadata/v3.metadata.json"))
        .isEqualTo(Place.of("/w/t/metadata/v3.gz.metadata.json"))
        .isEqualTo(Place.of("hdfs://host:8020/w/t/metadata/v3.metadata.json"))
        .isEqualTo(Place.of("hdfs:///w/t/metadata/v3.metadata.json"))
        .isEqualTo(Place.of("viewfs://service/w/t/metadata/v3.metadata.json"))
        .isEqualTo(new Place("/w/t/metadata", 3));
    assertThat(Place.of("s3://b/w/t/metadata/v3.metadata.json"))
        .isNotEqualTo(Place.of("s3://c/w/t/metadata/v3.metadata.json"));
    assertThat(Place.of("/w/t/metadata/other.json").version()).isEqualTo(-1);
    assertThat(Place.of("x")).isEqualTo(new Place("", -1));
  }

  @Test
  void aFolderSaysWhichTableItIsOf() {
    String folder = "s3://b/t/metadata/authenticated-" + UUID;
    assertThat(MetadataFolder.uuid(folder + "/00001-x.metadata.json")).isEqualTo(UUID);
    assertThat(MetadataFolder.uuid("s3://b/t/metadata/00001-x.metadata.json")).isNull();
    assertThat(MetadataFolder.above(folder + "/snap-1.avro"))
        .isEqualTo("s3://b/t/metadata/snap-1.avro");
    assertThat(MetadataFolder.above("/t/metadata/snap-1.avro"))
        .isEqualTo("/t/metadata/snap-1.avro");
  }
}
