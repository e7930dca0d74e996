package io.icebergcrypto.testing;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What tests start with that run on several backends: a lake of their own with the namespace db,
 * and a keystore with the keys k1 and k2.
 */
public abstract class LakeFixture {
  public static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");

  /** {@code make nightly} */
  public static final boolean NIGHTLY = Boolean.getBoolean("iceberg.crypto.nightly");

  @Parameter protected Backend backend;
  @TempDir protected Path folder;
  protected TestLake lake;
  protected EncryptedCatalog catalog;

  /** Properties of all encrypting catalogs of a test, beside the keystore. */
  protected Map<String, String> properties() {
    return Map.of();
  }

  /**
   * The backends that {@code make test} takes; those beside are left to {@code make nightly}. Where
   * they do not differ, it is the quickest of the class.
   */
  protected Set<Backend> byDay() {
    List<String> own = List.of(getClass().getAnnotation(EnumSource.class).names());
    return Backend.QUICKEST.stream()
        .filter(one -> own.isEmpty() || own.contains(one.name()))
        .limit(1)
        .collect(Collectors.toSet());
  }

  /** The backends that {@code make nightly} takes; those beside are left to {@code make soak}. */
  protected Set<Backend> byNight() {
    return EnumSet.allOf(Backend.class);
  }

  /** A test's tag may name one more backend that it has by day, because it differs there. */
  @BeforeEach
  protected void openLake(TestInfo test) throws IOException {
    boolean isOfDay = byDay().contains(backend) || test.getTags().contains(backend.name());
    assumeTrue(NIGHTLY ? byNight().contains(backend) : isOfDay, "left to the night");
    Map<String, String> all = new HashMap<>(TestKeystore.create(folder, "k1", "k2").properties());
    Map<String, String> own = properties();
    if (own.containsKey("encryption.kms-impl")) {
      all.remove("encryption.kms-type");
    }

    all.putAll(own);
    this.lake = new TestLake(backend, folder, all);
    this.catalog = lake.open(Map.of());
    catalog.createNamespace(TestLake.DB);
  }

  @AfterEach
  protected void closeLake() throws IOException {
    if (catalog == null) {
      return; // left to the night
    }

    catalog.close();
    if (backend.shared()) {
      Catalog stock = lake.openStock();
      backend.empty(stock);
      ((Closeable) stock).close();
    }
  }
}
