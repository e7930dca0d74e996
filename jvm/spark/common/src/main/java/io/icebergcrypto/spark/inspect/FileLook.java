package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileInspection;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.spark.columns.Protections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;

/** A look at one file: its bytes and, if its columns have keys, its columns and their data. */
public final class FileLook {
  private FileLook() {}

  /**
   * Looks at a file.
   *
   * @param hadoop has the KMS's settings, for Parquet files with encrypted footers
   * @param pages whether to read all data of a file whose columns have keys
   * @return what {@link FileInspection#toMap()} has; of a file whose columns have keys also what
   *     {@link FileProtection#toMap()} has and, with {@code pages}, {@code pages_checked}: whether
   *     those of all columns were read, and {@code columns_left}: why not
   * @throws TamperedException when it is not what was written
   * @throws IcebergCryptoException when it cannot be read, or {@code pages}, and the key of its
   *     footer cannot be had
   */
  public static Map<String, Object> at(
      String location, FileIO io, Configuration hadoop, boolean pages) {
    InputFile file = io.newInputFile(location);
    FileInspection inspection = FileInspector.inspect(file);
    Map<String, Object> found = new LinkedHashMap<>(inspection.toMap());
    FileProtection protection = Protections.of(inspection.magic(), file, io, hadoop);
    if (protection != null) {
      found.putAll(protection.toMap());
      found.put("encrypted", protection.encrypted());
      if (pages) {
        Map<String, String> left = left(inspection.magic(), protection, file, hadoop);
        found.put("pages_checked", left.isEmpty());
        found.put("columns_left", left);
      }
    }

    return found;
  }

  private static Map<String, String> left(
      FileMagic magic, FileProtection protection, InputFile file, Configuration hadoop) {
    try {
      return Protections.readAll(magic, protection, file, hadoop);
    } catch (IcebergCryptoException e) {
      throw e.problem().contains(file.location()) ? e : e.inFile(file.location());
    }
  }
}
