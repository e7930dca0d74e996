package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.migrate.TableEncryption;
import io.icebergcrypto.spark.verify.scan.Progress;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.encrypt_table(table => ..., key_id => ... [, dry_run => true] [, max_bytes =>
 * ...])}: encrypts a plaintext table in place. See {@link TableEncryption}.
 */
final class EncryptTable extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "encrypt_table";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("key_id", DataTypes.StringType, false)
          .add("refs", DataTypes.IntegerType, false)
          .add("files", DataTypes.LongType, false)
          .add("bytes", DataTypes.LongType, false)
          .add("copied_files", DataTypes.LongType, false)
          .add("files_left", DataTypes.LongType, false)
          .add("rows", DataTypes.LongType)
          .add("kms_calls", DataTypes.IntegerType, false)
          .add("seconds", DataTypes.LongType)
          .add("plaintext_metadata", DataTypes.StringType)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  EncryptTable(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Encrypts a plaintext table in place";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {
      text("table"),
      text("key_id"),
      flag("dry_run"),
      Parameter.optional("max_bytes", DataTypes.LongType)
    };
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    SparkSession spark = SparkSession.active();
    return List.<Object[]>of(
        row(
            TableEncryption.run(
                    spark,
                    encrypted,
                    table,
                    given(input, 1),
                    input.isNullAt(3) ? Long.MAX_VALUE : input.getLong(3),
                    isSet(input, 2),
                    new Progress(spark.sparkContext()))
                .toMap()));
  }
}
