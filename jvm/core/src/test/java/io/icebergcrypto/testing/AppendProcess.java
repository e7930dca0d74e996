package io.icebergcrypto.testing;

import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;

/** A process of its own that appends rows to db.t, one a commit. */
public final class AppendProcess {
  /** Of a property for Hadoop's configuration. */
  public static final String CONF = "conf.";

  private AppendProcess() {}

  /** Arguments: a file with the catalog's properties, the first id, and how many. */
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
      properties.load(file);
    }

    Map<String, String> all = new HashMap<>();
    properties.stringPropertyNames().forEach(key -> all.put(key, properties.getProperty(key)));
    Table table = open(all).loadTable(TableIdentifier.of(TestLake.DB, "t"));
    long first = Long.parseLong(args[1]);
    for (long id = first; id < first + Long.parseLong(args[2]); id++) {
      TestLake.append(table, id);
    }
  }

  /** The catalog of these properties, of which those with {@link #CONF} are Hadoop's. */
  public static Catalog open(Map<String, String> properties) {
    Configuration conf = new Configuration();
    NoChmodFileSystem.setIn(conf);
    Map<String, String> catalog = new HashMap<>();
    properties.forEach(
        (key, value) -> {
          if (key.startsWith(CONF)) {
            conf.set(key.substring(CONF.length()), value);
          } else {
            catalog.put(key, value);
          }
        });
    return CatalogUtil.buildIcebergCatalog("lake", catalog, conf);
  }
}
