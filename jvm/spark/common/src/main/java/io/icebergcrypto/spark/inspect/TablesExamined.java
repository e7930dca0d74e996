package io.icebergcrypto.spark.inspect;

import static java.util.Comparator.comparing;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.Finding;
import io.icebergcrypto.audit.Finding.Harm;
import io.icebergcrypto.audit.TableDoctor;
import io.icebergcrypto.audit.TableDoctor.Examined;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.spark.table.CatalogTables;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.EachTable.Left;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.table.TableNames;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Examines tables of Spark's catalogs with {@link TableDoctor}: ours, and stock Iceberg's. */
public final class TablesExamined {
  /** Findings of each harm, and key ids: a lake may have a hundred thousand tables. */
  private static final int KEPT = 1000;

  /** Most of the time goes by waiting for servers. */
  private static final int THREADS = 16;

  private final SparkSession spark;
  private final Set<String> tables = new TreeSet<>();
  private final Set<String> named = new HashSet<>();
  private final Map<Harm, Integer> counts = new EnumMap<>(Harm.class);
  private final Map<Harm, List<Map<String, Object>>> kept = new EnumMap<>(Harm.class);
  private final Set<String> keyIds = new TreeSet<>();
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
   *     by harm, the worst first; {@code findings} in that order and {@code key_ids}, a thousand of
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
          Examined one = all.examine(name);
          all.add(name, one);
          return one;
        });
    return all.toMap();
  }

  /** A name that is no namespace's is to be a table's. */
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
        unlisted(Left.of(name, e));
      }

      return;
    }

    for (Listed one : listed) {
      if (one.view()) {
        others++;
      } else if (one.failure() != null) {
        unlisted(Left.of(one));
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

  private void unlisted(Left left) {
    String problem =
        String.format("The tables of %s cannot be listed: %s", left.table(), left.problem());
    String hint =
        left.hint().isEmpty() ? "Check that the catalog can be loaded, and lists." : left.hint();
    add(left.table(), new Finding(Harm.UNCHECKED, problem, hint));
  }

  /** Null: there is no such Iceberg table. */
  private Examined examine(String name) {
    try {
      CatalogAndIdentifier found = TableNames.find(spark, name);
      Catalog catalog = catalog(found.catalog());
      return catalog == null
          ? null
          : new TableDoctor(catalog)
              .examine(Spark3Util.identifierToTableIdentifier(found.identifier()));
    } catch (Exception | LinkageError e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      Finding finding =
          new Finding(
              Harm.UNCHECKED,
              String.format(
                  "Table %s: it cannot be examined: %s", name, Left.of(name, e).problem()),
              "Check the table's name, and that its catalog can be loaded.");
      return new Examined(null, List.of(finding));
    }
  }

  /** The Iceberg catalog below Spark's, without a cache in front; null: it is none of Iceberg's. */
  private static Catalog catalog(CatalogPlugin plugin) {
    Catalog ours = EngineCatalog.encryptedOrNull(plugin);
    return ours == null && plugin instanceof HasIcebergCatalog stock
        ? stock.icebergCatalog()
        : ours;
  }

  private synchronized void add(String name, Examined one) {
    if (one != null) {
      examined++;
      if (one.keyId() != null) {
        encrypted++;
        if (keyIds.size() < KEPT) {
          keyIds.add(one.keyId());
        }
      }

      one.findings().forEach(finding -> add(name, finding));
    } else if (named.contains(name)) {
      String problem = String.format("Table %s: there is no such Iceberg table", name);
      add(name, new Finding(Harm.UNCHECKED, problem, "Check its name."));
    } else {
      others++; // of another format, or it has gone meanwhile
    }
  }

  private void add(String table, Finding finding) {
    counts.merge(finding.harm(), 1, Integer::sum);
    List<Map<String, Object>> same =
        kept.computeIfAbsent(finding.harm(), harm -> new ArrayList<>());
    if (same.size() < KEPT) {
      Map<String, Object> values = new LinkedHashMap<>();
      values.put("table", table);
      values.putAll(finding.toMap());
      same.add(values);
    }
  }

  private Map<String, Object> toMap() {
    Map<String, Integer> labelled = new LinkedHashMap<>();
    counts.forEach((harm, count) -> labelled.put(harm.label(), count));
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
