package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.authenticate_metadata(table => ..., metadata_file => ..., metadata_sha256 =>
 * ...)}: signs metadata that was refused, after somebody checked it. The call names the file that
 * was checked and the hash of its content, so that nothing else is signed. Returns the table's
 * name.
 */
final class AuthenticateMetadata extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "authenticate_metadata";

  private static final StructType OUTPUT =
      new StructType().add("authenticated_table", DataTypes.StringType, false);

  AuthenticateMetadata(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Signs a table's metadata as it is, after it was refused and checked";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table"), text("metadata_file"), optionalText("metadata_sha256")};
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    String sha256 = input.isNullAt(2) ? null : given(input, 2);
    encrypted.authenticateMetadata(table, given(input, 1), sha256);
    return List.<Object[]>of(new Object[] {input.getUTF8String(0)});
  }
}
