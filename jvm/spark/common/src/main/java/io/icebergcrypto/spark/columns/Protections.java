package io.icebergcrypto.spark.columns;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.orc.OrcProtection;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.parquet.ProtectionReader;
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
      case ORC -> OrcProtection.read(file.location(), hadoop);
      default -> null;
    };
  }
}
