package io.icebergcrypto.spark.table;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.spark.call.ScalaLists;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;

/** Names of tables, namespaces and catalogs as in SQL. */
public final class TableNames {
  private static final String ALL = ".*";
  private static final String CATALOG = "spark.sql.catalog.";

  private TableNames() {}

  /**
   * The catalog and the table that a name means; whether there is one is not looked at.
   *
   * @param name the table as in SQL: {@code lake.db.t}
   * @throws InvalidConfigurationException when it is not the name of a table
   * @throws InvalidConfigurationException when it begins with what is neither a catalog nor, in the
   *     current one, a namespace
   */
  public static CatalogAndIdentifier find(SparkSession spark, String name) {
    return find(spark, name, spark.sessionState().catalogManager().currentCatalog());
  }

  private static boolean isNamespace(CatalogPlugin catalog, String name) {
    return !(catalog instanceof SupportsNamespaces namespaces)
        || namespaces.namespaceExists(new String[] {name});
  }

  /**
   * A catalog of a session.
   *
   * @throws InvalidConfigurationException when none has that name
   */
  public static CatalogPlugin catalog(SparkSession spark, String name) {
    CatalogManager catalogs = spark.sessionState().catalogManager();
    if (name.equals(CatalogManager.SESSION_CATALOG_NAME())
        || spark.conf().contains(CATALOG + name)) {
      return catalogs.catalog(name);
    }

    Set<String> known = new TreeSet<>();
    spark
        .conf()
        .getAll()
        .keysIterator()
        .foreach(key -> key.startsWith(CATALOG) && known.add(key.substring(CATALOG.length())));
    known.removeIf(key -> key.contains("."));
    throw new InvalidConfigurationException(
        String.format(
            "There is no catalog '%s'; the session has: %s.",
            name,
            known.isEmpty() ? CatalogManager.SESSION_CATALOG_NAME() : String.join(", ", known)),
        String.format(
            "Check its name, or set it up: configure_spark(..., catalog=\"%s\") in Python, or"
                + " spark.sql.catalog.%s.",
            name, name));
  }

  /**
   * The same.
   *
   * @param catalog the catalog of a name that begins with none
   */
  public static CatalogAndIdentifier find(SparkSession spark, String name, CatalogPlugin catalog) {
    List<String> parts = ofTable(spark, name);
    CatalogAndIdentifier found = Spark3Util.catalogAndIdentifier(spark, parts, catalog);
    if (parts.size() > 2
        && found.identifier().namespace().length == parts.size() - 1 // no catalog was found
        && !isNamespace(catalog, parts.get(0))) {
      catalog(spark, parts.get(0)); // it does not start, or does not exist
    }

    return found;
  }

  /** Whether a name is a path: {@code /folder/table} or {@code s3://bucket/folder/table}. */
  public static boolean isPath(String name) {
    return name.startsWith("/") || name.matches("[a-zA-Z][a-zA-Z0-9+.-]*:/.*");
  }

  /** The parts of the name of a table. */
  static List<String> ofTable(SparkSession spark, String name) {
    try {
      return parsed(spark, name);
    } catch (ParseException e) {
      throw new InvalidConfigurationException(
          String.format("Not the name of a table: %s", name),
          "Give the name as in SQL, with its catalog: lake.db.t.",
          e);
    }
  }

  /**
   * The parts of the name of a catalog or a namespace, with or without {@code .*} after it.
   *
   * @throws InvalidConfigurationException when it is not such a name
   */
  public static List<String> parts(SparkSession spark, String name) {
    String prefix = name.endsWith(ALL) ? name.substring(0, name.length() - ALL.length()) : name;
    try {
      return parsed(spark, prefix);
    } catch (ParseException e) {
      throw new InvalidConfigurationException(
          String.format("'%s' is not the name of a catalog or a namespace", name),
          "Give it as in SQL: lake, lake.db or lake.db.*.",
          e);
    }
  }

  private static List<String> parsed(SparkSession spark, String name) throws ParseException {
    return ScalaLists.toJava(spark.sessionState().sqlParser().parseMultipartIdentifier(name));
  }
}
