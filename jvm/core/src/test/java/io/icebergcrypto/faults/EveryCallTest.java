package io.icebergcrypto.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.NumberedCalls;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import io.icebergcrypto.testing.NumberedDriver;
import io.icebergcrypto.testing.NumberedKms;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Each call to the storage, the KMS and the catalog's database goes wrong once, in each way, in
 * each operation. Whatever happens: a table has the rows of before or of after, all of its
 * snapshots can be read, nothing is plaintext, what was reported is true, and the operation can be
 * done again.
 */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST"})
class EveryCallTest extends LakeFixture {
  private static final Set<FileMagic> ENCRYPTED = EnumSet.of(FileMagic.AGS1, FileMagic.PARE);

  private static final List<Long> BEFORE = List.of(1L, 2L, 3L);

  /** By day those that make a commit, or delete. */
  private static final Set<Kind> KINDS =
      NIGHTLY ? EnumSet.allOf(Kind.class) : EnumSet.of(Kind.UPDATE, Kind.RENAME, Kind.DELETE);

  private int tables;

  @Override
  protected Set<Backend> byDay() {
    return EnumSet.of(Backend.JDBC, Backend.HADOOP);
  }

  @Override
  protected Map<String, String> properties() {
    Map<String, String> all = new HashMap<>();
    all.put("encryption.kms-impl", NumberedKms.class.getName());
    if (backend == Backend.JDBC) {
      NumberedDriver.register();
      all.put("uri", NumberedDriver.numbered(backend.properties(folder).get("uri")));
    }

    return all;
  }

  @TestFactory
  Iterable<DynamicTest> operations() {
    return EnumSet.allOf(Operation.class).stream()
        .map(operation -> DynamicTest.dynamicTest(operation.name(), () -> check(operation)))
        .toList();
  }

  private void check(Operation operation) throws IOException {
    Map<String, Integer> hits = new TreeMap<>();
    for (Fault fault : EnumSet.of(Fault.KILLED, Fault.FAILED, Fault.LOST)) {
      for (int number = 0; ; number++) {
        String hit = new One(operation, fault, number).run();
        if (hit == null) {
          break;
        }

        hits.merge(fault + " " + hit.substring(0, hit.indexOf(' ')), 1, Integer::sum);
      }
    }

    if (NIGHTLY) {
      System.out.println(backend + " " + operation + " " + hits);
    }

    assertThat(hits.isEmpty())
        .isEqualTo(backend == Backend.REST && operation == Operation.PROPERTIES);
  }

  /** One operation, at one call of which something goes wrong. */
  private final class One {
    private final Operation operation;
    private final Fault fault;
    private final int number;
    private final TableIdentifier name = TableIdentifier.of(TestLake.DB, "t" + tables++);
    private final Map<Long, List<Long>> snapshots = new HashMap<>();
    private String hit;

    private One(Operation operation, Fault fault, int number) {
      this.operation = operation;
      this.fault = fault;
      this.number = number;
    }

    /** Runs it; returns the call, or null if there are not as many. */
    private String run() throws IOException {
      String before = null;
      if (!operation.creates()) {
        Table table = Operation.table(catalog, name.name());
        learn(table);
        before = TestLake.metadata(table).metadataFileLocation();
      }

      Throwable error = null;
      try (EncryptedCatalog session = lake.open(Map.of())) {
        NumberedCalls.begin("/", KINDS, fault, number);
        try {
          operation.run(session, name);
        } catch (Exception | Error e) {
          error = e;
        } finally {
          this.hit = NumberedCalls.end();
        }

        try (EncryptedCatalog other = lake.open(Map.of())) {
          check(other, before, error);
        }

        // in the same session, and in another after it was killed
        try (EncryptedCatalog again = lake.open(Map.of())) {
          again(fault == Fault.KILLED ? again : session);
          check(again, "", null);
        }
      } catch (Exception | AssertionError e) {
        String told = String.format("%s, call %d: %s; was told: %s", fault, number, hit, error);
        throw new AssertionError(told, e);
      }

      return hit;
    }

    private void again(EncryptedCatalog session) {
      boolean isDone =
          session.tableExists(name)
              && TestLake.rows(session.loadTable(name)).equals(operation.after());
      if (!isDone || operation.after().equals(BEFORE)) {
        operation.run(session, name);
      }
    }

    private void learn(Table table) {
      table
          .snapshots()
          .forEach(
              snapshot ->
                  snapshots.put(
                      snapshot.snapshotId(), TestLake.rows(table, snapshot.snapshotId())));
    }

    private void check(EncryptedCatalog other, String before, Throwable error) throws IOException {
      boolean exists = other.tableExists(name);
      boolean done =
          operation.creates()
              ? exists
              : !TestLake.metadata(other.loadTable(name)).metadataFileLocation().equals(before);
      if (exists) {
        checkRows(other.loadTable(name), done);
      }

      if (error == null) {
        assertThat(done).as("it was reported as done").isTrue();
      } else if (fault != Fault.KILLED && !(error instanceof CommitStateUnknownException)) {
        assertThat(done).as("it was reported as not done").isFalse();
      }
    }

    private void checkRows(Table table, boolean done) throws IOException {
      assertThat(TestLake.rows(table)).isEqualTo(done ? operation.after() : BEFORE);
      for (Snapshot snapshot : table.snapshots()) {
        List<Long> known = snapshots.get(snapshot.snapshotId());
        List<Long> ids = TestLake.rows(table, snapshot.snapshotId());
        if (known != null) {
          assertThat(ids).isEqualTo(known);
        }
      }

      for (Path file : TestLake.files(table)) {
        if (Files.size(file) > 0 && !ENCRYPTED.contains(TestLake.magic(file))) {
          fail("plaintext: " + file);
        }
      }
    }
  }
}
