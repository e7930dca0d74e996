package io.icebergcrypto.catalog.behind;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.ExpireSnapshots.CleanupLevel;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.types.Types;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What is said of a commit for which the catalog behind reports a conflict, when it was made and
 * when it was not, after whatever others have committed since.
 */
@ParameterizedClass
@ValueSource(booleans = {false, true})
class CommitOutcomeTest {
  private final InMemoryCatalog catalog = new InMemoryCatalog();
  private final boolean signed;

  CommitOutcomeTest(boolean signed) {
    this.signed = signed;
  }

  @BeforeEach
  void create() {
    catalog.initialize("behind", Map.of());
    catalog.createNamespace(TestLake.DB);
  }

  @AfterEach
  void close() throws IOException {
    catalog.close();
  }

  private static String unique(String prefix) {
    return prefix + System.nanoTime();
  }

  private static void append(Table table) {
    table.newFastAppend().appendFile(file()).commit();
  }

  private static DataFile file() {
    return DataFiles.builder(PartitionSpec.unpartitioned())
        .withPath("memory:/" + System.nanoTime() + ".parquet")
        .withFileSizeInBytes(1)
        .withRecordCount(1)
        .build();
  }

  private static void expire(Table table) {
    table
        .expireSnapshots()
        .cleanupLevel(CleanupLevel.NONE)
        .expireOlderThan(Long.MAX_VALUE)
        .commit();
  }

  private static long first(Table table) {
    return table.history().get(0).snapshotId();
  }

  private static void addKey(Table table) {
    TableOperations ops = ((BaseTable) table).operations();
    TableMetadata base = ops.refresh();
    ByteBuffer bytes = ByteBuffer.wrap(new byte[16]);
    EncryptedKey key = new BaseEncryptedKey(unique("key"), bytes, "k1", Map.of());
    ops.commit(base, TableMetadata.buildFrom(base).addEncryptionKey(key).build());
  }

  /** A table for whose commits the catalog reports a conflict, after others have committed. */
  private final class Conflicting implements ForwardingOperations {
    private final TableOperations below;
    private final boolean made;
    private final Runnable since;

    private Conflicting(TableOperations below, boolean made, Runnable since) {
      this.below = below;
      this.made = made;
      this.since = since;
    }

    @Override
    public TableOperations below() {
      return below;
    }

    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      TableMetadata wanted =
          signed
              ? TableMetadata.buildFrom(metadata)
                  .discardChanges()
                  .withMetadataLocation(null)
                  .build()
              : metadata;
      CommitOutcome.commit("t", new Answer(), base, wanted);
    }

    /** Of the catalog. */
    private final class Answer implements ForwardingOperations {
      @Override
      public TableOperations below() {
        return below;
      }

