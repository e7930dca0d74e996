package io.icebergcrypto.spark;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.PurgedFiles;
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

/**
 * {@code CALL system.purge_without_key(table => ...)}: drops an encrypted table whose key cannot be
 * had, and deletes its folders, which DROP TABLE ... PURGE refuses to do. Gives the number of files
 * and their bytes.
 */
final class PurgeWithoutKey implements UnboundProcedure, BoundProcedure {
  /** The procedure's name. */
  static final String NAME = "purge_without_key";

  private static final StructType OUTPUT =
      new StructType()
          .add("deleted_files_count", DataTypes.LongType, false)
          .add("deleted_bytes", DataTypes.LongType, false);

  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  PurgeWithoutKey(TableCatalog catalog, EncryptedCatalog encrypted) {
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "Drops an encrypted table whose key cannot be had, and deletes its folders";
  }

  @Override
  public BoundProcedure bind(StructType inputType) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {ProcedureParameter.in("table", DataTypes.StringType).build()};
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

    if (!found.catalog().name().equals(catalog.name())) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was dropped: '%s' is a table of catalog %s, and this is the procedure of %s",
              name, found.catalog().name(), catalog.name()),
          String.format("CALL %s.system.%s(...) instead.", found.catalog().name(), NAME));
    }

    PurgedFiles purged =
        encrypted.purgeWithoutKey(Spark3Util.identifierToTableIdentifier(found.identifier()));
    catalog.invalidateTable(found.identifier());
    InternalRow row = new GenericInternalRow(new Object[] {purged.files(), purged.bytes()});
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
