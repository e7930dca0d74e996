package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.migrate.TableDecryption;
import io.icebergcrypto.spark.verify.scan.Progress;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.decrypt_table(table => ..., allow_plaintext => true)}: decrypts a table in
 * place. See {@link TableDecryption}.
 */
final class DecryptTable extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "decrypt_table";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("old_key_id", DataTypes.StringType, false)
          .add("files", DataTypes.LongType, false)
          .add("bytes", DataTypes.LongType, false)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  DecryptTable(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Decrypts a table in place: its files are plaintext then";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), flag("allow_plaintext")};
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    SparkSession spark = SparkSession.active();
    Progress progress = new Progress(spark.sparkContext());
    return List.<Object[]>of(
        row(TableDecryption.run(spark, encrypted, table, isSet(input, 1), progress)));
  }
}
