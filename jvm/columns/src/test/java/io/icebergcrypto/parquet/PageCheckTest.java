package io.icebergcrypto.parquet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.spark.columns.Protections;
import io.icebergcrypto.spark.inspect.FileLook;
import io.icebergcrypto.testing.BurningFileSystem;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.XorKms;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Pages of files that are read: what is the file's fault, what the storage's, what the reader's.
 */
class PageCheckTest {
  private static final MessageType SCHEMA =
      MessageTypeParser.parseMessageType(
          "message t { required int64 id; required int64 salary; required int64 bonus; }");

  @TempDir private java.nio.file.Path folder;
  private Configuration hadoop;
  private Path file;

  @BeforeEach
  void write() throws IOException {
    hadoop = new Configuration();
    TestKeystore.create(folder, "k1", "k2")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
    hadoop.set(
        EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME,
        ParquetCryptoFactory.class.getName());
    hadoop.set(PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME, "k1");
    hadoop.set(PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME, "k2:salary,bonus");
    hadoop.set("parquet.encryption.complete.columns", "true");
    file = write("people.parquet");
  }

  private Path write(String name) throws IOException {
    Path written = new Path(folder.resolve(name).toUri());
    try (ParquetWriter<org.apache.parquet.example.data.Group> writer =
        ExampleParquetWriter.builder(HadoopOutputFile.fromPath(written, hadoop))
            .withConf(hadoop)
            .withType(SCHEMA)
            .build()) {
      for (long i = 0; i < 100; i++) {
        SimpleGroup row = new SimpleGroup(SCHEMA);
        row.add("id", i);
        row.add("salary", i * 10);
        row.add("bonus", i * 100);
        writer.write(row);
      }
    }

    return written;
  }

  /** As inspect_file and verify_folder do. */
  private Map<String, String> checkAll() {
    FileMagic magic = FileInspector.magic(input());
    FileIO io = new HadoopFileIO(hadoop);
    return Protections.readAll(magic, Protections.of(magic, input(), io, hadoop), input(), hadoop);
  }

  private Map<String, String> check() {
    return PageCheck.check(file.toString(), hadoop);
  }

  @Test
  void aChangedPageIsOfTheFile() throws IOException {
    for (String footer : List.of("false", "true")) {
      hadoop.set(PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME, footer);
      file = write(footer + ".parquet");
      assertThat(checkAll()).isEmpty();
      java.nio.file.Path path = folder.resolve(file.getName());
      Files.deleteIfExists(folder.resolve("." + file.getName() + ".crc"));
      byte[] good = Files.readAllBytes(path);
      int footerEnd = good.length - 8;
      for (int changed : List.of(60, footerEnd - 1)) { // the first page; the footer's tag
        byte[] bytes = good.clone();
        bytes[changed] ^= 1;
        Files.write(path, bytes);
        assertThatThrownBy(this::checkAll).isExactlyInstanceOf(TamperedException.class);
        assertThatThrownBy(
                () -> FileLook.at(file.toString(), new HadoopFileIO(hadoop), hadoop, true))
            .isExactlyInstanceOf(TamperedException.class)
            .hasMessageContaining(file.getName());
      }
    }
  }

  /** Without double wrapping, nothing but the file itself tells that its key is wrong. */
  @Test
  void aKeyThatTheKmsGivesWrongOnceAccusesNoFile() throws IOException {
    hadoop.unset("iceberg-crypto.encryption.kms-type");
    hadoop.set("iceberg-crypto.encryption.kms-impl", XorKms.class.getName());
    hadoop.set(KeyToolkit.DOUBLE_WRAPPING_PROPERTY_NAME, "false");
    for (String algorithm : List.of("AES_GCM_V1", "AES_GCM_CTR_V1")) {
      hadoop.set("iceberg-crypto.encryption.kms.test", "writes " + algorithm);
      hadoop.set(PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME, algorithm);
      file = write(algorithm + ".parquet");
      hadoop.set("iceberg-crypto.encryption.kms.test", "reads " + algorithm);
      XorKms.answer(XorKms.WRONG_KEY); // of the footer
      assertThat(checkAll()).isEmpty();
      assertThat(XorKms.answersLeft()).isZero();
      KeyToolkit.removeCacheEntriesForAllTokens();
      hadoop.set("iceberg-crypto.encryption.kms.test", "reads pages of " + algorithm);
      FileProtection seen = look(file.toString());
      XorKms.answer(XorKms.WRONG_KEY); // of a column
      assertThat(Protections.readAll(FileMagic.PARE, seen, input(), hadoop)).isEmpty();
      assertThat(XorKms.answersLeft()).isZero();
    }
  }

  private org.apache.iceberg.io.InputFile input() {
    return new HadoopFileIO(hadoop).newInputFile(file.toString());
  }

