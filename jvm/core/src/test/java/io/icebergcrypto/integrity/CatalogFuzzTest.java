package io.icebergcrypto.integrity;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.junit.jupiter.api.Test;

/** Hostile metadata, codes, paths and properties of a table. */
class CatalogFuzzTest {
  private static final String UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
  private static final String FILE =
      "s3://b/t/metadata/authenticated-" + UUID + "/00007-abc.metadata.json";

  /** Unwraps what "wraps" by nothing at all. */
  private static final class NoWrapping extends PlainKms implements AuthenticatedWrapping {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean authenticatesWrapping(String wrappingKeyId) {
      return true;
    }
  }

  private static final KeyManagementClient KMS = new NoWrapping();

  @Test
  void codes() {
    String code64 = "0123456789abcdef".repeat(4) + ".a2V/aw==";
    Fuzz.run(
        1,
        round -> {
          String tag = "v3.hmac-sha256.12.";
          String value = round.mutated(tag + code64);
          MetadataMac mac = MetadataMac.parse(value);
          if (mac != null) {
            assertThat(mac.mac()).hasSize(32);
            assertThat(mac.version()).isNotNegative();
            assertThat(MetadataMac.parse(mac.value()).value()).isEqualTo(mac.value());
          }

          return mac != null;
        });
  }

  @Test
  void placesAndFolders() {
    Fuzz.run(
        1,
        round -> {
          String file = round.mutated(round.oneOf(FILE, "file:/w/t/metadata/v3.metadata.json"));
          MetadataPlace place = MetadataPlace.of(file);
          assertThat(place.version()).isGreaterThanOrEqualTo(-1);
          String uuid = AuthenticatedFolder.uuid(file);
          assertThat(uuid == null || uuid.length() == 36).isTrue();
          if (uuid == null) {
            return false;
          }

          // a manifest is never put into the folder that only we write
          TableMetadata metadata =
              TestLake.metadata(
                  "s3://b/t",
                  Map.of("write.metadata.path", file.substring(0, file.lastIndexOf('/'))));
          assertThat(AuthenticatedFolder.above(null, metadata, file))
              .startsWith("s3://b/t/metadata/");
          return true;
        });
  }

  @Test
  void namesOfProperties() {
    Fuzz.run(
        1,
        round -> {
          String name = round.mutated("encryption.data-key-length");
          String value = round.mutated("16");
          PropertyNames.checkTable("lake.db.t", Map.of(), Map.of(name, value));
          int length = EncryptionProperties.dataKeyLength("lake.db.t", Map.of(name, value));
          assertThat(length).isIn(16, 24, 32);
          return true;
        });
  }

  /** Metadata that was changed in any way, and still is metadata to Iceberg, is refused. */
  @Test
  void metadata() {
    TableMetadata plain =
        TestLake.metadata(
            "s3://b/t",
            Map.of("format-version", "3", "encryption.key-id", "k1", MetadataMac.PROPERTY, ""));
    byte[] kek = "0123456789abcdef".getBytes(US_ASCII);
    TableMetadata metadata =
        TableMetadata.buildFrom(plain)
            .assignUUID(UUID)
            .addEncryptionKey(
                new BaseEncryptedKey(
                    "kek",
                    ByteBuffer.wrap(kek),
                    "k1",
                    Map.of("KEY_TIMESTAMP", String.valueOf(System.currentTimeMillis()))))
            .addEncryptionKey(
                new BaseEncryptedKey("list", ByteBuffer.wrap(new byte[60]), "kek", Map.of()))
            .discardChanges()
            .build();
    SecretKeySpec key = MetadataMac.key(ByteBuffer.wrap(kek), UUID);
    byte[] json = CanonicalJson.written(metadata);
    MetadataPlace place = MetadataPlace.of(FILE);
    String own = new String(MetadataMac.make(json, place, key, "kek").putInto(json), UTF_8);
    JsonObject document = CanonicalJson.of(metadata);
    document.addProperty("later", 1.50); // which this Iceberg does not know
    byte[] more = document.toString().getBytes(UTF_8);
    String whole = new String(MetadataMac.make(more, place, key, "kek").putInto(more), UTF_8);
    Fuzz.run(
        10,
        round -> {
          boolean later = round.oneOf("", "later").isEmpty();
          String valid = later ? whole : own;
          InMemoryFileIO io = new InMemoryFileIO();
          io.addFile(FILE, round.mutated(valid).getBytes(UTF_8));
          MetadataFile file = MetadataFile.read(io, FILE);
          TableMetadata hostile;
          try {
            hostile = file.metadata();
          } catch (RuntimeException e) {
            return false; // Iceberg's reader does not take it
          }

          EncryptionProperties.masterKeyId(hostile);
          new TableKeys("lake.db.t", TableEncryptionManager::new, () -> KMS).managerFor(hostile);
          MetadataAuthenticator.of("lake.db.t", null, false, () -> KMS, Set.of()).check(file);
          assertThat(TableMetadataParser.toJson(hostile))
              .isEqualTo(TableMetadataParser.toJson(TableMetadataParser.fromJson(FILE, valid)));
          return true;
        });
  }

  /** What is taken for JSON has one canonical form, and that is the same document. */
  @Test
  void documents() {
    String valid = "{\"b\": [1, 2.50, {\"x\": \"\\u00fc\"}], \"a\": {\"t\": true, \"n\": null}}";
    Fuzz.run(
        1,
        round -> {
          JsonObject document;
          try {
            document = CanonicalJson.parse(round.mutated(valid));
          } catch (IllegalArgumentException e) {
            return false;
          }

          String canonical = CanonicalJson.canonical(document);
          assertThat(CanonicalJson.canonical(CanonicalJson.parse(canonical))).isEqualTo(canonical);
          return true;
        });
  }
}
