package io.icebergcrypto.catalog;

import io.icebergcrypto.testing.Backend;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.ViewCatalog;
import org.apache.iceberg.view.ViewCatalogTests;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * Iceberg's own tests of what a catalog does, on a catalog that {@link CatalogContractTest} sets.
 * Not tests by themselves: some fail on stock catalogs, so results are compared.
 */
final class Contract {
  private Contract() {}

  /** The catalog under test. */
  static final class Subject {
    private final Backend backend;
    private final Function<Path, Map<String, String>> properties;
    private final Path folder;
    private Path current;

    /**
     * Says what to test.
     *
     * @param backend what keeps the tables
     * @param properties what a catalog in a folder is configured with
     * @param folder where tests get folders of their own
     */
    Subject(Backend backend, Function<Path, Map<String, String>> properties, Path folder) {
      this.backend = backend;
      this.properties = properties;
      this.folder = folder;
      this.current = folder;
    }

    Backend backend() {
      return backend;
    }

    void startTest() throws IOException {
      this.current = Files.createTempDirectory(folder, "test");
    }

    @SuppressWarnings("unchecked")
    <C extends Catalog> C open(String name, Map<String, String> more) {
      Map<String, String> all = new HashMap<>(properties.apply(current));
      all.putAll(DEFAULTS);
      all.putAll(more);
      try {
        return (C) CatalogUtil.buildIcebergCatalog(name, all, backend.conf(current));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    void endTest(Catalog catalog) throws IOException {
      if (backend.shared()) {
        backend.empty(catalog);
      }

      if (catalog instanceof Closeable closeable) {
        closeable.close();
      }
    }
  }

  /** What Iceberg's tests of default and override properties expect of every catalog. */
  private static final Map<String, String> DEFAULTS =
      Map.of(
          "table-default.default-key1", "catalog-default-key1",
          "table-default.default-key2", "catalog-default-key2",
          "table-default.override-key3", "catalog-default-key3",
          "table-override.override-key3", "catalog-override-key3",
          "table-override.override-key4", "catalog-override-key4");

  /** Set before each run; JUnit makes the test classes itself. */
  static Subject subject;

  /** CatalogTests on the subject. */
  static class Tables<C extends Catalog & SupportsNamespaces> extends CatalogTests<C> {
    private C catalog;

    @BeforeEach
    void open() throws IOException {
      subject.startTest();
      this.catalog = subject.open("contract", Map.of());
    }

    @AfterEach
    void close() throws IOException {
      subject.endTest(catalog);
    }

    @Override
    protected C catalog() {
      return catalog;
    }

    @Override
    protected C initCatalog(String name, Map<String, String> more) {
      return subject.open(name, more);
    }

    @Override
    protected boolean requiresNamespaceCreate() {
      return true;
    }

    @Override
    protected boolean supportsNestedNamespaces() {
      return subject.backend() != Backend.HIVE;
    }

    @Override
    protected boolean supportsNamespaceProperties() {
      return subject.backend() != Backend.HADOOP;
    }

    @Override
    protected boolean supportsServerSideRetry() {
      return subject.backend() == Backend.REST;
    }

    @Override
    protected boolean supportsNamesWithSlashes() {
      return subject.backend() == Backend.IN_MEMORY || subject.backend() == Backend.JDBC;
    }

    @Override
    protected boolean supportsNamesWithDot() {
      return subject.backend() == Backend.IN_MEMORY;
    }
  }

  /** ViewCatalogTests on the subject. */
  static class Views<C extends ViewCatalog & SupportsNamespaces> extends ViewCatalogTests<C> {
    private Catalog catalog;

    @BeforeEach
    void open() throws IOException {
      subject.startTest();
      this.catalog = subject.open("contract", Map.of());
    }

    @AfterEach
    void close() throws IOException {
      subject.endTest(catalog);
    }

    @Override
    @SuppressWarnings("unchecked")
    protected C catalog() {
      return (C) catalog;
    }

    @Override
    protected Catalog tableCatalog() {
      return catalog;
    }

    @Override
    protected boolean requiresNamespaceCreate() {
      return true;
    }

    @Override
    protected boolean supportsServerSideRetry() {
      return subject.backend() == Backend.REST;
    }
  }
}
