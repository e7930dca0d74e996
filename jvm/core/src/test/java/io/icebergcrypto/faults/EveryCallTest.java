package io.icebergcrypto.faults;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.BrokenAnswers;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.Lie;
import io.icebergcrypto.testing.NoLock;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import io.icebergcrypto.testing.NumberedDriver;
import io.icebergcrypto.testing.NumberedKms;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Each call to the storage, the KMS and the catalog's database or server goes wrong, in each way,
 * in each operation: see {@link Attempt}.
 */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST"})
class EveryCallTest extends LakeFixture {
  private static final Set<Kind> COMMITTING = EnumSet.of(Kind.UPDATE, Kind.RENAME, Kind.POST);

  /** One commit on top, and the metadata before is no longer in the log. */
  private static final Map<String, String> SHORT_LOG =
      Map.of("table-default.write.metadata.previous-versions-max", "1");

  /** By day those that make a commit, or delete. */
  private static final Set<Kind> KINDS =
      NIGHTLY ? EnumSet.allOf(Kind.class) : EnumSet.of(Kind.UPDATE, Kind.RENAME, Kind.DELETE);

  /** Those that by day fail in each way on JDBC, and once on Hadoop. */
  private static final String OFTEN = "APPEND|REPLACE|CREATE";

  /** Those whose commit by day is answered on JDBC, and the answer is lost. */
  private static final String COMMITS = "EXPIRE_ADDED";

  /** Those that by day are overtaken. */
  private static final String RACES = "APPEND|REPLACE";

  /** Those at which the KMS lies by day. */
  private static final String OF_KEYS = "APPEND|ROTATE_KEK";

  /** Of how many calls one is tried: by night of three, which the seed draws. */
  private static final int STEP = NIGHTLY && !Boolean.getBoolean("iceberg.crypto.soak") ? 3 : 1;

  /** For a look at one of them. */
  private static final String ONLY = System.getProperty("iceberg.crypto.operation", ".*");

  /** For a look at some ways on some backends, as "JDBC (fails|overtaken|buried|lies)". */
  private static final String WAY = System.getProperty("iceberg.crypto.faults", ".*");

  private BrokenAnswers server;
  private int tables;

  @Override
  protected Set<Backend> byDay() {
    return EnumSet.of(Backend.JDBC, Backend.HADOOP);
  }

  /** One, which the seed draws; {@code make soak} has all, and so has a look at some ways. */
  @Override
  protected Set<Backend> byNight() {
    List<Backend> all = List.of(Backend.JDBC, Backend.HADOOP, Backend.REST);
    return isDrawn()
        ? EnumSet.of(all.get(Math.floorMod(Fuzz.SEED / STEP, all.size())))
        : EnumSet.copyOf(all);
  }

  private static boolean isDrawn() {
    return STEP > 1 && WAY.equals(".*") && ONLY.equals(".*");
  }

  @Override
  protected Map<String, String> properties() {
    Map<String, String> all = new HashMap<>();
    all.put("encryption.kms-impl", NumberedKms.class.getName());
    if (backend == Backend.JDBC) {
      NumberedDriver.register();
      all.put("uri", NumberedDriver.numbered(backend.properties(folder).get("uri")));
    }

    if (backend == Backend.HADOOP) {
      all.put("lock-impl", NoLock.class.getName());
    }

    return all;
  }

  @BeforeEach
  void startServer() throws IOException {
    if (backend == Backend.REST && NIGHTLY) {
      this.server = new BrokenAnswers(Backend.restUri());
    }
  }

  @AfterEach
  void stopServer() {
    if (server != null) {
      server.close();
    }
  }

  private Map<String, String> way() {
    return server == null ? Map.of() : Map.of("uri", server.uri());
  }

  /** By night about a third of them, which the seed draws. */
  private Stream<Operation> operations() {
    return Operation.all().stream()
        .filter(operation -> operation.isOn(backend) && operation.toString().matches(ONLY))
        .filter(
            operation ->
                !isDrawn() || Math.floorMod(operation.toString().hashCode() + Fuzz.SEED, 3) == 0);
  }

  @FunctionalInterface
  private interface Check {
    void of(Operation operation, Reached reached) throws Exception;
  }

  private Iterable<DynamicTest> each(String what, String byDay, Check check) {
    Reached all = new Reached(backend + " " + what);
    List<DynamicTest> tests = new ArrayList<>();
    operations()
        .filter(operation -> NIGHTLY || operation.toString().matches(byDay))
        .filter(operation -> (backend + " " + what).matches(WAY))
        .forEach(
            operation ->
                tests.add(
                    DynamicTest.dynamicTest(
                        operation.toString(),
                        () -> {
                          Reached reached = new Reached(backend + " " + what + " " + operation);
                          try {
                            check.of(operation, reached);
                          } finally {
                            all.add(reached);
                            if (NIGHTLY) {
                              System.out.println(reached);
                            }
                          }
                        })));
    if (NIGHTLY && !tests.isEmpty()) {
      tests.add(DynamicTest.dynamicTest("in all", () -> System.out.println(all)));
    }

    return tests;
  }

