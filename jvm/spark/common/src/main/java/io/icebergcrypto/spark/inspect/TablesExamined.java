package io.icebergcrypto.spark.inspect;

import static java.util.Comparator.comparing;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.audit.diagnosis.TableDiagnosis;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.spark.table.CatalogTables;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.EachTable.Left;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.table.TableNames;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchIcebergTableException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Examines tables of Spark's catalogs with {@link TableDiagnosis}: ours, and stock Iceberg's. */
public final class TablesExamined {
  /** Findings of each kind, and key ids: a lake may have a hundred thousand tables. */
  private static final int KEPT = 1000;

  /** Most of the time goes by waiting for servers. */
  private static final int THREADS = 16;

  private record Place(Catalog catalog, Namespace namespace) {
    Set<TableIdentifier> tables() {
      return Set.copyOf(catalog.listTables(namespace));
    }
  }

  /** A table that was listed, and that the catalog does not find. */
  private record Absent(
      String name, Place place, TableIdentifier identifier, NoSuchTableException error) {}

  private final SparkSession spark;
  private final Set<String> tables = new TreeSet<>();
  private final Set<String> named = new HashSet<>();
  private final Map<Kind, Integer> counts = new EnumMap<>(Kind.class);
  private final Map<Kind, List<Map<String, Object>>> kept = new EnumMap<>(Kind.class);
  private final Set<String> keyIds = new TreeSet<>();
  private final Queue<Absent> absent = new ConcurrentLinkedQueue<>();
  private int examined;
  private int encrypted;
  private int others;

  private TablesExamined(SparkSession spark) {
    this.spark = spark;
  }

  /**
   * Examines tables. What is wrong, and what kept one from being examined, is in the result.
   *
   * @param names of catalogs, namespaces or tables
   * @param progress who is told how far it is
   * @return {@code examined} and {@code encrypted}, how many Iceberg tables, and those with a key
   *     id; {@code others}, how many views and tables of other formats; {@code counts} of findings
   *     by kind, the worst first; {@code findings} in that order and {@code key_ids}, a thousand of
   *     each
   */
  public static Map<String, Object> of(SparkSession spark, List<String> names, Progress progress) {
    TablesExamined all = new TablesExamined(spark);
    names.forEach(all::list);
    EachTable.map(
        spark,
        List.copyOf(all.tables),
        THREADS,
        progress,
        name -> {
          all.examine(name);
          return name;
        });
    all.addAbsent();
    return all.toMap();
  }

  /** A name that is not a namespace's must be a table's. */
  private void list(String name) {
    List<Listed> listed;
    try {
      listed = CatalogTables.named(spark, name).listed();
    } catch (Exception | LinkageError e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      if (e instanceof InvalidConfigurationException && isOfParts(name)) {
        named.add(name);
        tables.add(name);
      } else {
        Left left = Left.of(name, e);
        unlisted(name, "its tables cannot be listed: " + left.problem(), left.hint());
      }

      return;
    }

    for (Listed one : listed) {
      if (one.view()) {
        others++;
      } else if (one.failure() != null) {
        Left left = Left.of(one);
        unlisted(left.table(), left.problem(), left.hint());
      } else {
        tables.add(one.name());
      }
    }
  }

  private boolean isOfParts(String name) {
    try {
      return TableNames.parts(spark, name).size() > 1;
    } catch (InvalidConfigurationException e) {
      return false;
    }
  }

  private void unlisted(String name, String problem, String hint) {
    String known = hint.isEmpty() ? "Check that the catalog can be loaded, and lists." : hint;
    add(name, Finding.of(Kind.UNCHECKED, problem, known));
  }

  private void examine(String name) {
    try {
      CatalogAndIdentifier found = TableNames.find(spark, name);
      Catalog catalog = catalog(found.catalog());
      TableIdentifier identifier = Spark3Util.identifierToTableIdentifier(found.identifier());
      examine(name, catalog, identifier);
    } catch (Exception | LinkageError e) { // Spark's of Scala are checked, and not declared
      unchecked(name, e);
    }
  }

  private void examine(String name, Catalog catalog, TableIdentifier identifier) {
    try {
      add(name, catalog == null ? null : TableDiagnosis.atAGlance(catalog, identifier));
    } catch (NoSuchIcebergTableException | NoSuchNamespaceException e) {
      add(name, (TableDiagnosis) null);
    } catch (NoSuchTableException e) {
      absent.add(new Absent(name, new Place(catalog, identifier.namespace()), identifier, e));
    }
  }

  /** Catalogs also say that a table does not exist when this user may not load it. */
  private void addAbsent() {
    Map<Place, Set<TableIdentifier>> listed = new HashMap<>();
    for (Absent one : absent) {
      try {
        if (listed.computeIfAbsent(one.place(), Place::tables).contains(one.identifier())) {
          unchecked(one.name(), one.error());
        } else {
          add(one.name(), (TableDiagnosis) null);
        }
      } catch (NoSuchNamespaceException e) {
        add(one.name(), (TableDiagnosis) null);
      } catch (RuntimeException e) {
        unchecked(one.name(), e);
      }
    }
  }

  private void unchecked(String name, Throwable e) {
    CancelledException.rethrow(e);
    count(null);
    String problem = "it cannot be examined: " + Left.of(name, e).problem();
    String hint = "Check the table's name, and that its catalog can be loaded.";
    add(name, Finding.of(Kind.UNCHECKED, problem, hint));
  }

  /**
   * The Iceberg catalog below Spark's, without a cache in front; null if it is not one of
   * Iceberg's.
   */
  private static Catalog catalog(CatalogPlugin plugin) {
    Catalog ours = EngineCatalog.encryptedOrNull(plugin);
    return ours == null && plugin instanceof HasIcebergCatalog stock
        ? stock.icebergCatalog()
        : ours;
  }

  /** Null: it is not a table of Iceberg. */
  private void add(String name, TableDiagnosis one) {
    if (one != null) {
      count(one.keyId());
      one.findings().forEach(finding -> add(name, finding));
    } else if (named.contains(name)) {
      add(name, Finding.of(Kind.UNCHECKED, "there is no such Iceberg table", "Check its name."));
    } else {
      countOther(); // of another format, or it has gone meanwhile
    }
  }

  private synchronized void count(String keyId) {
    examined++;
    if (keyId != null) {
      encrypted++;
      if (keyIds.size() < KEPT) {
        keyIds.add(keyId);
      }
    }
  }

  private synchronized void countOther() {
    others++;
  }

  private synchronized void add(String table, Finding finding) {
    counts.merge(finding.kind(), 1, Integer::sum);
    List<Map<String, Object>> same =
        kept.computeIfAbsent(finding.kind(), kind -> new ArrayList<>());
    if (same.size() < KEPT) {
      Map<String, Object> values = new LinkedHashMap<>();
      values.put("table", table);
      values.putAll(finding.toMap());
      same.add(values);
    }
  }

  private Map<String, Object> toMap() {
    Map<String, Integer> labelled = new LinkedHashMap<>();
    counts.forEach((kind, count) -> labelled.put(kind.label(), count));
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("examined", examined);
    values.put("encrypted", encrypted);
    values.put("others", others);
    values.put("counts", labelled);
    kept.values().forEach(same -> same.sort(comparing(one -> (String) one.get("table"))));
    values.put("findings", kept.values().stream().flatMap(List::stream).toList());
    values.put("key_ids", List.copyOf(keyIds));
    return values;
  }
}
