package io.icebergcrypto.parquet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.XorKms;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Types;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ParquetCryptoFactoryTest {
  private static final MessageType SCHEMA =
      MessageTypeParser.parseMessageType(
          "message t { required int64 id; optional binary ssn; optional group address {"
              + " optional binary street; optional binary city; }"
              + " optional group tags (LIST) { repeated group list { optional binary element; } }"
              + " }");

  private static final String COLUMN_KEYS = PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME;
  private static final String FOOTER_KEY = PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME;
  private static final String UNIFORM_KEY = PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME;
  private static final String COMPLETE = "parquet.encryption.complete.columns";
  private static final String ALGORITHM =
      PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME;

  @TempDir private java.nio.file.Path folder;
  private Configuration hadoop;

  @BeforeEach
  void keystore() throws IOException {
    hadoop = new Configuration(false);
    TestKeystore.create(folder, "k1", "k2", "arn:k,3;%")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
  }

  private FileEncryptionProperties write() {
    return new ParquetCryptoFactory()
        .getFileEncryptionProperties(hadoop, file(), new WriteContext(SCHEMA, Map.of()));
  }

  private FileDecryptionProperties read() {
    return new ParquetCryptoFactory().getFileDecryptionProperties(hadoop, file());
  }

  private Path file() {
    return new Path(folder.resolve("part-0.parquet").toUri());
  }

  private void columns(String keys) {
    hadoop.set(FOOTER_KEY, "k1");
    hadoop.set(COLUMN_KEYS, keys);
  }

  private static boolean isEncrypted(FileEncryptionProperties properties, String... path) {
    return properties.getColumnProperties(ColumnPath.get(path)).isEncrypted();
  }

  @Test
  void aGroupStandsForAllColumnsInIt() {
    columns("k2 : ssn, address; k1:tags");
    FileEncryptionProperties made = write();
    assertThat(isEncrypted(made, "address", "street")).isTrue();
    assertThat(isEncrypted(made, "address", "city")).isTrue();
    assertThat(isEncrypted(made, "tags", "list", "element")).isTrue();
    assertThat(isEncrypted(made, "ssn")).isTrue();
    assertThat(isEncrypted(made, "id")).isFalse(); // as with Parquet's own factory
    hadoop.set(COMPLETE, "true");
    assertThat(isEncrypted(write(), "id")).isTrue();
  }

  /** Hudi archives its timeline as Parquet, by the same settings. */
  @Test
  void whatHudiWritesForItselfHasTheFootersKey() {
    columns("k2:snn");
    assertRefused("which is not in the file");
    FileEncryptionProperties made = writeTo("/t/.hoodie/timeline/history/1_2_0.parquet");
    SCHEMA.getColumns().forEach(c -> assertThat(isEncrypted(made, c.getPath())).isTrue());
    columns("k2:ssn,snn");
    assertThatThrownBy(() -> writeTo("/t/.hoodie/people.parquet"))
        .hasMessageContaining("column 'snn', which is not in the file");
  }

  private FileEncryptionProperties writeTo(String path) {
    return new ParquetCryptoFactory()
        .getFileEncryptionProperties(hadoop, new Path(path), new WriteContext(SCHEMA, Map.of()));
  }

  /** As Hudi writes the blocks of a log. */
  @Test
  void aFileWithinAnother() {
    hadoop.set(UNIFORM_KEY, "k1");
    WriteContext context = new WriteContext(SCHEMA, Map.of());
    assertThat(new ParquetCryptoFactory().getFileEncryptionProperties(hadoop, null, context))
        .isNotNull();
    hadoop.set(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME, "false");
    assertThatThrownBy(
            () -> new ParquetCryptoFactory().getFileEncryptionProperties(hadoop, null, context))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("no place beside it");
  }

  /** Only what moves whole folders does not leave the file with its keys behind. */
  @ParameterizedTest
  @CsvSource({
    "true, t/_temporary/0/_temporary/attempt_0/p=1/part-0, t",
    "true, t/.spark-staging-1/_temporary/0/_temporary/attempt_0/p=1/part-0, t/.spark-staging-1",
    "true, t/_day=1/part-0, t",
    "true, part-0, ", // a program's own
    "false, t/.spark-staging-1/part-0, t",
    "false, t/.spark-staging-1/part-0, t/.spark-staging-1",
    "false, t/__magic_job-1/tasks/attempt_0/part-0, t",
    "false, buffer/_temporary/0/_temporary/attempt_0/part-0, t", // S3A's staging committer
  })
  void filesOfKeysAreNotLeftBehind(boolean moved, String file, String output) {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME, "false");
    if (output != null) {
      hadoop.set(FileOutputFormat.OUTDIR, new Path(folder.toUri() + output).toString());
    }

    for (String path : List.of(folder.toUri() + file, folder + "/" + file)) { // as streams have it
      if (moved) {
        assertThat(writeTo(path)).isNotNull();
      } else {
        assertThatThrownBy(() -> writeTo(path))
            .isInstanceOf(NotSupportedException.class)
            .hasMessageContaining("part-0: ")
            .hasMessageContaining("neither moves nor cleans key files");
      }
    }
  }

  @Test
  void aUniformKeyIsForAll() {
    hadoop.set(UNIFORM_KEY, "k1");
    FileEncryptionProperties made = write();
    SCHEMA.getColumns().forEach(c -> assertThat(isEncrypted(made, c.getPath())).isTrue());
    assertThat(made.encryptedFooter()).isTrue();
  }

  @Test
  void withoutAKeyNothingIsWritten() {
    assertThatThrownBy(this::write)
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("part-0.parquet would be plaintext");
    hadoop.set(ParquetSettings.PLAINTEXT_WRITES, "allow");
    assertThat(write()).isNull();
    hadoop.set(ParquetSettings.PLAINTEXT_WRITES, "yes");
    assertRefused("neither refuse nor allow: 'yes'");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "k2:snn | column 'snn', which is not in the file",
        "k2:SSN | Did you mean 'ssn'? Case matters",
        "k2:address.zip | column 'address.zip', which is not in the file",
        "k2:addr | column 'addr', which is not in the file",
        "k2:ssn;k1:ssn | Column 'ssn' has two keys: 'k2' and 'k1'",
        "k2:ssn,ssn | named twice under key 'k2'",
        "k2:address;k1:address.city | Column 'address.city' has two keys: 'k2' and 'k1'",
        "k2:ssn,,id | empty column name",
        "ssn | not key:column,column",
        ":ssn | not key:column,column",
        "arn:aws:ssn | Write a colon within a key id as %3A",
      })
  void columnsThatCannotBeAreRefused(String keys, String message) {
    columns(keys);
    assertRefused(message);
  }

  @Test
  void aColumnThatParquetCannotNameIsRefused() {
    columns("k2:a.b");
    MessageType schema =
        new MessageType("t", Types.optional(PrimitiveTypeName.BINARY).named("a.b"));
    WriteContext context = new WriteContext(schema, Map.of());
    assertThatThrownBy(
            () -> new ParquetCryptoFactory().getFileEncryptionProperties(hadoop, file(), context))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("'a.b'");
  }

  private void assertRefused(String message) {
    assertThatThrownBy(this::write)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "parquet.encryption.column.key",
        "parquet.encryption.uniform-key",
        "iceberg-crypto.parquet.plaintext-write",
        "iceberg-crypto.encryption.kmstype",
        "iceberg-crypto.plaintext-reads",
        "iceberg-crypto.allowed-key-ids",
        "Parquet.Encryption.Footer.Key",
        "Iceberg-Crypto.Parquet.Plaintext-Reads",
      })
  void aMisspeltPropertyIsRefused(String name) {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(name, "x");
    assertRefused("There is no property " + name);
    assertThatThrownBy(this::read).hasMessageContaining("There is no property " + name);
  }

  /** Both formats may have their settings in one session, and Iceberg's own of a KMS. */
  @Test
  void whatIsOfOthersIsLeftToThem() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set("iceberg-crypto.orc.plaintext-writes", "x");
    hadoop.set("iceberg-crypto.client.region", "eu-central-1");
    assertThatCode(this::write).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "parquet.encryption.complete.columns",
        "parquet.encryption.plaintext.footer",
        "parquet.encryption.double.wrapping",
        "parquet.encryption.key.material.store.internally",
        "iceberg-crypto.parquet.require-integrity",
      })
  void whatIsNeitherTrueNorFalseIsRefused(String name) {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(name, "ture");
    assertRefused("neither true nor false: 'ture'");
  }

  @Test
  void contradictionsAreRefused() {
    columns("k2:ssn");
    hadoop.set(UNIFORM_KEY, "k1");
    assertRefused("Uniform encryption");
    hadoop.unset(UNIFORM_KEY);
    hadoop.unset(FOOTER_KEY);
    assertRefused("No footer key");
    hadoop.set(FOOTER_KEY, "k1");
    hadoop.set(ALGORITHM, "AES_CBC");
    assertRefused("AES_CBC");
  }

  @Test
  void ctrIsRefusedWhereIntegrityIsRequired() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(ALGORITHM, "AES_GCM_CTR_V1");
    assertThatCode(this::write).doesNotThrowAnyException();
    hadoop.set(ParquetSettings.REQUIRE_INTEGRITY, "true");
    assertRefused("does not authenticate pages");
  }

  @ParameterizedTest
  @ValueSource(strings = {"v2", "PARQUET_2_0"})
  void pagesOfVersion2AreRefused(String version) {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set("parquet.writer.version", version);
    assertThatThrownBy(this::write)
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("leaves parts of such pages in plaintext");
    hadoop.set("parquet.writer.version", "v1");
    assertThatCode(this::write).doesNotThrowAnyException();
  }

  /** Also of a plaintext write: Parquet's committer reads all files of the folder. */
  @ParameterizedTest
  @CsvSource({
    "parquet.summary.metadata.level, ALL",
    "parquet.summary.metadata.level, common_only",
    "parquet.summary.metadata.level, often",
    "parquet.enable.summary-metadata, true",
  })
  void summaryFilesAreRefused(String name, String value) {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(name, value);
    assertNoSummaries(name + "=" + value);
    hadoop.unset(UNIFORM_KEY);
    hadoop.set(ParquetSettings.PLAINTEXT_WRITES, "allow");
    assertNoSummaries(name + "=" + value);
  }

  private void assertNoSummaries(String setting) {
    assertThatThrownBy(this::write)
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(setting, "_metadata");
  }

  @Test
  void summaryFilesMayBeTurnedOff() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set("parquet.enable.summary-metadata", "false");
    assertThat(write()).isNotNull();
    hadoop.set("parquet.enable.summary-metadata", "true");
    hadoop.set("parquet.summary.metadata.level", "NONE"); // as Spark sets it
    assertThat(write()).isNotNull();
  }

  @Test
  void keysWithoutAFactoryAreRefused() {
    Path into = new Path(folder.toUri());
    ParquetCryptoFactory.check(hadoop, into, SCHEMA);
    for (String name :
        List.of(UNIFORM_KEY, FOOTER_KEY, COLUMN_KEYS, "Parquet.Encryption.Uniform.Key")) {
      hadoop.set(name, "k1");
      assertThatThrownBy(() -> ParquetCryptoFactory.check(hadoop, into, SCHEMA))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining(into + ", and parquet.crypto.factory.class is not set");
      hadoop.set(name, ""); // as an option that takes the session's away
    }

    ParquetCryptoFactory.check(hadoop, into, SCHEMA);
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set("parquet.crypto.factory.class", PropertiesDrivenCryptoFactory.class.getName());
    ParquetCryptoFactory.check(hadoop, into, SCHEMA);
  }

  @Test
  void keysWithoutAKmsAreRefused() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.unset("iceberg-crypto.encryption.kms-type");
    assertRefused("no KMS is");
    assertRefused("configure_spark(parquet_columns=...)");
  }

  @Test
  void keysThatMayNotBeUsedAreRefused() {
    hadoop.set(UNIFORM_KEY, "k3");
    assertThatThrownBy(this::write)
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("k3", "Nothing was written to");
    hadoop.set(UNIFORM_KEY, "k2");
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k1");
    assertThatThrownBy(this::write)
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k2'");
  }

  @Test
  void aTokenInTheConfigurationIsRefusedAndNotShown() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(KeyToolkit.KEY_ACCESS_TOKEN_PROPERTY_NAME, "s.e.c.r.e.t");
    assertRefused("would show a secret");
    assertThatThrownBy(this::write).message().doesNotContain("s.e.c.r.e.t");
  }

  @Test
  void anotherKmsClientIsRefused() {
    hadoop.set(UNIFORM_KEY, "k1");
    hadoop.set(KeyToolkit.KMS_CLIENT_CLASS_PROPERTY_NAME, "a.Client");
    assertRefused("a.Client");
  }

  @Test
  void keyIdsMayHaveColons() {
    hadoop.set(UNIFORM_KEY, "arn%3Ak%2C3%3B%25");
    FileEncryptionProperties made = write();
    assertThat(read().getKeyRetriever().getKey(made.getFooterKeyMetadata()))
        .isEqualTo(made.getFooterKey());
  }

  /** Parquet keeps KMS clients and KEKs for all of a JVM, no matter who asks. */
  @Test
  void settingsDoNotUseEachOthersKeys() throws IOException {
    hadoop.set(UNIFORM_KEY, "k1");
    FileEncryptionProperties made = write();
    byte[] metadata = made.getFooterKeyMetadata();
    assertThat(read().getKeyRetriever().getKey(metadata)).isEqualTo(made.getFooterKey());
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    assertThatThrownBy(() -> read().getKeyRetriever().getKey(metadata))
        .isInstanceOf(KeyAccessDeniedException.class)
        .hasCauseInstanceOf(AccessDeniedException.class)
        .cause()
        .hasMessageContaining("part-0.parquet");
  }

  @Test
  void manyFilesTakeOneCall() {
    hadoop = new Configuration(false);
    hadoop.set("iceberg-crypto.encryption.kms-impl", XorKms.class.getName());
    columns("k2:ssn,address");
    CachingKmsClient kms = KmsClients.shared(hadoop.getPropsWithPrefix("iceberg-crypto."));
    for (int i = 0; i < 10; i++) {
      byte[] metadata = write().getFooterKeyMetadata();
      read().getKeyRetriever().getKey(metadata);
    }

    assertThat(kms.metrics().snapshot())
        .containsEntry("wrap_calls", 2L)
        .containsEntry("unwrap_calls", 2L); // new keys are unwrapped again
    hadoop.set(KeyToolkit.DOUBLE_WRAPPING_PROPERTY_NAME, "false");
    write();
    assertThat(kms.metrics().snapshot())
        .containsEntry("wrap_calls", 6L); // the footer's and 3 columns'
  }

  private void useDouble() {
    hadoop = new Configuration(false);
    hadoop.set("iceberg-crypto.encryption.kms-impl", XorKms.class.getName());
    hadoop.set("iceberg-crypto.encryption.kms.test", UUID.randomUUID().toString()); // a cache
    columns("k2:ssn,address");
  }

  /** A key encryption key that is wrong, or none, and would be in caches for an hour. */
  @Test
  void aKeyThatTheKmsGivesWrongOnceIsAskedForAgain() {
    for (byte[] wrong : List.of(XorKms.WRONG_KEY, new byte[16], new byte[5])) {
      useDouble();
      FileEncryptionProperties written = write();
      useDouble();
      XorKms.answer(wrong);
      byte[] key = read().getKeyRetriever().getKey(written.getFooterKeyMetadata());
      assertThat(key).isEqualTo(written.getFooterKey());
      assertThat(XorKms.answersLeft()).isZero();
      assertThat(read().getKeyRetriever().getKey(written.getFooterKeyMetadata())).isEqualTo(key);
    }

    useDouble();
    byte[] metadata = write().getFooterKeyMetadata();
    useDouble();
    XorKms.answer(new byte[5], new byte[5]);
    assertThatThrownBy(() -> read().getKeyRetriever().getKey(metadata))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("returned 5 bytes for a key wrapped by key 'k1'");
    useDouble();
    XorKms.answer(new byte[16]);
    assertThatThrownBy(this::write)
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("unwraps other bytes than it wrapped");
  }

  /** A user who may write and not read. */
  @Test
  void aNewKeyThatMayNotBeUnwrappedIsBelieved() {
    useDouble();
    XorKms.refuseUnwraps(new AccessDeniedException("Not yours", "Ask."));
    try {
      assertThat(write().getFooterKey()).isNotNull();
      CachingKmsClient kms = KmsClients.shared(hadoop.getPropsWithPrefix("iceberg-crypto."));
      assertThat(kms.metrics().snapshot()).containsEntry("wrap_calls", 2L); // of k1 and k2
    } finally {
      XorKms.refuseUnwraps(null);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "k1",
        "{}",
        "[]",
        "{\"keyMaterialType\":\"PKMT1\"}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":true,\"isFooterKey\":false,"
            + "\"masterKeyID\":\"k1\",\"wrappedDEK\":\"?\",\"doubleWrapping\":false}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":true,\"isFooterKey\":false,"
            + "\"masterKeyID\":\"k1\",\"wrappedDEK\":\"AAAA\",\"doubleWrapping\":true,"
            + "\"keyEncryptionKeyID\":\"AA==\",\"wrappedKEK\":\"AAAA\"}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":false,\"keyReference\":\"footerKey\"}",
      })
  void forgedKeyMaterialIsATypedError(String material) {
    assertThatThrownBy(
            () -> read().getKeyRetriever().getKey(material.getBytes(StandardCharsets.UTF_8)))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("part-0.parquet");
  }

  @Test
  void everyNameIsDocumented() throws IOException {
    String told =
        java.nio.file.Files.readString(
            java.nio.file.Path.of(
                System.getProperty("iceberg.crypto.root"), "docs", "parquet-columns.md"));
    List<String> missing =
        ParquetSettings.names().filter(name -> !told.contains("`" + name + "`")).toList();
    assertThat(missing).isEmpty();
  }
}
