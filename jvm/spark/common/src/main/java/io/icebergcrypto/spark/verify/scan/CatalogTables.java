package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The tables of a catalog, or of one of its namespaces and those within it. */
public final class CatalogTables {
  private static final String ALL = ".*";
  private static final String PLAIN_NAME = "[A-Za-z_][A-Za-z0-9_]*";
  private static final String SESSION_CATALOG = "spark_catalog";

  /**
   * A table or a view, or a namespace that cannot be listed.
   *
   * @param name its full name, quoted where SQL needs that
   * @param view whether it is a view, which has no files
   * @param failure why a namespace cannot be listed; null for a table or a view
   * @param hint what to do about that
   */
  public record Listed(String name, boolean view, String failure, String hint) {}

  private final SparkSession spark;
  private final TableCatalog catalog;
  private final List<Listed> found = new ArrayList<>();

  private CatalogTables(SparkSession spark, TableCatalog catalog) {
    this.spark = spark;
    this.catalog = catalog;
  }

  /**
   * Lists tables and views.
   *
   * @param name a catalog ({@code lake}) or a namespace ({@code lake.db}), with or without {@code
   *     .*} after it
   * @throws InvalidConfigurationException when there is no such catalog or namespace
   */
  public static List<Listed> of(SparkSession spark, String name) {
    List<String> parts = parts(spark, name);
    if (!spark.sessionState().catalogManager().isCatalogRegistered(parts.get(0))) {
      throw new InvalidConfigurationException(
          String.format("There is no catalog %s in this session", parts.get(0)),
          "Give a catalog, or a namespace with its catalog: lake, or lake.db.");
    }

    CatalogPlugin plugin = spark.sessionState().catalogManager().catalog(parts.get(0));
    if (!(plugin instanceof TableCatalog catalog)) {
      throw new NotSupportedException(
          String.format("Catalog %s has no tables", parts.get(0)), "Give a catalog of tables.");
    }

    return of(spark, catalog, parts.subList(1, parts.size()).toArray(String[]::new));
  }

  /**
   * Lists tables and views.
   *
   * @param namespace empty: of the whole catalog
   * @throws InvalidConfigurationException when there is no such namespace
   */
  public static List<Listed> of(SparkSession spark, TableCatalog catalog, String[] namespace) {
    CatalogTables tables = new CatalogTables(spark, catalog);
    if (namespace.length > 0
        && catalog instanceof SupportsNamespaces namespaces
        && !namespaces.namespaceExists(namespace)) {
      throw new InvalidConfigurationException(
          String.format(
              "Catalog %s has no namespace %s", catalog.name(), String.join(".", namespace)),
          String.format("SHOW NAMESPACES IN %s lists them.", catalog.name()));
    }

    tables.add(namespace);
    return tables.found;
  }

  /** The parts of a name as in SQL. */
  public static List<String> parts(SparkSession spark, String name) {
    String prefix = name.endsWith(ALL) ? name.substring(0, name.length() - ALL.length()) : name;
    try {
      return CollectionConverters.asJava(
          spark.sessionState().sqlParser().parseMultipartIdentifier(prefix));
    } catch (ParseException e) {
      throw new InvalidConfigurationException(
          String.format("'%s' is not the name of a catalog or a namespace", name),
          "Give it as in SQL: lake, lake.db or lake.db.*.",
          e);
    }
  }

  /** A table's name as in SQL, with its catalog. */
  public static String fullName(String catalog, Identifier table) {
    return Stream.concat(
            Stream.of(catalog),
            Stream.concat(Arrays.stream(table.namespace()), Stream.of(table.name())))
        .map(part -> part.matches(PLAIN_NAME) ? part : "`" + part.replace("`", "``") + "`")
        .collect(Collectors.joining("."));
  }

  private void add(String[] namespace) {
    try {
      Set<Identifier> views = views(namespace);
      for (Identifier table : tables(namespace)) {
        if (!views.contains(table)) {
          String name = fullName(catalog.name(), table);
          found.add(new Listed(name, isSparksView(table), null, null));
        }
      }

      views.forEach(
          view -> found.add(new Listed(fullName(catalog.name(), view), true, null, null)));
      if (catalog instanceof SupportsNamespaces namespaces) {
        String[][] within =
            namespace.length == 0
                ? namespaces.listNamespaces()
                : namespaces.listNamespaces(namespace);
        Arrays.stream(within).forEach(this::add);
      }
    } catch (NoSuchNamespaceException e) {
      // dropped meanwhile
    } catch (RuntimeException e) {
      String name = catalog.name() + "." + String.join(".", namespace);
      IcebergCryptoException ours = e instanceof IcebergCryptoException known ? known : null;
      found.add(
          new Listed(
              name,
              false,
              "its tables cannot be listed: " + (ours == null ? e.toString() : ours.problem()),
              ours == null ? "Check that the catalog lets this user list them." : ours.hint()));
    }
  }

  private Identifier[] tables(String[] namespace) throws NoSuchNamespaceException {
    try {
      return catalog.listTables(namespace);
    } catch (NoSuchNamespaceException | RuntimeException e) {
      if (namespace.length == 0) {
        return new Identifier[0]; // many catalogs have tables in namespaces only
      }

      throw e;
    }
  }

  private Set<Identifier> views(String[] namespace) throws NoSuchNamespaceException {
    boolean hasViews = catalog instanceof ViewCatalog && namespace.length > 0;
    return hasViews
        ? new HashSet<>(List.of(((ViewCatalog) catalog).listViews(namespace)))
        : Set.of();
  }

  /** Spark's own catalog lists its views among the tables. */
  private boolean isSparksView(Identifier table) {
    if (!catalog.name().equals(SESSION_CATALOG)) {
      return false;
    }

    try {
      return spark
          .sessionState()
          .catalog()
          .getTableMetadata(new TableIdentifier(table.name(), Option.apply(table.namespace()[0])))
          .tableType()
          .name()
          .equals("VIEW");
    } catch (Exception e) { // Spark throws NoSuchTableException without declaring it
      return false;
    }
  }
}
