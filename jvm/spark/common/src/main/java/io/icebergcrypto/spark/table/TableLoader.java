package io.icebergcrypto.spark.table;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.SqlNames;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.ViewCatalog;

/** Loads the table to verify, or says why it cannot be loaded. */
public final class TableLoader {
  private TableLoader() {}

  /**
   * Loads a table as it is now.
   *
   * @param name the table as in SQL: {@code lake.db.t}
   * @throws TableNotFoundException when there is no Iceberg table of that name
   */
  public static BaseTable load(SparkSession spark, String name) {
    Table table;
    try {
      startCatalog(spark, TableNames.ofTable(spark, name).get(0));
      TableNames.find(spark, name); // of a misspelt catalog Spark says what its own one needs
      table = Spark3Util.loadIcebergTable(spark, name);
    } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException
        | ClassCastException
        | ParseException e) {
      throw absent(spark, name, e);
    } catch (IllegalArgumentException e) {
      if (String.valueOf(e.getMessage()).endsWith("is not an Iceberg table")) {
        throw notFound(name, e);
      }

      throw e;
    }

    if (!(table instanceof BaseTable base)) {
      throw NotSupportedException.ofMetadataTable(name);
    }

    try {
      base.refresh();
    } catch (NoSuchTableException e) {
      throw notFound(name, e); // it was loaded before, and dropped since
    }

    return base;
  }

  /** Iceberg takes a catalog that does not start for a namespace of the current one. */
  private static void startCatalog(SparkSession spark, String name) {
    if (spark.conf().contains("spark.sql.catalog." + name)) {
      spark.sessionState().catalogManager().catalog(name);
    }
  }

  private static IcebergCryptoException absent(SparkSession spark, String name, Exception e) {
    try {
      CatalogAndIdentifier found = TableNames.find(spark, name);
      if (found.catalog() instanceof ViewCatalog views && views.viewExists(found.identifier())) {
        return new TableNotFoundException(
            String.format("%s is a view, which has no files of its own", name),
            "Verify the tables that it reads.",
            e);
      }

      String[] namespace = found.identifier().namespace();
      if (found.catalog() instanceof SupportsNamespaces namespaces
          && namespace.length > 0
          && !namespaces.namespaceExists(namespace)) {
        return new TableNotFoundException(
            String.format(
                "There is no Iceberg table %s: catalog %s has no namespace %s",
                name, found.catalog().name(), SqlNames.namespace(namespace)),
            "SHOW NAMESPACES IN " + SqlNames.quoted(found.catalog().name()) + " lists them.",
            e);
      }
    } catch (RuntimeException ignored) {
      // what is said below is still true
    }

    return notFound(name, e);
  }

  private static IcebergCryptoException notFound(String name, Exception e) {
    return new TableNotFoundException(
        "There is no Iceberg table " + name,
        "Give the name as in SQL, with its catalog: lake.db.t.",
        e);
  }
}
