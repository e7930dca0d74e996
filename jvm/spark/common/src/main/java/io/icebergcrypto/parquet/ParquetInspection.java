package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileInspection;
import io.icebergcrypto.format.FileInspector;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;

/** A look at one file: its bytes and, of a Parquet file with keys, its columns and pages. */
public final class ParquetInspection {
  private ParquetInspection() {}

  /**
   * Looks at a file.
   *
   * @param hadoop has the KMS's settings, for Parquet files with encrypted footers
   * @param pages whether to read all pages of a Parquet file with keys
   * @return what {@link FileInspection#toMap()} has; of a Parquet file with keys also what {@link
   *     FileProtection#toMap()} has and, with {@code pages}, {@code pages_checked}: whether those
   *     of all columns were read, and {@code columns_left}: why not
   * @throws TamperedException when it is not what was written
   * @throws IcebergCryptoException when it cannot be read, or {@code pages}, and the key of its
   *     footer cannot be had
   */
  public static Map<String, Object> of(
      String location, FileIO io, Configuration hadoop, boolean pages) {
    InputFile file = io.newInputFile(location);
    FileInspection inspection = FileInspector.inspect(file);
    Map<String, Object> found = new LinkedHashMap<>(inspection.toMap());
    FileProtection protection =
        inspection.magic().format().equals("parquet")
            ? new ProtectionReader(io, hadoop).read(file)
            : null;
    if (protection != null) {
      found.putAll(protection.toMap());
      found.put("encrypted", protection.encrypted());
      if (pages) {
        Map<String, String> left = PageCheck.check(location, hadoop);
        found.put("pages_checked", left.isEmpty());
        found.put("columns_left", left);
      }
    }

    return found;
  }
}
