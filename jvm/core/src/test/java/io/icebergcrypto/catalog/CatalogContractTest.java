package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.discovery.UniqueIdSelector;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * The encrypting catalog does what the catalog behind does: what fails of Iceberg's CatalogTests
 * and ViewCatalogTests on it fails on the stock catalog too, and is listed here by name.
 *
 * <p>Encrypted, the stock control has the same table properties. CatalogTests adds data files that
 * do not exist and have no keys, which {@code encryption.plaintext-files=allow} permits; manifests
 * and lists are encrypted.
 */
class CatalogContractTest {
  private static final Map<String, String> NO_KEY = Map.of();
  private static final Map<String, String> KEY_ID = Map.of("table-default.encryption.key-id", "k1");

  /** What fails on stock catalogs, and so here: Iceberg's tests expect of each what some cannot. */
  private static final Map<Backend, Set<String>> FAIL =
      Map.of(
          Backend.IN_MEMORY,
          Set.of("testLoadTableWithMissingMetadataFile"),
          Backend.JDBC,
          Set.of("tableCreationWithoutNamespace"),
          Backend.REST,
          Set.of("createTableInUniqueLocation", "tableCreationWithoutNamespace"),
          Backend.HIVE,
          Set.of(),
          Backend.HADOOP, // it renames nothing, and a table's place is its name
          Set.of(
              "createTableInUniqueLocation",
              "dropAfterRenameDoesntCorruptTable",
              "renameTableNamespaceMissing",
              "tableCreationWithoutNamespace",
              "testCompleteCreateOrReplaceTransactionCreate",
              "testCompleteCreateOrReplaceTransactionReplace",
              "testCompleteCreateTable",
              "testCompleteCreateTransaction",
              "testCompleteCreateTransactionMultipleSchemas",
              "testCompleteCreateTransactionV2",
              "testCompleteReplaceTransaction",
              "testConcurrentCreateTransaction",
              "testCreateTableWithDefaultColumnValue",
              "testListNamespaces",
              "testListNestedNamespaces",
              "testLoadTable",
              "testLoadTableWithMissingMetadataFile",
              "testRegisterTable",
              "testRenameTable",
              "testRenameTableDestinationTableAlreadyExists",
              "testRenameTableMissingSourceTable",
              "testUUIDValidation",
              "testUpdateTableAssignmentSpecConflict",
              "testUpdateTableSchemaAssignmentConflict",
              "testUpdateTableSchemaConflict",
              "testUpdateTableSpecConflict"));

  /** What fails of tables of version 3, or with a key id in their properties, on stock ones too. */
  private static final Set<String> FAIL_WITH_A_KEY =
      Set.of(
          "createTableTransaction",
          "replaceTableTransaction",
          "testCompleteCreateTransactionV2",
          "testUpdateTableSpecThenRevert");

  /** And on REST: a replacement that meets another one. */
  private static final Set<String> FAIL_WITH_A_KEY_ON_REST =
      Set.of(
          "testConcurrentReplaceTransactionPartitionSpec",
          "testConcurrentReplaceTransactionPartitionSpec2",
          "testConcurrentReplaceTransactionSchema",
          "testConcurrentReplaceTransactionSchema2",
          "testConcurrentReplaceTransactionSortOrder",
          "testConcurrentReplaceTransactionSortOrderConflict",
          "testConcurrentReplaceTransactions");

  private static final Set<String> FAIL_OF_VIEWS =
      Set.of("defaultViewProperties", "overrideViewProperties");

  @TempDir private Path folder;

  @ParameterizedTest
  @EnumSource
  void tablesAreAsOnTheStockCatalog(Backend backend) throws Exception {
    leaveToTheNightUnless(false);
    assertNoFailureOfOurs(Contract.Tables.class, backend, NO_KEY, NO_KEY, FAIL.get(backend));
  }

  @ParameterizedTest
  @EnumSource
  void encryptedTablesAreAsOnTheStockCatalog(Backend backend) throws Exception {
    leaveToTheNightUnless(backend == Backend.JDBC);
    Map<String, String> keystore = TestKeystore.create(folder, "k1").properties();
    Map<String, String> ours = new HashMap<>(KEY_ID);
    ours.putAll(keystore);
    ours.put("encryption.plaintext-files", "allow");
    ours.put("encryption.expose-key-metadata", "true"); // testLoadMetadataTable

    Map<String, String> stock = new HashMap<>(KEY_ID);
    stock.put("table-default.format-version", "3");
    if (backend == Backend.HIVE) { // the one stock catalog that does encrypt
      stock.putAll(keystore);
      stock.remove("encryption.kms-type");
      stock.put("encryption.kms-impl", "io.icebergcrypto.kms.KeystoreKmsClient");
    }

    Set<String> expected = new TreeSet<>(FAIL.get(backend));
    expected.addAll(FAIL_WITH_A_KEY);
    if (backend == Backend.REST) {
      expected.addAll(FAIL_WITH_A_KEY_ON_REST);
    }

    assertNoFailureOfOurs(Contract.Tables.class, backend, ours, stock, expected);
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "HADOOP") // has no views
  void viewsAreAsOnTheStockCatalog(Backend backend) throws Exception {
    leaveToTheNightUnless(false);
    assertNoFailureOfOurs(Contract.Views.class, backend, NO_KEY, NO_KEY, FAIL_OF_VIEWS);
  }

  private static void leaveToTheNightUnless(boolean byDay) {
    assumeTrue(LakeFixture.NIGHTLY || byDay, "left to the night");
  }

  private void assertNoFailureOfOurs(
      Class<?> tests,
      Backend backend,
      Map<String, String> ours,
      Map<String, String> stock,
      Set<String> expected)
      throws IOException {
    Map<String, Throwable> failures =
        run(List.of(DiscoverySelectors.selectClass(tests)), backend, backend::encrypted, ours, 50);
    if (!failures.isEmpty()) {
      List<UniqueIdSelector> again =
          failures.keySet().stream().map(DiscoverySelectors::selectUniqueId).toList();
      Set<String> onStock = run(again, backend, backend::properties, stock, again.size()).keySet();
      assertThat(failures).as("what fails on the stock catalog too").containsOnlyKeys(onStock);
    }

    assertThat(names(failures.keySet())).isEqualTo(expected);
  }

  /** The names of test methods. */
  private static Set<String> names(Set<String> testIds) {
    return testIds.stream()
        .map(id -> id.replaceFirst(".*\\[(?:method|test-template):(\\w+)\\(.*", "$1"))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /** Runs tests and gives the failures by test id. */
  private Map<String, Throwable> run(
      List<? extends DiscoverySelector> tests,
      Backend backend,
      Function<Path, Map<String, String>> catalog,
      Map<String, String> more,
      int atLeast)
      throws IOException {
    Map<String, Throwable> failures = new TreeMap<>();
    AtomicInteger finished = new AtomicInteger();
    Contract.subject =
        new Contract.Subject(
            backend,
            at -> {
              Map<String, String> properties = catalog.apply(at);
              properties.putAll(more);
              return properties;
            },
            Files.createTempDirectory(folder, "run"));
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request().selectors(tests).build(),
            new TestExecutionListener() {
              @Override
              public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (test.isTest()) {
                  finished.incrementAndGet();
                }
                if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                  failures.put(test.getUniqueId(), result.getThrowable().orElseThrow());
                }
              }
            });
    assertThat(finished).as("tests run").hasValueGreaterThanOrEqualTo(atLeast);
    return failures;
  }
}
