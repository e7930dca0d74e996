package io.icebergcrypto.catalog.behind;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * Tables by their paths, as Iceberg's {@link HadoopTables} keeps them: on disk each is a table of a
 * Hadoop catalog whose warehouse is the folder above. A table's identifier is its location, without
 * a namespace. It may be the location of a metadata file, too: such a table can only be read.
 */
public final class PathCatalog extends ReopeningHadoopCatalog {
  /** Any will do: no table's place depends on it. */
  private static final String WAREHOUSE = "file:///";

  /**
   * Makes one.
   *
   * @param catalogProperties of which those count here that give new tables their properties
   * @param reporter the metrics reporter
   */
  public static PathCatalog of(
      String name,
      Map<String, String> catalogProperties,
      MetricsReporter reporter,
      Configuration conf) {
    Map<String, String> properties =
        new HashMap<>(conf.getPropsWithPrefix(HadoopTables.LOCK_PROPERTY_PREFIX));
    properties.putAll(HandoverMetricsReporter.propertiesFor(reporter));
    properties.put(CatalogProperties.WAREHOUSE_LOCATION, WAREHOUSE);
    catalogProperties.forEach(
        (key, value) -> {
          if (key.startsWith(CatalogProperties.TABLE_DEFAULT_PREFIX)
              || key.startsWith(CatalogProperties.TABLE_OVERRIDE_PREFIX)) {
            properties.put(key, value);
          }
        });
    PathCatalog catalog = new PathCatalog();
    catalog.setConf(conf);
    catalog.initialize(name, properties);
    return catalog;
  }

  private PathCatalog() {}

  @Override
  protected String defaultWarehouseLocation(TableIdentifier table) {
    if (table.hasNamespace()) { // of a metadata table: no table is there
      return String.join("#", table.namespace().levels()) + "#" + table.name();
    }

    Path path = new Path(table.name());
    return path.isAbsolute() ? table.name() : qualified(path).toString();
  }

  /** A relative path as an absolute one: metadata is authenticated with its place. */
  private Path qualified(Path path) {
    try {
      return path.getFileSystem(getConf()).makeQualified(path);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot tell where " + path + " is", e);
    }
  }

  @Override
  protected TableOperations newTableOps(TableIdentifier table) {
    return isMetadataFile(table)
        ? new StaticTableOperations(table.name(), new HadoopFileIO(getConf()))
        : super.newTableOps(table);
  }

  @Override
  public boolean dropTable(TableIdentifier table, boolean purge) {
    if (isMetadataFile(table)) {
      throw new UnsupportedOperationException("Cannot drop a table by its metadata file: " + table);
    }

    return new HadoopTables(getConf()).dropTable(table.name(), purge);
  }

  @Override
  public List<TableIdentifier> listTables(Namespace namespace) {
    throw new UnsupportedOperationException("Tables by their paths cannot be listed");
  }

  /** As Iceberg tells them apart. */
  private static boolean isMetadataFile(TableIdentifier table) {
    return table.name().contains("metadata.json");
  }
}
