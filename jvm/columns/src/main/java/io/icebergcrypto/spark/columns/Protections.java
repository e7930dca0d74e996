package io.icebergcrypto.spark.columns;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.SettingsGuard;
import io.icebergcrypto.orc.OrcProtection;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.parquet.PageCheck;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.parquet.ProtectionReader;
import io.icebergcrypto.spark.verify.deep.FileKey;
import io.icebergcrypto.spark.verify.deep.ParquetModules;
import io.icebergcrypto.spark.verify.deep.StoredFile;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;

/** How files are protected whose columns have keys. */
public final class Protections {
  private Protections() {}

  /**
   * Reads a file's footer.
   *
   * @param magic of the file
   * @param hadoop has the KMS's settings, for Parquet files with encrypted footers
   * @return null when its columns have no keys: plaintext, Iceberg's, or of another format
   * @throws TamperedException when its footer is not what a writer makes
   * @throws IcebergCryptoException when the file or its key cannot be read for another reason
   */
  public static FileProtection of(
      FileMagic magic, InputFile file, FileIO io, Configuration hadoop) {
    return switch (magic) {
      case PARE, PAR1 -> new ProtectionReader(io, hadoop).read(file);
      case ORC -> isCutOff(file) ? null : OrcProtection.read(file.location(), hadoop);
      default -> null;
    };
  }

  /**
   * The same configuration.
   *
   * @throws IcebergCryptoException when its settings of a KMS are not such as this session may
   *     have: tasks cannot tell whose settings they are
   */
  public static Configuration guarded(Configuration hadoop) {
    Map<String, String> kms =
        KmsClients.ofKms(hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX));
    if (KmsClients.isConfigured(kms)) {
      SettingsGuard.ALL.forEach(guard -> guard.check(kms));
    }

    return hadoop;
  }

  /** Whether an ORC file has nothing behind its magic that could tell of keys. */
  private static boolean isCutOff(InputFile file) {
    return file.getLength() <= "ORC".length();
  }

  /**
   * Reads all data of such a file, with the session's KMS. What is authenticated is checked: every
   * tag of a Parquet file, whichever writer made it.
   *
   * @param file of which {@link #of} said how it is protected
   * @param hadoop has the KMS's settings
   * @return the columns whose keys may not be used, with the reason: they were not read
   * @throws TamperedException when the file is not what was written
   * @throws PlaintextException when a part of an encrypted column is plaintext
   * @throws IcebergCryptoException when the footer's key cannot be had, or the storage failed
   */
  public static Map<String, String> readAll(
      FileMagic magic, FileProtection protection, InputFile file, Configuration hadoop) {
    return magic == FileMagic.ORC
        ? OrcProtection.readAll(file.location(), hadoop)
        : ParquetCryptoFactory.checked(hadoop, () -> readParquet(protection, file, hadoop));
  }

  private static Map<String, String> readParquet(
      FileProtection protection, InputFile file, Configuration hadoop) {
    if (!protection.authenticated()) {
      return PageCheck.check(file.location(), hadoop); // most of it has no tag
    }

    try (StoredFile stored = new StoredFile(file, true)) {
      FileKey key = FileKey.inParquet(stored, hadoop);
      return ParquetModules.checkColumns(stored, key, protection.footerEncrypted());
    }
  }
}
