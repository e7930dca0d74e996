package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.Causes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.exceptions.NoSuchIcebergTableException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import scala.Option;

/** The tables of a catalog, or of one of its namespaces and those within it. */
public final class CatalogTables {
  private static final String SESSION_CATALOG = "spark_catalog";

  /**
   * A table or a view, or a namespace that cannot be listed.
   *
   * @param name its full name, quoted where SQL needs that
   * @param view whether it is a view, which has no files
   * @param failure why a namespace cannot be listed; null for a table or a view
   * @param hint what to do about that
   */
  public record Listed(String name, boolean view, String failure, String hint) {
    boolean isTable() {
      return !view && failure == null;
    }
  }

  /**
   * A table that is not to be verified.
   *
   * @param table its full name, as in {@link Listed}
   * @param encrypted whether it has a key id; null when it cannot be loaded, as what is not an
   *     Iceberg table
   */
  public record LeftOut(String table, Boolean encrypted) {}

  /** What is to be verified, and what is not. */
  public record Selected(List<Listed> listed, List<LeftOut> leftOut) {}

  private final SparkSession spark;
  private final TableCatalog catalog;
  private final String[] namespace;
  private final EncryptedCatalog iceberg;

  /**
   * Those of a catalog's namespace, and those within it.
   *
   * @param namespace its parts; empty: the whole catalog
   */
  public CatalogTables(SparkSession spark, TableCatalog catalog, List<String> namespace) {
    this.spark = spark;
    this.catalog = catalog;
    this.namespace = namespace.toArray(String[]::new);
    this.iceberg = EngineCatalog.encryptedOrNull(catalog);
  }

  /**
   * Those that a name means.
   *
   * @param name of a catalog or a namespace of the session, with or without {@code .*} after it
   * @throws InvalidConfigurationException when it is no such name, or there is no such catalog
   * @throws NotSupportedException when the catalog has no tables
   */
  public static CatalogTables named(SparkSession spark, String name) {
    List<String> parts = TableNames.parts(spark, name);
    CatalogPlugin plugin = TableNames.catalog(spark, parts.get(0));
    if (plugin instanceof TableCatalog catalog) {
      return new CatalogTables(spark, catalog, parts.subList(1, parts.size()));
    }

    throw new NotSupportedException(
        String.format("Catalog %s has no tables", plugin.name()), "Give a catalog of tables.");
  }

  /** The name of the catalog. */
  public String catalogName() {
    return catalog.name();
  }

  /** The session. */
  SparkSession spark() {
    return spark;
  }

  /**
   * Lists tables and views.
   *
   * @throws TableNotFoundException when there is no such namespace
   */
  public List<Listed> listed() {
    return listed(new ArrayList<>());
  }

  /**
   * The same.
   *
   * @param walked gets the namespaces whose tables they are, from the outermost on; the empty one
   *     is the catalog
   */
  public List<Listed> listed(List<Namespace> walked) {
    if (namespace.length > 0 && !exists(namespace)) {
      throw new TableNotFoundException(
          String.format(
              "Catalog %s has no namespace %s", catalog.name(), SqlNames.namespace(namespace)),
          String.format("SHOW NAMESPACES IN %s lists them.", SqlNames.quoted(catalog.name())),
          null);
    }

    List<Listed> found = new ArrayList<>();
    add(namespace, found, walked);
    return found;
  }

  /** Whether an error says that a listed table is not an Iceberg table. */
  boolean isOfOtherFormat(Throwable error) {
    return catalog.name().equals(SESSION_CATALOG)
        && Causes.any(error, NoSuchIcebergTableException.class::isInstance);
  }

  /** Whether an error says that there is no such table; only {@link #stillListed} shows it. */
  static boolean isAbsent(Throwable error) {
    return Causes.any(error, NoSuchTableException.class::isInstance)
        || error instanceof TableNotFoundException;
  }

  /**
   * Which tables that were listed are still listed. Whether they can be loaded does not show this:
   * catalogs also say that a table does not exist when it is not an Iceberg table, or when this
   * user may not load it. Each namespace is listed once.
   *
   * @param names those of tables, as in {@link Listed}
   * @return also those that cannot be listed
   */
  Set<String> stillListed(Collection<String> names) {
    Map<String, Optional<Set<Identifier>>> namespaces = new HashMap<>();
    Set<String> found = new LinkedHashSet<>();
    for (String name : names) {
      Identifier table = TableNames.find(spark, name, catalog).identifier();
      boolean isListed =
          namespaces
              .computeIfAbsent(
                  String.join("\0", table.namespace()), key -> tablesIfListed(table.namespace()))
              .map(tables -> tables.contains(table))
              .orElse(true);
      if (isListed) {
        found.add(name);
      }
    }

    return found;
  }

  /** Empty: they cannot be listed. */
  private Optional<Set<Identifier>> tablesIfListed(String[] ofNamespace) {
    try {
      return Optional.of(tables(ofNamespace));
    } catch (NoSuchNamespaceException | org.apache.iceberg.exceptions.NoSuchNamespaceException e) {
      return Optional.of(Set.of());
    } catch (Exception e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      return Optional.empty();
    }
  }

  /** The KMS client that the tables share; null when there is no KMS. */
  public CachingKmsClient kmsOrNull() {
    return iceberg == null ? null : iceberg.context().kmsOrNull();
  }

  /** Whether a name is another table's by now than the one of a UUID, or that cannot be told. */
  boolean isOther(String name, String uuid) {
    catalog.invalidateTable(TableNames.find(spark, name, catalog).identifier());
    try {
      return !uuid.equals(TableLoader.load(spark, name).operations().current().uuid());
    } catch (Exception e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      return !isAbsent(e);
    }
  }

