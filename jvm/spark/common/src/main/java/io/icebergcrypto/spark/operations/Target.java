package io.icebergcrypto.spark.operations;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.table.TableNames;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/**
 * What an operation is done to.
 *
 * @param plugin Spark's catalog; null: none was named
 * @param catalog the encrypting catalog that has the table: that of tables by their paths, too
 * @param inSpark the table as Spark names it; null: it is named by its path, or there is no table
 * @param table the table as Iceberg names it; null: there is no table
 */
public record Target(
    TableCatalog plugin, EncryptedCatalog catalog, Identifier inSpark, TableIdentifier table) {
  /** The catalog that Iceberg takes for a path. */
  private static final String PATH_CATALOG = "default_iceberg";

  /** Of a call on the driver: the names of its arguments tell the catalog. */
  public static final Target NONE = new Target(null, null, null, null);

  /** A catalog, in which a procedure is called. */
  public static Target in(TableCatalog plugin, EncryptedCatalog catalog) {
    return new Target(plugin, catalog, null, null);
  }

  /**
   * The encrypting catalog of a session.
   *
   * @throws NotSupportedException when it is not of this project
   */
  public static EncryptedCatalog catalog(SparkSession spark, String name) {
    return encrypted(
        name.equals(PATH_CATALOG)
            ? spark.sessionState().catalogManager().catalog(name)
            : TableNames.catalog(spark, name));
  }

  private static EncryptedCatalog encrypted(CatalogPlugin plugin) {
    EncryptedCatalog ours = EngineCatalog.encryptedOrNull(plugin);
    if (ours != null) {
      return ours;
    }

    throw new NotSupportedException(
        String.format(
            "Catalog %s is not an encrypting one: %s", plugin.name(), plugin.getClass().getName()),
        String.format(
            "Set spark.sql.catalog.%s=io.icebergcrypto.spark.EncryptedSparkCatalog.",
            plugin.name()));
  }

  /**
   * A table of a catalog of this project.
   *
   * @param name its name as in SQL, or its path
   */
  public static Target ofTable(SparkSession spark, String name) {
    return NONE.table(spark, name, null);
  }

  /**
   * A table of this catalog, or, if no catalog was named, of that of its name.
   *
   * @param operation what is done to it; null: it may be one by its path
   * @throws InvalidConfigurationException when it is of another catalog than the procedure
   */
  Target table(SparkSession spark, String name, Operation operation) {
    if (TableNames.isPath(name)) {
      EncryptedCatalog home = plugin == null ? catalog(spark, PATH_CATALOG) : catalog;
      return byPath(operation, home, TableIdentifier.of(name));
    }

    CatalogAndIdentifier found =
        plugin == null ? TableNames.find(spark, name) : TableNames.find(spark, name, plugin);
    checkIsOf(found.catalog().name(), name, operation);
    EncryptedCatalog home = plugin == null ? encrypted(found.catalog()) : catalog;
    TableIdentifier table = Spark3Util.identifierToTableIdentifier(found.identifier());
    return !table.hasNamespace() && TableNames.isPath(table.name())
        ? byPath(operation, home, table)
        : new Target((TableCatalog) found.catalog(), home, found.identifier(), table);
  }

  /** Refuses what is of another catalog than the procedure. */
  void checkIsOf(String otherCatalog, String name, Operation operation) {
    if (plugin != null && !otherCatalog.equals(plugin.name())) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was done: '%s' belongs to catalog %s, but this is the procedure of %s",
              name, otherCatalog, plugin.name()),
          String.format(
              "CALL %s.system.%s(...) instead.", SqlNames.quoted(otherCatalog), operation.name()));
    }
  }

  private static Target byPath(Operation operation, EncryptedCatalog home, TableIdentifier table) {
    if (operation == null || operation.takesPaths()) {
      return new Target(null, home.byPath(), null, table);
    }

    throw new NotSupportedException(
        String.format(
            "nothing was done: %s takes no paths, and '%s' is one", operation.name(), table.name()),
        "Give the table's name, as in db.t.");
  }

  /** The table's full name, quoted where SQL needs that. */
  String fullName() {
    return catalog.context().fullName(table);
  }

  /** Has Spark load the table again. */
  void invalidate() {
    if (inSpark != null) {
      plugin.invalidateTable(inSpark);
    }
  }
}
