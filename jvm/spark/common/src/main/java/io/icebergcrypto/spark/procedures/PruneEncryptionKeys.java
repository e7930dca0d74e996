package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.KeyPruning;
import io.icebergcrypto.spark.call.Parameter;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.prune_encryption_keys(table => ... [, dry_run => true])}: removes the keys
 * that nothing needs from a table's metadata. See {@link KeyPruning}.
 */
final class PruneEncryptionKeys extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "prune_encryption_keys";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("keys_before", DataTypes.IntegerType, false)
          .add("removed", DataTypes.IntegerType, false)
          .add("kept", DataTypes.IntegerType, false)
          .add("bytes_before", DataTypes.LongType, false)
          .add("bytes_after", DataTypes.LongType, false)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  PruneEncryptionKeys(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Removes the keys that nothing needs from a table's metadata";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), flag("dry_run")};
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    return List.<Object[]>of(row(KeyPruning.run(encrypted, table, isSet(input, 1)).toMap()));
  }
}
