package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextForm;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.BrokenAnswers;
import io.icebergcrypto.testing.BrokenAnswers.Fault;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A REST server makes a commit, and its answer does not arrive as it was sent. No file of the
 * commit may be deleted, and nobody may be told that nothing was committed.
 */
@ParameterizedClass
@EnumSource(names = "REST")
class BrokenAnswersTest extends LakeFixture {
  private static final String COMMIT = "POST .*/tables/t";

  private BrokenAnswers proxy;
  private EncryptedCatalog behindProxy;

  /** Whose answer is broken in each way by day. */
  private static final Set<Operation> BY_DAY = EnumSet.of(Operation.CREATE, Operation.APPEND);

  /** After which a look at the table tells whether a commit was made that adds to it. */
  private static final Set<Fault> FOUND = EnumSet.of(Fault.LOST, Fault.BAD_GATEWAY, Fault.TWICE);

  /** A kind of commit. */
  private enum Operation {
    CREATE {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        TestLake.createTable(test.behindProxy, "t", Map.of());
      }
    },
    CREATE_WITH_ROWS {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        Transaction transaction =
            test.behindProxy
                .buildTable(T, TestLake.SCHEMA)
                .withProperty("encryption.key-id", "k1")
                .createTransaction();
        transaction.newAppend().appendFile(TestLake.write(transaction.table(), 2)).commit();
        transaction.commitTransaction();
      }
    },
    FIRST_KEY,
    APPEND,
    STAGE {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        table.newAppend().appendFile(TestLake.write(table, 2)).stageOnly().commit();
      }
    },
    PROPERTIES {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        table.updateProperties().set("a", "b").commit();
      }
    },
    TRANSACTION {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        Transaction transaction = table.newTransaction();
        transaction.updateProperties().set("a", "b").commit();
        transaction.newAppend().appendFile(TestLake.write(transaction.table(), 2)).commit();
        transaction.commitTransaction();
      }
    },
    REPLACE {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        Transaction transaction =
            test.behindProxy.buildTable(T, TestLake.SCHEMA).replaceTransaction();
        transaction.newAppend().appendFile(TestLake.write(transaction.table(), 2)).commit();
        transaction.commitTransaction();
      }

      @Override
      Set<Long> rows() {
        return Set.of(2L);
      }
    },
    EXPIRE {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        table.expireSnapshots().expireOlderThan(System.currentTimeMillis()).retainLast(1).commit();
      }
    },
    ROTATE_MASTER_KEY {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        MasterKeyRotation.run(test.behindProxy, T, "k2", false);
      }
    },
    ROTATE_KEK {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        KekRotation.run(test.behindProxy, T, false, false);
      }
    },
    ENCRYPT {
      @Override
      void run(BrokenAnswersTest test, Table table) {
        TableMetadata base = TestLake.metadata(table);
        TableMetadata next = TestLake.encrypted(test.catalog, T, base);
        KeyIdChange.commit(test.behindProxy, T, base, next);
      }

      @Override
      Set<Long> rows() {
        return Set.of();
      }
    };

    void run(BrokenAnswersTest test, Table table) {
      TestLake.append(table, 2);
    }

    /** What is in the table afterwards. */
    Set<Long> rows() {
      return switch (this) {
        case CREATE -> Set.of();
        case APPEND, TRANSACTION, EXPIRE -> Set.of(1L, 2L);
        case CREATE_WITH_ROWS, FIRST_KEY -> Set.of(2L);
        default -> Set.of(1L);
      };
    }

    boolean creates() {
      return this == CREATE || this == CREATE_WITH_ROWS;
    }

    /** Whether it adds snapshots or keys, by which the commit is known. */
    boolean adds() {
      return this != PROPERTIES && this != EXPIRE;
    }
  }

  @BeforeEach
  void startProxy() throws IOException {
    this.proxy = new BrokenAnswers(Backend.restUri());
    this.behindProxy = waiting(60_000);
  }

  private EncryptedCatalog waiting(int ms) throws IOException {
    return lake.open(
        Map.of(
            "uri",
            proxy.uri(),
            "rest.client.max-retries", // of loads, which it repeats
            "1",
            "rest.client.socket-timeout-ms",
            String.valueOf(ms)));
  }

  /** Breaks answers, which the client does not wait for if they are late. */
  private void breaks(String requests, Fault fault) throws IOException {
    behindProxy.close();
    this.behindProxy = waiting(fault == Fault.LATE ? BrokenAnswers.CLIENT_WAITS_MS : 60_000);
    proxy.breaks(requests, fault);
  }

  @AfterEach
  void stopProxy() throws IOException {
    behindProxy.close();
    proxy.close();
  }

  @ParameterizedTest
  @EnumSource
  void aCommitThatWasMadeKeepsItsFiles(Operation operation) throws IOException {
    boolean isAll = NIGHTLY || BY_DAY.contains(operation);
    for (Fault fault :
        isAll ? EnumSet.complementOf(EnumSet.of(Fault.CONFLICT)) : EnumSet.of(Fault.TWICE)) {
      String what = operation + " " + fault;
      prepare(operation);
      breaks(COMMIT, fault);
      Table table = operation.creates() ? null : behindProxy.loadTable(T);
      Throwable error = catchThrowable(() -> operation.run(this, table));
      assertThat(proxy.repaired()).as(what).isPositive();
      if (operation.adds() && FOUND.contains(fault)) {
        assertThat(error).as(what).isNull();
      } else if (error != null) {
        assertThat(error)
            .as(what)
            .isInstanceOf(CommitStateUnknownException.class)
            .hasMessageNotContaining("Nothing was committed");
      }

      Table there = lake.open(Map.of()).loadTable(T);
      assertThat(TestLake.ids(there)).as(what).isEqualTo(new TreeSet<>(operation.rows()));
      assertThat(TestLake.reachable(there)).as(what).allSatisfy(file -> assertThat(file).exists());
      assertThat(catalog.dropTable(T, true)).as(what).isTrue();
    }
  }

  /** The server takes both; a KEK of a table without a key id tells that its key id was removed. */
  @Test
  void aRotationBesideADecryptionLeavesNoKek() throws IOException {
    prepare(Operation.APPEND);
    TableMetadata base = TestLake.metadata(behindProxy.loadTable(T));
    BaseTable plaintext = plaintextOf(base);
    AtomicInteger rotations = new AtomicInteger();
    proxy.overtakes(
        COMMIT,
        () -> {
          KekRotation.run(catalog, T, false, false);
          rotations.incrementAndGet();
        });
    KeyIdChange.decrypt(behindProxy, T, base, plaintext.operations().current());
    assertThat(rotations).hasValue(1);
    Table there = lake.open(Map.of()).loadTable(T);
    assertThat(TestLake.ids(there)).containsExactly(3L);
    assertThat(TestLake.metadata(there).encryptionKeys()).isEmpty();
  }

  /** Else its files would be deleted, as those of a commit that was refused. */
  @Test
  void aTableThatWasDecryptedAndCannotBeLoadedIsSaidToBe() throws IOException {
    prepare(Operation.APPEND);
    TableMetadata base = TestLake.metadata(behindProxy.loadTable(T));
    BaseTable plaintext = plaintextOf(base);
    proxy.overtakes(COMMIT, () -> proxy.breaks("GET .*/tables/t", Fault.HTML));
    Throwable told =
        catchThrowable(
            () -> KeyIdChange.decrypt(behindProxy, T, base, plaintext.operations().current()));
    assertThat(proxy.repaired()).isPositive();
    assertThat(told)
        .isInstanceOf(CommitStateUnknownException.class)
        .hasMessageContaining("Table lake.db.t: it was decrypted, but cannot be loaded: ")
        .hasMessageContaining("It need not be decrypted again.");
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(3L);
  }

  /** A plaintext table of the same metadata, with one row, which is not committed. */
  private BaseTable plaintextOf(TableMetadata base) {
    BaseTable plaintext =
        catalog
            .context()
            .uncommitted(
                new MetadataInMemory(
                    catalog.context().unchecked(T).operations(), PlaintextForm.of(base)),
                "t");
    TestLake.append(plaintext, 3);
    return plaintext;
  }

  /** The files of the commit are those of the table then. */
  @Test
  void aConflictWithItsOwnCommitIsNone() throws IOException {
    prepare(Operation.ENCRYPT);
    TableMetadata base = TestLake.metadata(behindProxy.loadTable(T));
    EncryptedKey kek = Kek.make("lake.db.t", base, "k1", catalog.context().kms());
    TableMetadata encrypted =
        TableMetadata.buildFrom(EncryptedForm.of(base, "k1", List.of(kek)))
            .setProperties(Map.of(EncryptionProperties.PLAINTEXT_METADATA, "/kept.metadata.json"))
            .build();
    proxy.breaks(COMMIT, Fault.CONFLICT);
    KeyIdChange.commit(behindProxy, T, base, encrypted);
    assertThat(proxy.repaired()).isOne();

    TableMetadata now = TestLake.metadata(catalog.loadTable(T));
    BaseTable plaintext = plaintextOf(now);
    proxy.breaks(COMMIT, Fault.CONFLICT);
    KeyIdChange.decrypt(behindProxy, T, now, plaintext.operations().current());
    assertThat(proxy.repaired()).isOne();
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(3L);

    Table table = behindProxy.loadTable(T);
    proxy.breaks(COMMIT, Fault.CONFLICT);
    TestLake.append(table, 4);
    assertThat(proxy.repaired()).isOne();
    assertThat(TestLake.rows(lake.open(Map.of()).loadTable(T))).containsExactly(3L, 4L);
  }

  @Test
  void aTableOfAnotherClientIsNotTakenForItsOwn() throws IOException {
    proxy.overtakes(COMMIT, () -> TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1));
    assertThatThrownBy(() -> Operation.CREATE_WITH_ROWS.run(this, null))
        .isInstanceOf(AlreadyExistsException.class);
    Table there = lake.open(Map.of()).loadTable(T);
    assertThat(TestLake.ids(there)).containsExactly(1L);
    assertThat(TestLake.reachable(there)).allSatisfy(file -> assertThat(file).exists());
  }

  /** Iceberg would add its rows twice, or delete its manifests. */
  @Test
  void aTransactionWhoseFirstSnapshotHasExpiredSinceWasMade() throws IOException {
    prepare(Operation.APPEND);
    Transaction two = behindProxy.loadTable(T).newTransaction();
    two.newAppend().appendFile(TestLake.write(two.table(), 2)).commit();
    two.newAppend().appendFile(TestLake.write(two.table(), 3)).commit();
    proxy.breaks(COMMIT, Fault.CONFLICT);
    Runnable expiry = () -> TestLake.expire(catalog.loadTable(T));
    proxy.overtakes(COMMIT, () -> proxy.overtakes("GET .*/tables/t", expiry));
    assertTimeoutPreemptively(Duration.ofMinutes(1), two::commitTransaction);
    assertThat(proxy.repaired()).isOne();
    Table there = lake.open(Map.of()).loadTable(T);
    assertThat(there.snapshots()).hasSize(1);
    assertThat(TestLake.rows(there)).containsExactly(1L, 2L, 3L);
  }

  @Test
  void aTableThatWasCreatedAndCannotBeLoadedIsSaidToBeThere() {
    proxy.breaks("GET .*/tables/t", Fault.HTML);
    Throwable told = catchThrowable(() -> TestLake.createTable(behindProxy, "t", Map.of()));
    assertThat(proxy.repaired()).isPositive();
    assertThat(told)
        .isInstanceOf(CommitStateUnknownException.class)
        .hasMessageContaining("Table lake.db.t: it was created, but cannot be loaded: ")
        .hasMessageContaining("Load it again. It need not be created again.");
    TestLake.append(behindProxy.loadTable(T), 1);
    assertThat(TestLake.rows(catalog.loadTable(T))).containsExactly(1L);
  }

  private void prepare(Operation operation) throws IOException {
    switch (operation) {
      case CREATE, CREATE_WITH_ROWS -> {}
      case FIRST_KEY ->
          lake.openStock()
              .buildTable(T, TestLake.SCHEMA)
              .withProperty("format-version", "3")
              .withProperty("encryption.key-id", "k1")
              .create();
      case ENCRYPT -> lake.openStock().buildTable(T, TestLake.SCHEMA).create();
      default -> {
        Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
        if (operation == Operation.EXPIRE) {
          TestLake.append(table, 2);
        }
      }
    }
  }

  /** What is said of such an answer accuses nobody, and the next load is as ever. */
  @ParameterizedTest
  @EnumSource
  void anAnswerToALoadIsNoReasonToActOnTheTable(Fault fault) throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    breaks("GET .*/tables/t", fault);
    Throwable error = catchThrowable(() -> TestLake.ids(behindProxy.loadTable(T)));
    assertThat(proxy.repaired()).isPositive();
    if (error != null) {
      assertThat(error).isNotInstanceOf(TamperedException.class);
      assertThat(error.getMessage()).doesNotContain("restore", "drop", "cut off");
    }

    assertThat(TestLake.ids(behindProxy.loadTable(T))).containsExactly(1L);
  }

  /** The key of a commit is not lost because a replica does not have it yet. */
  @ParameterizedTest
  @EnumSource(names = {"FIRST_KEY", "APPEND", "TRANSACTION", "ROTATE_KEK", "ENCRYPT"})
  void aServerThatLagsIsNotAccused(Operation operation) throws IOException {
    assumeTrue(NIGHTLY || BY_DAY.contains(operation), "left to the night");
    prepare(operation);
    Table table = behindProxy.loadTable(T);
    proxy.breaks("(GET|POST) .*/tables/t", Fault.STALE);
    Throwable error = catchThrowable(() -> operation.run(this, table));
    assertThat(proxy.repaired()).isPositive();
    if (error != null) {
      assertThat(error)
          .isInstanceOf(CommitStateUnknownException.class)
          .hasMessageContainingAll("a replica that lags behind", "load the table again")
          .hasMessageNotContainingAny("cannot be read", "drop the table", "roll back");
    }

    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T)))
        .isEqualTo(new TreeSet<>(operation.rows()));
    table.refresh();
    assertThat(TestLake.ids(table)).isEqualTo(new TreeSet<>(operation.rows()));
  }
}