  /**
   * Leaves out tables.
   *
   * @param listed what {@link #listed} found
   * @param names tables as in SQL; those without a catalog are of this one
   * @throws TableNotFoundException when one of them is not a table that was listed: a name that is
   *     misspelt is not to pass for one that is left out
   */
  public Selected without(List<Listed> listed, List<String> names) {
    Set<String> known = new HashSet<>();
    listed.stream().filter(Listed::isTable).forEach(one -> known.add(one.name()));
    Set<String> left = new LinkedHashSet<>();
    List<String> unknown = new ArrayList<>();
    for (String name : names) {
      CatalogAndIdentifier found = TableNames.find(spark, name, catalog);
      Identifier table = found.identifier();
      String full = SqlNames.full(found.catalog().name(), table.namespace(), table.name());
      (known.contains(full) ? left : unknown).add(full);
    }

    if (!unknown.isEmpty()) {
      throw noTables(listed, unknown);
    }

    return new Selected(
        listed.stream().filter(one -> !(one.isTable() && left.contains(one.name()))).toList(),
        left.stream().map(name -> new LeftOut(name, isEncrypted(name))).toList());
  }

  private TableNotFoundException noTables(List<Listed> listed, List<String> unknown) {
    StringBuilder problem = new StringBuilder();
    problem.append(
        String.format(
            "Nothing was verified: these tables to leave out are not among those to verify: %s",
            String.join(", ", unknown)));
    listed.stream()
        .filter(one -> one.failure() != null)
        .forEach(one -> problem.append("; of ").append(one.name() + " " + one.failure()));
    return new TableNotFoundException(
        problem.toString(),
        String.format(
            "Give full names of tables, as in %s.db.t. A view has no files, and need not be left"
                + " out.",
            SqlNames.quoted(catalog.name())),
        null);
  }

  /** Whether a table has a key id, by its metadata; null when that cannot be had. */
  private Boolean isEncrypted(String table) {
    try {
      return TableLoader.load(spark, table).properties().containsKey(EncryptionProperties.KEY_ID);
    } catch (Exception e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      return null;
    }
  }

  private boolean exists(String[] namespace) {
    return catalog instanceof SupportsNamespaces namespaces && namespaces.namespaceExists(namespace)
        || isOnlyIceberg(namespace);
  }

  private String fullName(Identifier table) {
    return SqlNames.full(catalog.name(), table.namespace(), table.name());
  }

  private void add(String[] namespace, List<Listed> found, List<Namespace> walked) {
    walked.add(Namespace.of(namespace));
    try {
      Set<Identifier> views = views(namespace);
      for (Identifier table : tables(namespace)) {
        if (!views.contains(table)) {
          String name = fullName(table);
          found.add(new Listed(name, isSparksView(table), null, null));
        }
      }

      views.forEach(view -> found.add(new Listed(fullName(view), true, null, null)));
      within(namespace).forEach(one -> add(one, found, walked));
    } catch (NoSuchNamespaceException e) {
      // dropped meanwhile
    } catch (Exception e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      String name = SqlNames.full(catalog.name(), namespace);
      IcebergCryptoException ours = e instanceof IcebergCryptoException known ? known : null;
      found.add(
          new Listed(
              name,
              false,
              "its tables cannot be listed: " + (ours == null ? e.toString() : ours.problem()),
              ours == null ? "Check that the catalog lets this user list them." : ours.hint()));
    }
  }

  /** What catalogs say to the empty name that have tables in namespaces only. */
  private static boolean isRefusedName(Exception e) {
    return e instanceof NoSuchNamespaceException
        || e instanceof org.apache.iceberg.exceptions.NoSuchNamespaceException
        || e instanceof ValidationException
        || e instanceof IllegalArgumentException
        || e instanceof UnsupportedOperationException;
  }

  private Set<Identifier> tables(String[] namespace) throws NoSuchNamespaceException {
    Set<Identifier> all = new LinkedHashSet<>();
    try {
      all.addAll(List.of(catalog.listTables(namespace)));
    } catch (NoSuchNamespaceException | RuntimeException e) {
      boolean hasNone = namespace.length == 0 && isRefusedName(e);
      if (!hasNone && !isOnlyIceberg(namespace)) {
        throw e;
      }
    }

    if (isOnlyIceberg(namespace)) {
      iceberg
          .listTables(Namespace.of(namespace))
          .forEach(table -> all.add(Identifier.of(namespace, table.name())));
    }

    return all;
  }

  /** Whether the Iceberg catalog has a namespace that Spark's session catalog may not have. */
  private boolean isOnlyIceberg(String[] namespace) {
    return hasMetastore()
        && namespace.length > 0
        && iceberg.namespaceExists(Namespace.of(namespace));
  }

  private boolean hasMetastore() {
    return iceberg != null && catalog.name().equals(SESSION_CATALOG);
  }

  private List<String[]> within(String[] namespace) throws NoSuchNamespaceException {
    Map<String, String[]> all = new LinkedHashMap<>();
    if (catalog instanceof SupportsNamespaces namespaces) {
      String[][] listed =
          namespace.length == 0
              ? namespaces.listNamespaces()
              : namespaces.listNamespaces(namespace);
      Arrays.stream(listed).forEach(one -> all.put(String.join("\0", one), one));
    }

    if (hasMetastore() && namespace.length == 0) {
      iceberg
          .listNamespaces()
          .forEach(one -> all.putIfAbsent(String.join("\0", one.levels()), one.levels()));
    }

    return List.copyOf(all.values());
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
