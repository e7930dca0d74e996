package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.rewrite.TableReencryption;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.reencrypt_table(table => ... [, options => map(...)] [, dry_run => true])}:
 * writes all files of a table's main branch anew, under new keys. See {@link TableReencryption}.
 */
final class ReencryptTable extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "reencrypt_table";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("data_files", DataTypes.LongType, false)
          .add("delete_files", DataTypes.LongType, false)
          .add("bytes", DataTypes.LongType, false)
          .add("left", DataTypes.LongType, false)
          .add("snapshots", DataTypes.IntegerType, false)
          .add("refs", DataTypes.StringType, false)
          .add("expire_statement", DataTypes.StringType)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  ReencryptTable(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Writes all files of a table's main branch anew, under new keys";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), optionalMap("options"), flag("dry_run")};
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    return List.<Object[]>of(
        row(
            TableReencryption.run(
                    SparkSession.active(), encrypted, table, map(input, 1), isSet(input, 2))
                .toMap()));
  }
}
