package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.migrate.purge.PlaintextPurge;
import io.icebergcrypto.spark.migrate.purge.PurgeOptions;
import io.icebergcrypto.spark.migrate.purge.Purged;
import io.icebergcrypto.spark.verify.scan.Progress;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL system.purge_plaintext(table => ... [, dry_run => true] [, folders => array(...)] [,
 * keep => array(...)] [, accept_missing => true])}: deletes the files that a table had before
 * encrypt_table. A row with the sums, then one for each of the first 1000 files; and, with a
 * message, for what it does not delete. See {@link PlaintextPurge}.
 */
final class PurgePlaintext extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "purge_plaintext";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("path", DataTypes.StringType)
          .add("files", DataTypes.LongType)
          .add("bytes", DataTypes.LongType)
          .add("deleted", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType);

  private static final String OUTSIDE = "folder with old files, not one of the table's";
  private static final String OUTSIDE_FILE = "old file, not in the table's folders";
  private static final String LEFT = "left: not known to be this table's, or to be kept";
  private static final String GAP = "cannot be read: ";

  PurgePlaintext(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Deletes the plaintext files that a table had before it was encrypted in place";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {
      text("table"),
      flag("dry_run"),
      optionalTexts("folders"),
      optionalTexts("keep"),
      flag("accept_missing")
    };
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    SparkSession spark = SparkSession.active();
    Progress progress = new Progress(spark.sparkContext());
    PurgeOptions options =
        new PurgeOptions(isSet(input, 1), texts(input, 2), texts(input, 3), isSet(input, 4));
    Purged purged = PlaintextPurge.run(spark, encrypted, table, options, progress);
    List<Object[]> rows = new ArrayList<>();
    boolean deleted = purged.committed();
    rows.add(row(purged, null, purged.files(), purged.bytes(), deleted, purged.message()));
    purged.paths().forEach(path -> rows.add(row(purged, path, null, null, deleted, null)));
    purged
        .outside()
        .forEach((folder, files) -> rows.add(row(purged, folder, files, null, false, OUTSIDE)));
    purged
        .outsidePaths()
        .forEach(path -> rows.add(row(purged, path, null, null, false, OUTSIDE_FILE)));
    purged.leftPaths().forEach(path -> rows.add(row(purged, path, null, null, false, LEFT)));
    purged.gaps().forEach(gap -> rows.add(row(purged, null, null, null, false, GAP + gap)));
    return rows;
  }

  private static Object[] row(
      Purged purged, String path, Long files, Long bytes, boolean deleted, String message) {
    return new Object[] {
      UTF8String.fromString(purged.table()),
      UTF8String.fromString(path),
      files,
      bytes,
      deleted,
      UTF8String.fromString(message)
    };
  }
}