  /** Of a file without a tag on each page, only that is proved which has one. */
  @Test
  void aChangedFooterOfPagesWithoutTagsIsOfTheFile() throws IOException {
    hadoop.set(PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME, "AES_GCM_CTR_V1");
    file = write("ctr.parquet");
    assertThat(checkAll()).isEmpty();
    java.nio.file.Path path = folder.resolve("ctr.parquet");
    byte[] bytes = Files.readAllBytes(path);
    bytes[bytes.length - 9] ^= 1;
    Files.write(path, bytes);
    Files.deleteIfExists(folder.resolve(".ctr.parquet.crc"));
    assertThatThrownBy(this::check)
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("ctr.parquet is not what was written");
  }

  /** Parquet's errors about bytes are IOExceptions, too: those of the storage are kept apart. */
  @Test
  void aFailedReadIsOfTheStorage() {
    java.nio.file.Path path = folder.resolve("people.parquet");
    Throwable failure;
    int reads = 0;
    do {
      String location = BurningFileSystem.location(path, reads, hadoop);
      failure = catchThrowable(() -> PageCheck.check(location, hadoop));
      if (failure != null) {
        assertThat(failure)
            .isExactlyInstanceOf(IcebergCryptoException.class)
            .hasMessageContaining("people.parquet could not be read: the disk is on fire")
            .hasMessageContaining("says nothing about the file");
        reads++;
      }
    } while (failure != null && reads < 1000);

    assertThat(reads).as("those of the footer, and of pages of each column").isBetween(9, 999);
    Path missing = new Path(folder.resolve("none.parquet").toUri());
    assertThatThrownBy(() -> PageCheck.check(missing.toString(), hadoop))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("none.parquet could not be read");
  }

  @Test
  void aFooterThatIsNotReadIsOfTheStorage() throws IOException {
    java.nio.file.Path path = folder.resolve("people.parquet");
    for (int reads = 0; reads < 2; reads++) {
      String location = BurningFileSystem.location(path, reads, hadoop);
      assertThatThrownBy(() -> look(location))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContaining("people.parquet could not be read: the disk is on fire")
          .hasMessageContaining("says nothing about the file");
    }

    byte[] bytes = Files.readAllBytes(path);
    bytes[bytes.length - 5] = 1; // of the footer's length
    Files.write(path, bytes);
    String damaged = BurningFileSystem.location(path, 1, hadoop);
    assertThatThrownBy(() -> look(damaged))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("people.parquet could not be checked: its last bytes give a footer");
  }

  private FileProtection look(String location) {
    FileIO io = new HadoopFileIO(hadoop);
    return new ProtectionReader(io, hadoop).read(io.newInputFile(location));
  }

  @Test
  void anErrorNamesTheColumnsOfTheKey() throws IOException {
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k1");
    assertThat(check()).containsOnlyKeys("salary", "bonus");
    assertThat(checkAll()).containsOnlyKeys("salary", "bonus");
    assertThatThrownBy(this::readAll)
        .rootCause()
        .hasMessageContaining("Columns 'salary', 'bonus' of ")
        .hasMessageContaining("people.parquet: Master key 'k2' is not among those")
        .hasMessageContaining("select them by name");
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    assertThatThrownBy(this::readAll)
        .rootCause()
        .hasMessageContainingAll("Master key 'k1' is not among those", "The key is one of ")
        .hasMessageContaining("people.parquet");
  }

  private long readAll() throws IOException {
    long rows = 0;
    try (var reader =
        ParquetReader.builder(new GroupReadSupport(), file).withConf(hadoop).build()) {
      while (reader.read() != null) {
        rows++;
      }
    }

    return rows;
  }

  @Test
  void aPlaintextFileIsRefusedWithItsName() throws IOException {
    assertThat(readAll()).isEqualTo(100);
    hadoop.set(ParquetSettings.PLAINTEXT_READS, "refuse");
    assertThat(readAll()).isEqualTo(100);
    hadoop.unset(EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME);
    file = write("plain.parquet");
    hadoop.set(
        EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME,
        ParquetCryptoFactory.class.getName());
    assertThatThrownBy(this::readAll)
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("plain.parquet has no key: it is plaintext")
        .hasMessageContaining(ParquetSettings.PLAINTEXT_READS + "=allow");
    hadoop.set(ParquetSettings.PLAINTEXT_READS, "allow");
    assertThat(readAll()).isEqualTo(100);
  }

  /** A plaintext footer has a key, too. */
  @Test
  void aSignedFooterIsNotPlaintext() throws IOException {
    hadoop.set(PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME, "true");
    file = write("signed.parquet");
    hadoop.set(ParquetSettings.PLAINTEXT_READS, "refuse");
    assertThat(readAll()).isEqualTo(100);
  }
}
