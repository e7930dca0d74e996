package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.audit.Finding;
import io.icebergcrypto.audit.Finding.Harm;
import io.icebergcrypto.audit.TableDoctor;
import io.icebergcrypto.audit.TableDoctor.Examined;
import io.icebergcrypto.catalog.OurCatalog;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.spark.verify.scan.TableNames;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.iceberg.util.Tasks;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Examines tables of Spark's catalogs with {@link TableDoctor}: ours, and stock Iceberg's. */
public final class TablesExamined {
  private TablesExamined() {}

  /**
   * Examines tables, several at once: most of the time goes by waiting for servers.
   *
   * @param names their full names
   * @return for each, in the same order: {@code table, iceberg} (whether there is such an Iceberg
   *     table), {@code key_id, findings}
   */
  public static List<Object> of(SparkSession spark, List<String> names) {
    Object[] examined = new Object[names.size()];
    Tasks.range(names.size())
        .executeWith(AsCaller.workers())
        .run(i -> examined[i] = examine(spark, names.get(i)));
    return List.of(examined);
  }

  private static Map<String, Object> examine(SparkSession spark, String name) {
    SparkSession.setActiveSession(spark); // this is a thread of a pool
    Examined examined;
    try {
      CatalogAndIdentifier found = TableNames.find(spark, name);
      Catalog catalog = catalog(found.catalog());
      examined =
          catalog == null
              ? null
              : new TableDoctor(catalog)
                  .examine(Spark3Util.identifierToTableIdentifier(found.identifier()));
    } catch (RuntimeException e) {
      String problem = e instanceof IcebergCryptoException known ? known.problem() : e.toString();
      Finding finding =
          new Finding(
              Harm.UNCHECKED,
              String.format("Table %s: it cannot be examined: %s", name, problem),
              "Check the table's name, and that its catalog can be loaded.");
      examined = new Examined(null, List.of(finding));
    }

    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", name);
    values.put("iceberg", examined != null);
    values.put("key_id", examined == null ? null : examined.keyId());
    values.put(
        "findings",
        examined == null ? List.of() : examined.findings().stream().map(Finding::toMap).toList());
    return values;
  }

  /** The Iceberg catalog below Spark's, without a cache in front; null: it is none of Iceberg's. */
  private static Catalog catalog(CatalogPlugin plugin) {
    Catalog ours = OurCatalog.encryptedOrNull(plugin);
    return ours == null && plugin instanceof HasIcebergCatalog stock
        ? stock.icebergCatalog()
        : ours;
  }
}
