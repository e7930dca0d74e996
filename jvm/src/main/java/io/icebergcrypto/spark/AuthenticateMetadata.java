package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL system.authenticate_metadata(table => ..., metadata_file => ...)}: signs metadata
 * that was refused, after somebody found it right. It names the file that was looked at, so that
 * nothing else is signed. Gives the table's name.
 */
final class AuthenticateMetadata implements UnboundProcedure, BoundProcedure {
  /** The procedure's name. */
  static final String NAME = "authenticate_metadata";

  private static final StructType OUTPUT =
      new StructType().add("authenticated_table", DataTypes.StringType, false);

  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  AuthenticateMetadata(TableCatalog catalog, EncryptedCatalog encrypted) {
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "Signs a table's metadata as it is, after it was refused and checked";
  }

  @Override
  public BoundProcedure bind(StructType inputType) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {
      ProcedureParameter.in("table", DataTypes.StringType).build(),
      ProcedureParameter.in("metadata_file", DataTypes.StringType).build()
    };
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    String name = input.getUTF8String(0).toString();
    Spark3Util.CatalogAndIdentifier found;
    try {
      found = Spark3Util.catalogAndIdentifier(SparkSession.active(), name, catalog);
    } catch (ParseException e) {
      throw new IllegalArgumentException("Not the name of a table: " + name, e);
    }

    encrypted.authenticateMetadata(
        Spark3Util.identifierToTableIdentifier(found.identifier()),
        input.getUTF8String(1).toString());
    catalog.invalidateTable(found.identifier());
    InternalRow row = new GenericInternalRow(new Object[] {UTF8String.fromString(name)});
    return List.<Scan>of(new Output(row)).iterator();
  }

  /** One row. */
  private record Output(InternalRow row) implements LocalScan {
    @Override
    public InternalRow[] rows() {
      return new InternalRow[] {row};
    }

    @Override
    public StructType readSchema() {
      return OUTPUT;
    }
  }
}
