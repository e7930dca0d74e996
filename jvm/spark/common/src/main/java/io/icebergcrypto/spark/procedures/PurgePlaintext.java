package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.migrate.PlaintextPurge;
import io.icebergcrypto.spark.migrate.PlaintextPurge.Purged;
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
 * {@code CALL system.purge_plaintext(table => ... [, dry_run => true])}: deletes the files that a
 * table had before encrypt_table. A row with the sums, then one for each of the first 1000 files.
 * See {@link PlaintextPurge}.
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

  PurgePlaintext(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Deletes the plaintext files that a table had before it was encrypted in place";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), flag("dry_run")};
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    SparkSession spark = SparkSession.active();
    Progress progress = new Progress(spark.sparkContext());
    Purged purged = PlaintextPurge.run(spark, encrypted, table, isSet(input, 1), progress);
    UTF8String name = UTF8String.fromString(purged.table());
    boolean deleted = purged.committed();
    List<Object[]> rows = new ArrayList<>();
    rows.add(
        new Object[] {
          name,
          null,
          purged.files(),
          purged.bytes(),
          deleted,
          UTF8String.fromString(purged.message())
        });
    purged
        .paths()
        .forEach(
            path ->
                rows.add(
                    new Object[] {name, UTF8String.fromString(path), null, null, deleted, null}));
    return rows;
  }
}
