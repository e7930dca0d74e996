package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.spark.call.Parameter;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.rotate_kek(table => ... [, rewrap => true] [, dry_run => true])}: gives a
 * table a new KEK. See {@link KekRotation}.
 */
final class RotateKek extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "rotate_kek";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("key_id", DataTypes.StringType, false)
          .add("old_kek_id", DataTypes.StringType)
          .add("new_kek_id", DataTypes.StringType)
          .add("rewrapped", DataTypes.IntegerType, false)
          .add("removed_keks", DataTypes.IntegerType, false)
          .add("kept_keks", DataTypes.IntegerType, false)
          .add("kms_calls", DataTypes.IntegerType, false)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  RotateKek(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Gives a table a new KEK and, on request, encrypts the keys of its snapshots with it";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), flag("rewrap"), flag("dry_run")};
  }

  @Override
  boolean takesPaths() {
    return true;
  }

  @Override
  List<Object[]> run(EncryptedCatalog catalog, TableIdentifier table, InternalRow input) {
    return List.<Object[]>of(
        row(KekRotation.run(catalog, table, isSet(input, 1), isSet(input, 2)).toMap()));
  }
}
