package io.icebergcrypto.testing;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.ViewCatalog;

/** The real catalogs that tests put behind the encrypting one. */
public enum Backend {
  IN_MEMORY,
  JDBC,
  HADOOP,
  REST,
  HIVE;

  /** In this order: on the first two metadata is signed, too. */
  public static final List<Backend> QUICKEST = List.of(JDBC, HADOOP, REST, HIVE, IN_MEMORY);

  /** The properties with which a stock catalog of this kind keeps its tables in a folder. */
  public Map<String, String> properties(Path folder) {
    Map<String, String> properties = new HashMap<>();
    properties.put("warehouse", folder.resolve("warehouse").toString());
    switch (this) {
      case IN_MEMORY ->
          properties.put("catalog-impl", "org.apache.iceberg.inmemory.InMemoryCatalog");
      case JDBC -> {
        properties.put("type", "jdbc");
        properties.put("uri", "jdbc:sqlite:" + folder.resolve("jdbc.db") + "?busy_timeout=30000");
        properties.put("jdbc.schema-version", "V1");
      }
      case HADOOP -> properties.put("type", "hadoop");
      case REST -> {
        properties.put("type", "rest");
        properties.put("uri", restUri());
        properties.remove("warehouse");
      }
      case HIVE -> properties.put("type", "hive");
      default -> throw new IllegalStateException(name());
    }

    return properties;
  }

  /** The same catalog behind the encrypting one. */
  public Map<String, String> encrypted(Path folder) {
    Map<String, String> properties = properties(folder);
    String type = properties.remove("type");
    String impl = properties.put("catalog-impl", "io.icebergcrypto.catalog.EncryptedCatalog");
    if (type != null) {
      properties.put("encryption.catalog-type", type);
    } else {
      properties.put("encryption.catalog-impl", impl);
    }

    return properties;
  }

  /** System property: the Derby database of the embedded metastore. */
  public static final String METASTORE = "iceberg.crypto.metastore";

  /** System property: where the REST server listens. */
  public static final String REST_URI = "iceberg.crypto.rest-uri";

  /** What all tests of this JVM share: the metastore's database, the REST server's files. */
  private static Path sharedFolder;

  private static synchronized Path sharedFolder() throws IOException {
    if (sharedFolder == null) {
      Path folder = Files.createTempDirectory("iceberg-crypto");
      Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder.toFile())));
      sharedFolder = folder;
    }

    return sharedFolder;
  }

  /**
   * Iceberg keeps one pool of clients of embedded metastores in a JVM, regardless of their
   * databases: so there is one database in a JVM, which no test deletes.
   */
  private static synchronized String metastore() throws IOException {
    if (System.getProperty(METASTORE) == null) {
      System.setProperty(METASTORE, sharedFolder().resolve("derby").toString());
    }

    return System.getProperty(METASTORE);
  }

  /** The one REST server of a JVM, which takes longer to start than most tests run. */
  public static synchronized String restUri() {
    if (System.getProperty(REST_URI) == null) {
      try {
        System.setProperty(REST_URI, RestServer.start(sharedFolder()));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    return System.getProperty(REST_URI);
  }

  /** Whether all tests of a JVM share what is behind, and so have to leave it empty. */
  public boolean shared() {
    return this == REST || this == HIVE;
  }

  /** Drops all that is in a catalog of this kind. */
  public void empty(Catalog catalog) throws IOException {
    ((SupportsNamespaces) catalog).listNamespaces().forEach(namespace -> empty(catalog, namespace));
    if (this == REST) {
      delete(RestServer.warehouse(sharedFolder()).toFile());
    }
  }

  private void empty(Catalog catalog, Namespace namespace) {
    SupportsNamespaces namespaces = (SupportsNamespaces) catalog;
    if (this != HIVE) {
      namespaces.listNamespaces(namespace).forEach(child -> empty(catalog, child));
    }

    catalog.listTables(namespace).forEach(table -> catalog.dropTable(table, false));
    if (catalog instanceof ViewCatalog views) {
      views.listViews(namespace).forEach(views::dropView);
    }

    if (!namespace.equals(Namespace.of("default"))) {
      namespaces.dropNamespace(namespace);
    }
  }

  private static void delete(File file) {
    File[] children = file.listFiles();
    for (File child : children == null ? new File[0] : children) {
      delete(child);
    }

    file.delete();
  }

  /** Read from Hadoop's files once, and not for every catalog. */
  private static final Configuration DEFAULTS = new Configuration();

  static {
    NoChmodFileSystem.setIn(DEFAULTS);
  }

  /** A Hadoop configuration, with an embedded metastore on Derby for Hive. */
  public Configuration conf(Path folder) throws IOException {
    Configuration conf = new Configuration(DEFAULTS);
    if (this == HIVE) {
      Files.createDirectories(folder.resolve("warehouse"));
      conf.set(
          "javax.jdo.option.ConnectionURL",
          "jdbc:derby:;databaseName=" + metastore() + ";create=true");
      conf.set("datanucleus.connectionPoolingType", "NONE");
      conf.set("datanucleus.schema.autoCreateAll", "true");
      conf.set("hive.metastore.schema.verification", "false");
      conf.set("hive.metastore.warehouse.dir", folder.resolve("warehouse").toString());
      conf.set("iceberg.engine.hive.lock-enabled", "false");
    }

    return conf;
  }
}
