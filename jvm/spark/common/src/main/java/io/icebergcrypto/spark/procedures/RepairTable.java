package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.repair.TableRepair;
import io.icebergcrypto.spark.call.Parameter;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.repair_table(table => ... [, yes => true])}: one row for each thing that is
 * wrong with a table; none: nothing is. See {@link TableRepair}.
 */
final class RepairTable extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "repair_table";

  private static final StructType OUTPUT =
      new StructType()
          .add("finding", DataTypes.StringType, false)
          .add("detail", DataTypes.StringType, false)
          .add("consequence", DataTypes.StringType, false)
          .add("remedy", DataTypes.StringType, false)
          .add("mendable", DataTypes.BooleanType, false)
          .add("mended", DataTypes.BooleanType, false);

  RepairTable(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Says what is wrong with a table that cannot be used and, on request, mends it";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), flag("yes")};
  }

  @Override
  boolean takesPaths() {
    return true;
  }

  @Override
  List<Object[]> run(EncryptedCatalog catalog, TableIdentifier table, InternalRow input) {
    return TableRepair.run(catalog, table, isSet(input, 1)).defects().stream()
        .map(defect -> row(defect.toMap()))
        .toList();
  }
}
