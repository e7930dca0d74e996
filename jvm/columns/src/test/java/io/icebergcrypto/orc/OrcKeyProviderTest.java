package io.icebergcrypto.orc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.parquet.FileProtection.Column;
import io.icebergcrypto.parquet.WrappedDataKeys;
import io.icebergcrypto.testing.BurningFileSystem;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.XorKms;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.impl.HadoopShims.KeyMetadata;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** ORC's own writers and readers, with this project's keys. */
class OrcKeyProviderTest {
  private static final String SCHEMA =
      "struct<id:bigint,ssn:string,address:struct<street:string,city:string>,tags:array<string>>";
  private static final String SECRET = "sesame-4711";
  private static final int ROWS = 10;

  @TempDir private java.nio.file.Path folder;
  private Configuration hadoop;

  @BeforeEach
  void keystore() throws IOException {
    hadoop = new Configuration(false);
    hadoop.set("orc.compress", "NONE");
    TestKeystore.create(folder, "k1", "k2", "arn:k,3;%")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
    hadoop.set("orc.encrypt", "k1:ssn;k2:address.street");
    provide();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "kms.endpoint",
        "client.assume-role.arn",
        "azure.keyvault.url",
        "encryption.kms.x"
      })
  void settingsByIcebergsNamesCount(String name) {
    String before = new WrappedDataKeys(hadoop).scope();
    hadoop.set("iceberg-crypto." + name, "value");
    assertThat(new WrappedDataKeys(hadoop).scope()).isNotEqualTo(before);
    hadoop.unset("iceberg-crypto." + name);
    hadoop.set("iceberg-crypto.other." + name, "value");
    assertThat(new WrappedDataKeys(hadoop).scope()).isEqualTo(before);
  }

  /** ORC keeps providers by their names. */
  private void provide() {
    hadoop.set("orc.key.provider", "iceberg-crypto-" + UUID.randomUUID());
  }

  private Path file() {
    return new Path(folder.resolve("part-0.orc").toUri());
  }

  private Path write() throws IOException {
    Files.deleteIfExists(folder.resolve("part-0.orc"));
    TypeDescription schema = TypeDescription.fromString(SCHEMA);
    OrcFile.WriterOptions options =
        OrcFile.writerOptions(hadoop)
            .setSchema(schema)
            .encrypt(hadoop.get("orc.encrypt"))
            .masks(hadoop.get("orc.mask"));
    try (Writer writer = OrcFile.createWriter(file(), options)) {
      VectorizedRowBatch batch = schema.createRowBatch();
      for (int row = 0; row < ROWS; row++) {
        ((LongColumnVector) batch.cols[0]).vector[row] = row;
        ((BytesColumnVector) batch.cols[1]).setVal(row, bytes(SECRET + row));
        StructColumnVector address = (StructColumnVector) batch.cols[2];
        ((BytesColumnVector) address.fields[0]).setVal(row, bytes(SECRET + row));
        ((BytesColumnVector) address.fields[1]).setVal(row, bytes("Ulm"));
        batch.size++;
      }

      writer.addRowBatch(batch);
    }

    return file();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** The first row's ssn; null is null. */
  private String firstSsn() throws IOException {
    try (Reader reader = OrcFile.createReader(file(), OrcFile.readerOptions(hadoop));
        RecordReader rows = reader.rows()) {
      VectorizedRowBatch batch = reader.getSchema().createRowBatch();
      assertThat(rows.nextBatch(batch)).isTrue();
      assertThat(((LongColumnVector) batch.cols[0]).vector[ROWS - 1]).isEqualTo(ROWS - 1);
      BytesColumnVector ssn = (BytesColumnVector) batch.cols[1];
      int row = ssn.isRepeating ? 0 : 1;
      return ssn.noNulls || !ssn.isNull[row] ? ssn.toString(row) : null;
    }
  }

  private static OrcKeyProvider provider(Configuration hadoop) {
    return new OrcKeyProvider(hadoop);
  }

  @ParameterizedTest
  @CsvSource({"128, AES_CTR_128", "256, AES_CTR_256"})
  void aColumnIsEncryptedAndReadAgain(String bits, String algorithm) throws IOException {
    hadoop.set(OrcSettings.DATA_KEY_LENGTH, bits);
    write();
    assertThat(firstSsn()).isEqualTo(SECRET + 1);
    byte[] stored = Files.readAllBytes(folder.resolve("part-0.orc"));
    assertThat(new String(stored, StandardCharsets.ISO_8859_1))
        .contains("Ulm") // has no key
        .doesNotContain(SECRET); // nor in statistics
    FileProtection found = OrcProtection.read(file().toString(), hadoop);
    assertThat(found.algorithm()).isEqualTo(algorithm);
  }

  @ParameterizedTest
  @CsvSource(
      nullValues = "null",
      value = {
        "nullify, null",
        "redact_any, xxxxxx.9999",
        "sha256, E",
      })
  void whoLacksTheKeyReadsTheMask(String mask, String seen) throws IOException {
    hadoop.set("orc.mask", mask + ":ssn");
    write();
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    provide();
    String masked = firstSsn();
    if (mask.equals("sha256")) {
      assertThat(masked).matches("[0-9A-F]{64}");
    } else if (seen == null) {
      assertThat(masked).isNull();
    } else {
      assertThat(masked).startsWith(seen).doesNotContain(SECRET);
    }

    hadoop.set(OrcSettings.MISSING_KEYS, "fail");
    provide();
    assertThatThrownBy(this::firstSsn)
        .rootCause()
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k1'");
  }

  /** ORC's own redact fails on text and short decimals. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "string | redact_any",
        "decimal(10,2) | redact_any",
        "decimal(38,2) | redact_any",
        "array<struct<a:string,b:decimal(3,1),c:map<string,int>>> | redact_any",
        "date | redact",
        "timestamp | redact",
        "bigint | redact",
        "double | redact",
        "boolean | redact",
        "binary | redact",
        "map<string,decimal(10,2)> | sha256",
        "array<string> | nullify",
      })
  void masksAreTriedOnEachType(String type, String mask) throws IOException {
    hadoop.set("orc.encrypt", "k1:v");
    hadoop.set("orc.mask", mask + ":v");
    OrcColumnKeys.checkWrite(hadoop, "t", "struct<v:" + type + ">");
  }

  /** An underscore has redact leave a kind of characters as it is. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "string | redact_any,_____ | capital letters, small letters, digits",
        "varchar(9) | redact_any,Xx_ | digits",
        "array<struct<a:int,b:string>> | redact_any,X_ | small letters",
        "map<string,bigint> | redact_any,Xx_ | digits",
        "bigint | redact_any,Xx_ | all values",
        "tinyint | redact_any,Xx_ | all values",
        "double | redact_any,Xx_ | all values",
        "decimal(10,2) | redact_any,Xx_ | all values",
        "decimal(2,2) | redact_any,Xx_ | all values",
        "decimal(30,2) | redact_any,Xx_ | all values",
        "date | redact_any,Xx9,`_ _ _ _ _ _` | all values",
        "timestamp | redact_any,Xx9,`_ _ _ _ _ _` | all values",
      })
  void aMaskThatLeavesValuesIsRefused(String type, String mask, String left) {
    hadoop.set("orc.encrypt", "k1:v");
    hadoop.set("orc.mask", mask + ":v");
    String schema = "struct<v:" + type + ">";
    assertThatThrownBy(() -> OrcColumnKeys.checkWrite(hadoop, "t", schema))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("leaves " + left, "underscore");
  }

  /** Its third parameter says which characters or digits redact leaves as they are. */
  @ParameterizedTest
  @CsvSource({"string, redact_any", "bigint, redact", "bigint, redact_any"})
  void aMaskThatLeavesARangeIsRefused(String type, String mask) {
    hadoop.set("orc.encrypt", "k1:v");
    hadoop.set("orc.mask", mask + ",Xx9,4000,`1:8`:v");
    String schema = "struct<v:" + type + ">";
    assertThatThrownBy(() -> OrcColumnKeys.checkWrite(hadoop, "t", schema))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("has a range that it leaves as it is");
  }

  @Test
  void decimalsAreRedacted() throws IOException {
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k1");
    provide();
    TypeDescription schema = TypeDescription.fromString("struct<a:decimal(10,2),b:decimal(30,2)>");
    OrcFile.WriterOptions options =
        OrcFile.writerOptions(hadoop).setSchema(schema).encrypt("k1:a,b").masks("redact_any:a,b");
    try (Writer writer = OrcFile.createWriter(file(), options)) {
      VectorizedRowBatch batch = schema.createRowBatch();
      for (int row = 0; row < 3; row++) {
        ((DecimalColumnVector) batch.cols[0]).set(row, HiveDecimal.create("123.45"));
        ((DecimalColumnVector) batch.cols[1]).set(row, HiveDecimal.create("-67.89"));
      }

      batch.cols[0].noNulls = false;
      batch.cols[0].isNull[1] = true;
      batch.size = 3;
      writer.addRowBatch(batch);
    }

    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    provide();
    try (Reader reader = OrcFile.createReader(file(), OrcFile.readerOptions(hadoop));
        RecordReader rows = reader.rows()) {
      VectorizedRowBatch batch = schema.createRowBatch();
      assertThat(rows.nextBatch(batch)).isTrue();
      DecimalColumnVector a = (DecimalColumnVector) batch.cols[0];
      assertThat(a.vector[0]).hasToString("999.99");
      assertThat(a.isNull[1]).isTrue();
      assertThat(a.vector[2]).hasToString("999.99");
      assertThat(((DecimalColumnVector) batch.cols[1]).vector[0]).hasToString("-99.99");
    }
  }

  @Test
  void aKeyThatIsNotThereIsAKeyThatMayNotBeUsed() throws IOException {
    hadoop.set("orc.encrypt", "k1:ssn");
    write();
    TestKeystore.create(Files.createDirectory(folder.resolve("other")), "k2")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
    provide();
    assertThat(firstSsn()).isNull();
  }

  private static Stream<IcebergCryptoException> noMissingKeys() {
    return Stream.of(
        new KmsUnavailableException("The KMS is away", "Try again.", null),
        new KeyDisabledException("Key 'k1' is disabled", "Enable it."),
        new LoginFailedException("The token has expired", "Get another one."),
        new AccessDeniedException("Not from this network", "Allow it.").ofKeyIf(false),
        new AccessDeniedException(
            "File token may not be read",
            "chown it",
            new java.nio.file.AccessDeniedException("token")));
  }

  /** ORC would show the mask for an IOException. */
  @ParameterizedTest
  @MethodSource("noMissingKeys")
  void aKmsThatFailsIsNoMissingKey(IcebergCryptoException error) throws IOException {
    useDouble();
    write();
    hadoop.set("iceberg-crypto.encryption.kms.retry.max-attempts", "1"); // and other caches
    provide();
    XorKms.failWith(error);
    try {
      assertThatThrownBy(this::firstSsn).hasStackTraceContaining(error.problem());
      assertThatThrownBy(this::write).hasStackTraceContaining(error.problem());
    } finally {
      XorKms.failWith(null);
    }
  }

  private void useDouble() {
    hadoop.unset("iceberg-crypto.encryption.kms-type");
    hadoop.unset("iceberg-crypto.encryption.kms.keystore.path");
    hadoop.unset("iceberg-crypto.encryption.kms.keystore.password-file");
    hadoop.set("iceberg-crypto.encryption.kms-impl", XorKms.class.getName());
    hadoop.set("iceberg-crypto.encryption.kms.test", UUID.randomUUID().toString());
    provide();
  }

  @Test
  void manyFilesTakeOneCallForEachMasterKey() throws IOException {
    useDouble();
    hadoop.set("orc.encrypt", "k1:ssn,tags;k2:address");
    CachingKmsClient kms = KmsClients.shared(hadoop.getPropsWithPrefix("iceberg-crypto."));
    for (int i = 0; i < 10; i++) {
      write();
      firstSsn();
    }

    assertThat(kms.metrics().snapshot())
        .containsEntry("wrap_calls", 2L)
        .containsEntry("unwrap_calls", 2L); // each new key is unwrapped again
    hadoop.set("iceberg-crypto.encryption.kms.test", "as another JVM");
    provide();
    CachingKmsClient reader = KmsClients.shared(hadoop.getPropsWithPrefix("iceberg-crypto."));
    for (int i = 0; i < 10; i++) {
      firstSsn();
    }

    assertThat(reader.metrics().snapshot()).containsEntry("unwrap_calls", 2L);
  }

  @Test
  void aKeyThatTheKmsGivesWrongOnceIsAskedForAgain() throws IOException {
    useDouble();
    hadoop.set("orc.encrypt", "k1:ssn");
    write();
    useDouble();
    XorKms.answer(XorKms.WRONG_KEY);
    assertThat(firstSsn()).isEqualTo(SECRET + 1);
    assertThat(XorKms.answersLeft()).isZero();
  }

  /** AES-CTR with the same key and position would show what two files have in common. */
  @Test
  void noTwoColumnsHaveTheSameKey() {
    OrcKeyProvider provider = provider(hadoop);
    KeyMetadata key = provider.getCurrentKeyVersion("k1");
    byte[] one = provider.createLocalKey(key).getDecryptedKey().getEncoded();
    byte[] other = provider.createLocalKey(key).getDecryptedKey().getEncoded();
    assertThat(one).hasSize(16).isNotEqualTo(other);
  }

  @Test
  void keyIdsMayHaveAnyCharacters() throws IOException {
    hadoop.set("orc.encrypt", "`arn:k,3;%`:ssn");
    write();
    assertThat(firstSsn()).isEqualTo(SECRET + 1);
    assertThat(OrcProtection.read(file().toString(), hadoop).columns().get(1).keyId())
        .isEqualTo("arn:k,3;%");
  }

  @Test
  void aLookTellsColumnsKeysAndMasks() throws IOException {
    hadoop.set("orc.encrypt", "k1:ssn,tags;k2:address");
    hadoop.set("orc.mask", "redact_any,Yy:ssn;sha256:address.city");
    write();
    FileProtection found = OrcProtection.read(file().toString(), hadoop);
    assertThat(found.columns())
        .containsExactly(
            new Column("id", FileProtection.By.NOTHING, null, null),
            new Column("ssn", FileProtection.By.COLUMN_KEY, "k1", "redact_any,Yy"),
            new Column("address.street", FileProtection.By.COLUMN_KEY, "k2", "nullify"),
            new Column("address.city", FileProtection.By.COLUMN_KEY, "k2", "sha256"),
            new Column("tags._elem", FileProtection.By.COLUMN_KEY, "k1", "nullify"));
    assertThat(found.encrypted()).isFalse();
    assertThat(found.authenticated()).isFalse();
    assertThat(found.problem())
        .contains("columns that are plaintext: id;")
        .contains("AES-CTR, which does not authenticate")
        .contains("masked values are plaintext: ssn (redact_any,Yy), address.city (sha256)");
    assertThat(OrcProtection.readAll(file().toString(), hadoop)).isEmpty();
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    assertThat(OrcProtection.readAll(file().toString(), hadoop)).containsOnlyKeys("ssn", "tags");
    hadoop.unset("orc.encrypt");
    write();
    assertThat(OrcProtection.read(file().toString(), hadoop)).isNull();
  }

  /** Whatever the end of a file says, a look at it is a typed error, or an answer. */
  @Test
  void aLookAtHostileFilesEnds() throws IOException {
    write();
    byte[] good = Files.readAllBytes(folder.resolve("part-0.orc"));
    java.nio.file.Path bad = folder.resolve("bad.orc");
    int refused = 0;
    for (int at = good.length - 1; at > good.length - 400; at--) {
      byte[] changed = good.clone();
      changed[at] ^= (byte) (1 << at % 8);
      Files.write(bad, changed);
      Files.deleteIfExists(folder.resolve(".bad.orc.crc"));
      try {
        OrcProtection.read(bad.toUri().toString(), hadoop);
      } catch (IcebergCryptoException e) {
        assertThat(e).hasMessageContaining("bad.orc");
        refused++;
      }
    }

    assertThat(refused).isGreaterThan(20);
    for (int length : new int[] {0, 1, 3, 10, good.length / 2}) {
      Files.write(bad, java.util.Arrays.copyOf(good, length));
      assertThatThrownBy(() -> OrcProtection.read(bad.toUri().toString(), hadoop))
          .isExactlyInstanceOf(IcebergCryptoException.class);
    }
  }

  /** ORC's errors about bytes are IOExceptions, too: those of the storage are kept apart. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void aFailedReadIsOfTheStorage(int reads) throws IOException {
    write();
    String location = BurningFileSystem.location(folder.resolve("part-0.orc"), reads, hadoop);
    assertThatThrownBy(() -> OrcProtection.readAll(location, hadoop))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("part-0.orc: the disk is on fire", "says nothing about the file");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "k1",
        "{}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":true,\"isFooterKey\":true,"
            + "\"masterKeyID\":\"k1\",\"wrappedDEK\":\"?\",\"doubleWrapping\":false}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":true,\"isFooterKey\":false,"
            + "\"masterKeyID\":\"k1\",\"wrappedDEK\":\"AAAA\",\"doubleWrapping\":true,"
            + "\"keyEncryptionKeyID\":\"AA==\",\"wrappedKEK\":\"AAAA\"}",
        "{\"keyMaterialType\":\"PKMT1\",\"internalStorage\":false,\"keyReference\":\"footerKey\"}",
      })
  void forgedKeyMaterialIsNoMissingKey(String material) {
    KeyMetadata key = new KeyMetadata("k1", 0, EncryptionAlgorithm.AES_CTR_128);
    assertThatThrownBy(() -> provider(hadoop).decryptLocalKey(key, bytes(material)))
        .isInstanceOf(IcebergCryptoException.class)
        .isNotInstanceOfAny(AccessDeniedException.class, KeyNotFoundException.class)
        .hasMessageContaining("'k1'");
  }

  @Test
  void aKeyOfAnotherNameOrLengthIsRefused() {
    byte[] wrapped = new WrappedDataKeys(hadoop).create("k1", 128).wrapped();
    OrcKeyProvider provider = provider(hadoop);
    assertThatThrownBy(
            () ->
                provider.decryptLocalKey(
                    new KeyMetadata("k2", 0, EncryptionAlgorithm.AES_CTR_128), wrapped))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("it is under 'k1'");
    assertThatThrownBy(
            () ->
                provider.decryptLocalKey(
                    new KeyMetadata("k1", 0, EncryptionAlgorithm.AES_CTR_256), wrapped))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("has 16 bytes");
  }

  private void check() {
    OrcColumnKeys.checkWrite(hadoop, "/tables/people", SCHEMA);
  }

  private void assertRefused(String message) {
    assertThatThrownBy(this::check)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "k1:snn | | Field snn not found",
        "k1:SSN | | Field SSN not found",
        "k1:address.zip | | Field zip not found",
        "k1:ssn;k2:ssn | | Conflicting encryption keys k2 and k1",
        "k1:address;k2:address.city | | two keys: 'k2', and 'k1' of 'address', which it is in",
        "k1:ssn;k2: | | names no column at its end",
        "ssn | | Missing required char ':'",
        "arn:aws:ssn | | backquotes",
        "k1:ssn, tags | | Missing name",
        "k1:ssn | hide:ssn | Mask 'hide' of column 'ssn' cannot be created",
        "k1:ssn | redact:id | Column 'id' of /tables/people has mask 'redact' and no key",
        "k1:ssn | redact:snn | Field snn not found",
        "k1:ssn | redact:ssn | fails on column 'ssn' of /tables/people, of type string",
        "k1:address | redact:address | fails on column 'address'",
        "k1:tags | redact:tags | write redact_any",
        "k1:ssn | redact:ssn;sha256:ssn | Conflicting encryption masks",
        "k1:ssn | redact: | orc.mask=redact: names no column",
        "  | redact:ssn | orc.mask is set for /tables/people, and orc.encrypt is not",
      })
  void whatCannotBeIsRefusedBeforeAWrite(String encrypt, String mask, String message) {
    hadoop.set("orc.encrypt", encrypt == null ? "" : encrypt);
    hadoop.set("orc.mask", mask == null ? "" : mask);
    assertRefused(message);
  }

  @Test
  void keysThatMayNotBeUsedAreRefusedBeforeAWrite() {
    check();
    hadoop.set("orc.encrypt", "k1:ssn;k3:tags");
    assertThatThrownBy(this::check)
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("k3", "Nothing was written to /tables/people");
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    provide();
    hadoop.set("orc.encrypt", "k1:ssn");
    assertThatThrownBy(this::check)
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k1'");
  }

  @Test
  void plaintextIsRefusedUnlessItIsAllowed() {
    hadoop.set("orc.encrypt", "");
    assertThatThrownBy(this::check)
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("/tables/people would be plaintext");
    hadoop.set(OrcSettings.PLAINTEXT_WRITES, "allow");
    check();
    hadoop.set(OrcSettings.PLAINTEXT_WRITES, "yes");
    assertRefused("neither refuse nor allow: 'yes'");
  }

  @Test
  void ctrIsRefusedWhereIntegrityIsRequired() {
    hadoop.set(OrcSettings.REQUIRE_INTEGRITY, "true");
    assertRefused("authenticates nothing");
  }

  @ParameterizedTest
  @CsvSource({
    "orc.encrypted, orc.encrypt",
    "orc.masks, orc.mask",
    "orc.keyprovider, orc.key.provider",
    "iceberg-crypto.orc.plaintext-write, iceberg-crypto.orc.plaintext-writes",
    "iceberg-crypto.encryption.kmstype, iceberg-crypto.encryption.kms-type",
  })
  void aMisspeltPropertyIsRefused(String name, String meant) {
    hadoop.set(name, "x");
    assertRefused("property " + name);
    assertRefused("Did you mean " + meant + "?");
  }

  /** Else it would write what no session of ours reads, or fail when files are deleted. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "memory | has no key 'k1'",
        "hadoop | has no key 'k1'",
        "vault | is not known to ORC",
        "Iceberg-Crypto | Did you mean iceberg-crypto?",
        "iceberg_crypto | Did you mean iceberg-crypto?",
      })
  void anotherKeyProviderIsRefusedIfItHasNoSuchKey(String provider, String message) {
    hadoop.set("orc.key.provider", provider);
    assertRefused(message);
  }

  /** ORC would read on and on. */
  @Test
  void aReadWithoutAKeyProviderIsRefused() {
    OrcColumnKeys.checkRead(hadoop);
    hadoop.set("orc.key.provider", "vault");
    assertThatThrownBy(() -> OrcColumnKeys.checkRead(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("orc.key.provider=vault is not known to ORC");
  }

  /** ORC keeps one provider for all of a JVM, with the settings of who came first. */
  @Test
  void settingsDoNotUseEachOthersKeys() {
    OrcColumnKeys.checkRead(hadoop);
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    assertThatThrownBy(() -> OrcColumnKeys.checkRead(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("already has different settings in this JVM");
    assertRefused("already has different settings in this JVM");
    provide();
    OrcColumnKeys.checkRead(hadoop);
  }

  @Test
  void aColumnWithANumberForANameIsRefused() {
    hadoop.set("orc.encrypt", "k1:2");
    assertThatThrownBy(() -> OrcColumnKeys.checkWrite(hadoop, "t", "struct<`2`:int,b:int>"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("Column '2' of t has a number as its name");
  }

  @Test
  void everyNameIsDocumented() throws IOException {
    String told =
        Files.readString(
            java.nio.file.Path.of(
                System.getProperty("iceberg.crypto.root"), "docs", "orc-columns.md"));
    List<String> missing =
        OrcSettings.names().filter(name -> !told.contains("`" + name + "`")).toList();
    assertThat(missing).isEmpty();
  }
}