  /** Tries one call after the other; those that commit also where only some are tried. */
  private void tryAll(
      Operation operation, Set<Kind> kinds, Fault fault, Operation rival, Lie lie, Reached reached)
      throws Exception {
    Set<Kind> committing = EnumSet.copyOf(kinds);
    committing.retainAll(COMMITTING);
    if (STEP > 1 && !committing.isEmpty()) {
      tryEach(operation, committing, 1, fault, rival, lie, reached);
    }

    if (STEP == 1 || !COMMITTING.containsAll(kinds)) {
      tryEach(operation, kinds, STEP, fault, rival, lie, reached);
    }
  }

  private void tryEach(
      Operation operation,
      Set<Kind> kinds,
      int step,
      Fault fault,
      Operation rival,
      Lie lie,
      Reached reached)
      throws Exception {
    for (int number = Math.floorMod(Fuzz.SEED, step); ; number += step) {
      TableIdentifier name = TableIdentifier.of(TestLake.DB, "t" + tables++);
      Attempt attempt = new Attempt(lake, catalog, way(), name, operation, fault, rival, lie);
      String hit = attempt.run(kinds, number);
      if (hit == null) {
        return;
      }

      boolean lies = fault == Fault.LIED || fault == Fault.LIES;
      String how = rival != null ? " by " + rival : lies ? " " + lie : "";
      reached.add(fault + how, Kind.valueOf(hit.substring(0, hit.indexOf(' '))));
    }
  }

  @TestFactory
  Iterable<DynamicTest> aCallFails() {
    Set<Fault> faults = EnumSet.of(Fault.KILLED, Fault.FAILED, Fault.LOST);
    if (NIGHTLY) {
      faults.addAll(EnumSet.of(Fault.EXPIRED, Fault.FULL));
    }

    return each(
        "fails",
        backend == Backend.JDBC ? OFTEN + "|" + COMMITS : OFTEN,
        (operation, reached) -> {
          boolean commits = !NIGHTLY && operation.toString().matches(COMMITS);
          boolean often = NIGHTLY || backend == Backend.JDBC && !commits;
          for (Fault fault : often ? faults : EnumSet.of(Fault.LOST)) {
            Set<Kind> kinds = commits ? EnumSet.of(Kind.UPDATE) : EnumSet.copyOf(KINDS);
            if (fault == Fault.FULL) {
              kinds.retainAll(Kind.OF_DISK);
            } else if (fault != Fault.FAILED && fault != Fault.EXPIRED) {
              kinds.retainAll(Kind.CHANGES); // killed at one that reads is killed before the next
            }

            tryAll(operation, kinds, fault, null, Lie.EMPTY, reached);
          }
        });
  }

  @TestFactory
  Iterable<DynamicTest> anotherClientIsFaster() {
    return each(
        "overtaken",
        backend == Backend.JDBC ? RACES : "",
        (operation, reached) -> {
          for (Operation rival : rivals(operation)) {
            tryAll(operation, KINDS, Fault.OVERTAKEN, rival, Lie.EMPTY, reached);
          }
        });
  }

  /** The answer is lost, and the log is short. */
  @TestFactory
  Iterable<DynamicTest> anotherClientCommitsOnTop() {
    return each(
        "buried",
        backend == Backend.JDBC ? RACES : "",
        (operation, reached) -> {
          for (Operation rival : rivals(operation)) {
            tryAll(operation.with(SHORT_LOG), COMMITTING, Fault.BURIED, rival, Lie.EMPTY, reached);
          }
        });
  }

  private List<Operation> rivals(Operation operation) {
    if (operation.rival() != null) {
      return List.of(operation.rival());
    }

    List<Operation> all = new ArrayList<>(List.of(RowOperations.append(7)));
    if (NIGHTLY) {
      all.add(KeyOperations.rotateMasterKey());
      all.add(KeyOperations.rotateKek());
      if (bearsExpiry(operation.toString())) {
        all.add(HistoryOperations.expire());
      }
    }

    return all;
  }

  /**
   * A first snapshot that is gone is not rolled back to; and but for REST's, Iceberg's replace
   * keeps the snapshots that it began with.
   */
  private boolean bearsExpiry(String operation) {
    return !operation.equals("ROLLBACK")
        && (backend == Backend.REST || !operation.matches("REPLACE|CREATE_OR_REPLACE"));
  }

  @TestFactory
  Iterable<DynamicTest> theKmsLies() {
    return each(
        "lies",
        backend == Backend.JDBC ? OF_KEYS : "",
        (operation, reached) -> {
          for (Fault fault : EnumSet.of(Fault.LIED, Fault.LIES)) {
            for (Lie lie : NIGHTLY ? EnumSet.allOf(Lie.class) : EnumSet.of(Lie.ANOTHER_KEY)) {
              tryAll(operation, Kind.OF_KMS, fault, null, lie, reached);
            }
          }
        });
  }
}
