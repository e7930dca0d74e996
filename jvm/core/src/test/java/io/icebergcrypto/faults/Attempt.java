package io.icebergcrypto.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.faults.Operation.Trait;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.testing.Lie;
import io.icebergcrypto.testing.NumberedCalls;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import io.icebergcrypto.testing.NumberedKms;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;

/**
 * One operation, at one call of which something goes wrong. In any case: a table has the rows from
 * before or after, all of its snapshots can be read with a KMS that tells the truth, nothing is
 * plaintext, what was reported is true and accuses nobody, and the operation can be done again, in
 * the same session.
 */
final class Attempt {
  private static final Set<FileMagic> ENCRYPTED = EnumSet.of(FileMagic.AGS1, FileMagic.PARE);

  private static final long BESIDE = 7;

  private final TestLake lake;
  private final Map<String, String> way;
  private final TableIdentifier name;
  private final Operation operation;
  private final Fault fault;
  private final Operation rival;
  private final Lie lie;
  private final Map<Long, List<Long>> snapshots = new HashMap<>();
  private Set<Path> files = Set.of();
  private Operation.Step always;
  private List<Long> before;
  private boolean rivalDone;
  private Throwable bystander;
  private EncryptedCatalog honest;

  /**
   * Says what, and where.
   *
   * @param shared a session without other properties, at which nothing goes wrong
   * @param way properties by which the session reaches the catalog
   * @param name of a table that is not there yet
   * @param rival what another client does, for {@link Fault#OVERTAKEN} and {@link Fault#BURIED};
   *     null: another row
   */
  Attempt(
      TestLake lake,
      EncryptedCatalog shared,
      Map<String, String> way,
      TableIdentifier name,
      Operation operation,
      Fault fault,
      Operation rival,
      Lie lie) {
    this.lake = lake;
    this.honest = shared;
    this.way = way;
    this.name = name;
    this.operation = operation;
    this.fault = fault;
    this.lie = lie;
    this.rival =
        operation.rival() != null
            ? operation.rival()
            : rival != null ? rival : RowOperations.append(BESIDE);
  }

  /**
   * Runs it.
   *
   * @param kinds the calls that count
   * @param number which of them goes wrong
   * @return the call, or null if there are not as many
   */
  String run(Set<Kind> kinds, int number) throws Exception {
    Map<String, String> all = new HashMap<>(operation.properties(name));
    if (all.isEmpty()) {
      return run(kinds, number, all);
    }

    try (EncryptedCatalog own = lake.open(all)) {
      this.honest = own;
      return run(kinds, number, all);
    }
  }

  private String run(Set<Kind> kinds, int number, Map<String, String> properties) throws Exception {
    this.always = operation.prepare(honest, name, lake);
    this.before = rows();
    learn();
    properties.putAll(way);
    Throwable error = null;
    String hit = null;
    try (EncryptedCatalog session = lake.open(properties)) {
      NumberedKms.liesWith(lie);
      NumberedCalls.begin("/", kinds, fault, number, this::beside);
      try {
        operation.run(session, name);
      } catch (Exception | Error e) {
        error = e;
      } finally {
        hit = NumberedCalls.end();
      }

      check(error);
      again(session);
    } catch (Exception | AssertionError e) {
      boolean lied = fault == Fault.LIED || fault == Fault.LIES;
      String told =
          String.format(
              "%s%s, call %d: %s; was told: %s", fault, lied ? " " + lie : "", number, hit, error);
      AssertionError failure = new AssertionError(told, e);
      if (error != null) {
        failure.addSuppressed(error);
      }

      throw failure;
    }

    return hit;
  }

  private boolean hasRival() {
    return fault == Fault.OVERTAKEN || fault == Fault.BURIED;
  }

  /** Another client, which is not counted. */
  private void beside() {
    try {
      if (hasRival()) {
        rival.run(honest, operation.where(honest, name));
        this.rivalDone = true;
        return;
      }

      try (EncryptedCatalog other = lake.open(operation.properties(name))) { // has to ask the KMS
        TableIdentifier at = operation.where(other, name);
        if (other.tableExists(at)) {
          TestLake.rows(other.loadTable(at));
        }
      }
    } catch (Exception | Error e) {
      this.bystander = e; // it may be refused
    }
  }

  private List<Long> rows() {
    TableIdentifier at = operation.where(honest, name);
    try {
      return TestLake.rows(honest.loadTable(at));
    } catch (NoSuchTableException e) {
      return null;
    } catch (IcebergCryptoException e) {
      if (operation.is(Trait.STARTS_BROKEN)) {
        return Operation.BROKEN;
      }

      throw e;
    }
  }

  private void learn() {
    if (before == null || before.equals(Operation.BROKEN)) {
      return;
    }

    Table table = honest.loadTable(operation.where(honest, name));
    for (Snapshot snapshot : table.snapshots()) {
      snapshots.put(snapshot.snapshotId(), TestLake.rows(table, snapshot.snapshotId()));
    }

    this.files = TestLake.reachable(table);
  }

  /** Whether it was done; null: nothing tells. */
  private Boolean isDone(List<Long> now) throws Exception {
    List<Long> after = operation.after(before);
    if (operation.done() != null) {
      return now != null && !now.equals(Operation.BROKEN) && operation.done().isSo(honest, name);
    }

    return Objects.equals(after, before) ? null : (Boolean) Objects.equals(now, after);
  }

