package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The tables that Spark knows by their paths. Iceberg's SparkCatalog opens paths with HadoopTables,
 * without its catalog and so without encryption; in this SparkCatalog a path is the name of a
 * table.
 */
final class PathTables extends EncryptedSparkCatalog {
  private final EncryptedCatalog byPath;

  /**
   * Makes the view of one catalog's tables by path.
   *
   * @param catalog whose KMS and settings are used
   * @param options the options that Spark's catalog was configured with
   */
  PathTables(EncryptedCatalog catalog, String name, CaseInsensitiveStringMap options) {
    this.byPath = catalog.byPath();
    Map<String, String> own = new HashMap<>(options.asCaseSensitiveMap());
    own.put(CatalogProperties.CACHE_ENABLED, "false"); // as Iceberg has tables by path
    initialize(name, new CaseInsensitiveStringMap(own));
  }

  @Override
  EncryptedCatalog open(String name, CaseInsensitiveStringMap properties) {
    return byPath;
  }

  /**
   * What this catalog calls a table: {@code /path#files,snapshot_id_1} is {@code
   * `/path`.files.snapshot_id_1}, the form in which Iceberg adds a metadata table, a branch or a
   * snapshot to a name.
   */
  static Identifier identifier(PathIdentifier path) {
    String location = path.location();
    int hash = location.endsWith("#") ? -1 : location.lastIndexOf('#');
    List<String> names = new ArrayList<>();
    names.add(hash < 0 ? location : location.substring(0, hash));
    List<String> selectors =
        hash < 0 ? List.of() : List.of(location.substring(hash + 1).split(","));
    selectors.stream().filter(s -> MetadataTableType.from(s) != null).forEach(names::add);
    selectors.stream().filter(s -> MetadataTableType.from(s) == null).forEach(names::add);
    String last = names.remove(names.size() - 1);
    return Identifier.of(names.toArray(String[]::new), last);
  }
}
