package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.NamespaceKeys;
import io.icebergcrypto.catalog.OtherTables;
import io.icebergcrypto.spark.session.WriterOfV1;
import io.icebergcrypto.spark.values.ValueFunctions;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's SparkSessionCatalog with encryption, for {@code spark.sql.catalog.spark_catalog}:
 * Iceberg tables go through {@link EncryptedSparkCatalog}, all others to Spark's own catalog. A
 * table of another format is not created where it would be taken for an encrypted one, or take the
 * place of one.
 *
 * @param <T> Spark's session catalog
 */
public class EncryptedSessionCatalog<
        T extends TableCatalog & FunctionCatalog & SupportsNamespaces & ViewCatalog>
    extends CheckedSessionCatalog<T> {
  private EncryptedSparkCatalog iceberg;
  private TableCatalog session;

  /** What USING names Iceberg tables, in small letters. */
  private final Set<String> formatsOfIceberg = new HashSet<>(Set.of("iceberg"));

  /** Spark makes one by this constructor and then initializes it. */
  public EncryptedSessionCatalog() {}

  @Override
  public EncryptedCatalog encryptedCatalog() {
    return iceberg.encryptedCatalog();
  }

  @Override
  protected TableCatalog buildSparkCatalog(String name, CaseInsensitiveStringMap options) {
    this.iceberg = new EncryptedSparkCatalog();
    iceberg.initialize(name, options);
    for (String format : Set.of("parquet", "avro", "orc")) { // as in SparkSessionCatalog
      if (options.getBoolean(format + "-enabled", false)) {
        formatsOfIceberg.add(format);
      }
    }

    return iceberg;
  }

  @Override
  public void setDelegateCatalog(CatalogPlugin sparkSessionCatalog) {
    super.setDelegateCatalog(sparkSessionCatalog);
    this.session = (TableCatalog) sparkSessionCatalog;
  }

  private OtherTables others() {
    return encryptedCatalog().context().otherTables();
  }

  private static TableIdentifier identifier(Identifier ident) {
    return Spark3Util.identifierToTableIdentifier(ident);
  }

  // ---- tables of other formats

  @Override
  final void checkNew(Identifier ident, Map<String, String> properties) {
    String format = properties.get(TableCatalog.PROP_PROVIDER);
    if (format != null && !formatsOfIceberg.contains(format.toLowerCase(Locale.ROOT))) {
      others().checkNew(identifier(ident), properties);
    }
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    Set<String> set = new HashSet<>();
    for (TableChange change : changes) {
      if (change instanceof TableChange.SetProperty property) {
        set.add(property.property());
      }
    }

    if (!set.isEmpty() && !iceberg.tableExists(ident)) {
      others().checkProperties(identifier(ident), set);
    }

    return super.alterTable(ident, changes);
  }

  /** Spark's own catalog has no nested namespaces, and no paths. */
  @Override
  public void invalidateTable(Identifier ident) {
    iceberg.invalidateTable(ident);
    if (!(ident instanceof PathIdentifier) && ident.namespace().length == 1) {
      session.invalidateTable(ident);
    }
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    if (WriterOfV1.isAboutToReplace()) {
      others().checkNew(identifier(ident), Map.of());
      WriterOfV1.allow(identifier(ident));
    }

    return super.loadTable(ident);
  }

  /** Iceberg's catalog of Hive would drop any table of the metastore, and leave its files. */
  @Override
  public boolean dropTable(Identifier ident) {
    return !(ident instanceof PathIdentifier) && others().isNotIceberg(identifier(ident))
        ? session.dropTable(ident)
        : super.dropTable(ident);
  }

  // ---- namespaces: Spark's own catalog's; with a metastore, the Iceberg tables' catalog has them

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata)
      throws NamespaceAlreadyExistsException {
    NamespaceKeys keys = iceberg.encryptedCatalog().context().namespaceKeys();
    keys.check(Namespace.of(namespace), metadata);
    super.createNamespace(namespace, metadata);
    keys.checkKept(Namespace.of(namespace), metadata);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes)
      throws NoSuchNamespaceException {
    Map<String, String> set = new HashMap<>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty property) {
        set.put(property.property(), property.value());
      }
    }

    NamespaceKeys keys = iceberg.encryptedCatalog().context().namespaceKeys();
    keys.check(Namespace.of(namespace), set);
    super.alterNamespace(namespace, changes);
    keys.checkKept(Namespace.of(namespace), set);
  }

  /** With CASCADE, the metastore drops the namespace's tables, without a call for each. */
  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    if (cascade) {
      encryptedCatalog().context().checkDropOfTables(Namespace.of(namespace));
    }

    return super.dropNamespace(namespace, cascade);
  }

  @Override
  public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
    return ValueFunctions.load(
        ident, isFunctionNamespace(ident.namespace()), encryptedCatalog(), super::loadFunction);
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    return ValueFunctions.list(
        super.listFunctions(namespace), isFunctionNamespace(namespace), namespace);
  }
}