      @Override
      public void commit(TableMetadata base, TableMetadata metadata) {
        if (made) {
          below.commit(base, metadata);
        }

        since.run();
        throw new CommitFailedException("a conflict");
      }
    }
  }

  /** A commit, or what others commit after it. */
  private record Change(String name, Consumer<Table> run) {
    private Change then(Change next) {
      return new Change(name + ", " + next.name, run.andThen(next.run));
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private static final Change NOTHING = new Change("nothing", table -> {});
  private static final Change APPEND = new Change("append", CommitOutcomeTest::append);
  private static final Change EXPIRE = new Change("expire", CommitOutcomeTest::expire);
  private static final Change SET =
      new Change("set", table -> table.updateProperties().set(unique("p"), "").commit());
  private static final Change KEY = new Change("key", CommitOutcomeTest::addKey);
  private static final Change COLUMN =
      new Change(
          "column",
          table -> table.updateSchema().addColumn(unique("c"), Types.LongType.get()).commit());
  private static final Change TAG =
      new Change(
          "tag",
          table ->
              table
                  .manageSnapshots()
                  .createTag(unique("t"), table.currentSnapshot().snapshotId())
                  .commit());
  private static final Change ROLL_BACK =
      new Change(
          "roll back", table -> table.manageSnapshots().setCurrentSnapshot(first(table)).commit());
  private static final Change TWO_OF_WHICH_ONE_EXPIRES =
      new Change(
          "append twice and expire",
          table -> {
            Transaction all = table.newTransaction();
            all.newFastAppend().appendFile(file()).commit();
            all.newFastAppend().appendFile(file()).commit();
            all.expireSnapshots()
                .cleanupLevel(CleanupLevel.NONE)
                .expireOlderThan(Long.MAX_VALUE)
                .commit();
            all.commitTransaction();
          });

  private static final List<Change> OURS =
      List.of(APPEND, TWO_OF_WHICH_ONE_EXPIRES, SET, COLUMN, TAG, KEY);

  private static final List<Change> ON_TOP =
      List.of(
          NOTHING,
          APPEND,
          SET,
          KEY,
          APPEND.then(APPEND),
          SET.then(SET),
          APPEND.then(EXPIRE),
          APPEND.then(APPEND).then(EXPIRE),
          ROLL_BACK.then(EXPIRE),
          ROLL_BACK.then(EXPIRE).then(APPEND));

  /** What a client is told of its commit: null, that it was made. */
  private Throwable told(int formatVersion, int log, Change ours, boolean made, Change since) {
    TableIdentifier name = TableIdentifier.of(TestLake.DB, unique("t"));
    Table others =
        catalog
            .buildTable(name, TestLake.SCHEMA)
            .withProperty(TableProperties.FORMAT_VERSION, String.valueOf(formatVersion))
            .withProperty(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, String.valueOf(log))
            .withProperty(TableProperties.COMMIT_NUM_RETRIES, "0")
            .create();
    append(others);
    Runnable rivals = () -> since.run.accept(catalog.loadTable(name));
    TableOperations behind = ((BaseTable) catalog.loadTable(name)).operations();
    Table table = new BaseTable(new Conflicting(behind, made, rivals), "t");
    return catchThrowable(() -> ours.run.accept(table));
  }

  private static boolean isUnknown(Throwable told) {
    return told instanceof CommitStateUnknownException;
  }

  static Stream<Arguments> versionsAndLogs() {
    return Stream.of(arguments(3, 100), arguments(3, 1), arguments(1, 100), arguments(1, 1));
  }

  @ParameterizedTest
  @MethodSource("versionsAndLogs")
  void nothingFalseIsSaid(int formatVersion, int log) {
    SoftAssertions softly = new SoftAssertions();
    for (Change ours : formatVersion == 1 ? OURS.subList(0, OURS.indexOf(KEY)) : OURS) {
      for (Change since : ON_TOP) {
        if (formatVersion == 1 && since == KEY) {
          continue;
        }

        Throwable made = told(formatVersion, log, ours, true, since);
        softly.assertThat(made == null || isUnknown(made)).as("%s, %s", ours, since).isTrue();
        Throwable not = told(formatVersion, log, ours, false, since);
        softly
            .assertThat(not instanceof CommitFailedException || isUnknown(not))
            .as("not %s, %s", ours, since)
            .isTrue();
        softly
            .assertThat(log == 1 || !isUnknown(made) && !isUnknown(not))
            .as("known: %s, %s", ours, since)
            .isTrue();
      }
    }

    softly.assertAll();
  }

  /** Where writers are many, a conflict may not end them. */
  @Test
  void aShortLogLeavesFewRowsUnknown() {
    for (Change since : ON_TOP) {
      boolean bothExpired = since.name.equals("append, append, expire");
      boolean undone = since.name.startsWith("roll back");
      assertThat(told(3, 1, APPEND, true, since))
          .as("%s", since)
          .matches(made -> isUnknown(made) == (bothExpired || undone));
      assertThat(told(3, 1, APPEND, false, since))
          .as("not, %s", since)
          .matches(not -> isUnknown(not) == bothExpired);
    }
  }
}
