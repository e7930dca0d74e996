package io.icebergcrypto.spark.columns;

import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.parquet.FileProtection;
import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;

/**
 * Which columns have keys in the files that a table has: others than its settings may have made
 * them.
 */
final class KeysInFiles {
  private KeysInFiles() {}

  /**
   * Looks at the footers of a table's files until one has a key for one of some columns.
   *
   * @param columns in any case
   * @param hadoop with the KMS's settings
   * @return those of them that have keys in that file, or all of them if its columns are not known
   */
  static Set<String> of(TableIdentifier table, Collection<String> columns, Configuration hadoop) {
    HadoopFileIO io = new HadoopFileIO(hadoop);
    for (String location : SparkSession.active().table(table.quotedString()).inputFiles()) {
      InputFile file = io.newInputFile(location);
      FileProtection found = Protections.of(FileInspector.magic(file), file, io, hadoop);
      Set<String> keyed = new TreeSet<>();
      columns.stream().filter(column -> found != null && has(found, column)).forEach(keyed::add);
      if (!keyed.isEmpty()) {
        return keyed;
      }
    }

    return Set.of();
  }

  private static boolean has(FileProtection file, String column) {
    return file.columns() == null
        || file.columns().stream()
            .filter(one -> one.protectedBy() != FileProtection.By.NOTHING)
            .anyMatch(one -> isOrIsIn(one.name(), column));
  }

  private static boolean isOrIsIn(String name, String column) {
    return name.equalsIgnoreCase(column)
        || name.regionMatches(true, 0, column + ".", 0, column.length() + 1);
  }
}