  private void check(Throwable error) throws Exception {
    checkAccusesNobody(error);
    if (!hasRival() && !operation.is(Trait.STARTS_BROKEN)) { // a broken one is told to all
      checkAccusesNobody(bystander);
    }

    List<Long> now = rows();
    boolean unknown =
        fault == Fault.KILLED
            || operation.is(Trait.MAY_BE_DENIED)
                && (fault != Fault.FAILED || operation.is(Trait.STARTS_BROKEN))
            || Causes.any(error, CommitStateUnknownException.class::isInstance);
    if (hasRival()) {
      assertThat(now).isIn(outcomes(error == null, unknown));
      checkRivalsKeys(now);
    } else {
      checkReport(now, error == null, unknown);
    }

    Boolean done = hasRival() ? null : isDone(now);
    checkFiles(now, Boolean.FALSE.equals(done) || !operation.is(Trait.FORGETS));
    always.run(honest, name);
  }

  private void checkReport(List<Long> now, boolean reported, boolean unknown) throws Exception {
    Boolean done = isDone(now);
    List<Long> after = operation.after(before);
    if (operation.is(Trait.REFUSED)) {
      assertThat(now).isEqualTo(before);
      return;
    }

    assertThat(now)
        .isIn(
            unknown || done == null || operation.is(Trait.IN_STEPS)
                ? states(before, after)
                : states(done ? after : before));
    if (reported) {
      assertThat(done).as("it was reported as done").isNotEqualTo(Boolean.FALSE);
    } else if (!unknown) {
      assertThat(done).as("it was reported as not done").isNotEqualTo(Boolean.TRUE);
    }
  }

  /** A REST server applies a commit that began before to what the other has committed. */
  private void checkRivalsKeys(List<Long> now) throws Exception {
    TableIdentifier at = operation.where(honest, name);
    if (rivalDone
        && rival.is(Trait.LASTS)
        && now != null
        && !now.equals(Operation.BROKEN)
        && !honest.context().behind().isRest()
        && EncryptionProperties.keyId(honest.loadTable(at).properties()) != null) {
      assertThat(rival.done().isSo(honest, at)).as("%s still holds", rival).isTrue();
    }
  }

  /** The rows that there may be when two have acted. */
  private List<List<Long>> outcomes(boolean reported, boolean unknown) {
    List<List<Long>> all = new ArrayList<>();
    if (reported || unknown) {
      all.add(rivalDone ? rival.after(operation.after(before)) : operation.after(before));
      all.add(rivalDone ? operation.after(rival.after(before)) : operation.after(before));
    }

    if (!reported) {
      all.add(rivalDone ? rival.after(before) : before);
    }

    return all;
  }

  @SafeVarargs
  private static List<List<Long>> states(List<Long>... some) {
    List<List<Long>> all = new ArrayList<>(); // null is one
    for (List<Long> one : some) {
      all.add(one);
    }

    return all;
  }

  private void checkFiles(List<Long> now, boolean keepsSnapshots) throws IOException {
    if (keepsSnapshots && (!hasRival() || !rival.is(Trait.FORGETS))) {
      assertThat(files).as("earlier files").allMatch(Files::exists);
    }

    if (now == null || now.equals(Operation.BROKEN)) {
      return;
    }

    TableIdentifier at = operation.where(honest, name);
    Table table = honest.loadTable(at);
    for (Snapshot snapshot : table.snapshots()) {
      List<Long> known = snapshots.get(snapshot.snapshotId());
      if (known == null && operation.is(Trait.STARTS_BROKEN)) {
        continue; // what was broken before need not be repaired in each
      }

      List<Long> ids = TestLake.rows(table, snapshot.snapshotId());
      if (known != null) {
        assertThat(ids).isEqualTo(known);
      }
    }

    if (keepsSnapshots && (!hasRival() || !rival.is(Trait.FORGETS))) {
      assertThat(snapshots.keySet())
          .as("earlier snapshots")
          .allMatch(id -> table.snapshot(id) != null);
    }

    if (EncryptionProperties.keyId(table.properties()) != null) {
      assertThat(EncryptionKeys.of(honest, at).keys()).allMatch(key -> key.problem() == null);
    }

    for (Path file :
        operation.is(Trait.LEAVES_PLAINTEXT) ? List.<Path>of() : TestLake.files(table)) {
      if (Files.size(file) > 0 && !ENCRYPTED.contains(TestLake.magic(file))) {
        fail("plaintext: " + file);
      }
    }
  }

  /**
   * The storage, the KMS and the catalog failed, or another client was faster: no more than that.
   */
  private static void checkAccusesNobody(Throwable error) {
    if (error == null) {
      return;
    }

    assertThat(
            Causes.any(
                error,
                e ->
                    e instanceof TamperedException && !(e instanceof BadWrappedKeyException)
                        || e instanceof PlaintextException))
        .as("it accuses someone: %s", error)
        .isFalse();
    assertThat(String.valueOf(error)).doesNotContain("purge_without_key");
  }

  /** In the same session, and in another after it was killed. */
  private void again(EncryptedCatalog session) throws Exception {
    if (hasRival()) {
      return;
    }

    Boolean done = isDone(rows());
    if (!Boolean.TRUE.equals(done) || operation.is(Trait.REPEATS)) {
      operation.run(fault == Fault.KILLED ? honest : session, name);
    }

    List<Long> now = rows();
    assertThat(now).as("after it was done again").isEqualTo(operation.after(before));
    assertThat(isDone(now)).as("done again").isNotEqualTo(Boolean.FALSE);
    if (!operation.is(Trait.FORGETS)) {
      assertThat(files).as("earlier files").allMatch(Files::exists);
    }

    always.run(honest, name);
  }
}
