package io.icebergcrypto.catalog.behind;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.icebergcrypto.catalog.behind.ConflictingServer.Answer;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.ExpireSnapshots.CleanupLevel;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.Transactions;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.BadRequestException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.types.TypeUtil;
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
  private TableOperations conflicting(TableOperations below, boolean made, Runnable since) {
    return new ThroughOutcome(
        new ConflictingServer(below, made, since, Answer.CONFLICT, 0), signed);
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

  private static final Schema WIDER =
      TypeUtil.join(
          TestLake.SCHEMA,
          new Schema(Types.NestedField.optional(100, "own", Types.LongType.get())));

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

  /** A table with a snapshot. */
  private TableIdentifier create(int formatVersion, int log) {
    TableIdentifier name = TableIdentifier.of(TestLake.DB, unique("t"));
    Table table =
        catalog
            .buildTable(name, TestLake.SCHEMA)
            .withProperty(TableProperties.FORMAT_VERSION, String.valueOf(formatVersion))
            .withProperty(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, String.valueOf(log))
            .withProperty(TableProperties.COMMIT_NUM_RETRIES, "0")
            .create();
    append(table);
    return name;
  }

  private TableOperations behind(TableIdentifier name) {
    return ((BaseTable) catalog.loadTable(name)).operations();
  }

  /** What a client is told of its commit: null, that it was made. */
  private Throwable told(int formatVersion, int log, Change ours, boolean made, Change since) {
    TableIdentifier name = create(formatVersion, log);
    Runnable rivals = () -> since.run.accept(catalog.loadTable(name));
    Table table = new BaseTable(conflicting(behind(name), made, rivals), "t");
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

  /**
   * A replacement has the snapshots of the metadata that it was begun with. Those that have expired
   * since come back with it, and with another one.
   */
  @ParameterizedTest
  @ValueSource(ints = {1, 100})
  void anotherReplacementIsNotTakenForOnesOwn(int log) {
    for (boolean ofRows : List.of(true, false)) {
      TableIdentifier name = create(3, log);
      append(catalog.loadTable(name));
      TableOperations behind = behind(name);
      Transaction rival = catalog.buildTable(name, TestLake.SCHEMA).replaceTransaction();
      TableOperations ops = conflicting(behind, false, rival::commitTransaction);
      Map<String, String> properties = Map.of(unique("p"), "");
      Transaction own = replacement(ops, properties);
      for (Transaction each : ofRows ? List.of(own, rival) : List.<Transaction>of()) {
        each.newFastAppend().appendFile(file()).commit();
      }

      expire(catalog.loadTable(name));
      Throwable told = catchThrowable(own::commitTransaction);
      assertThat(told)
          .as("rows: %s", ofRows)
          .isInstanceOf(ofRows ? CommitFailedException.class : RuntimeException.class);
      assertThat(catalog.loadTable(name).snapshots())
          .as("the expired one is back")
          .hasSize(ofRows ? 3 : 2);
    }
  }

  /** Which was made, but a stale answer hid it: another attempt takes the snapshot for older. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void aSnapshotOfAnEarlierAttemptLeavesItUnknown(int formatVersion) {
    for (boolean expired : List.of(false, true)) {
      TableIdentifier name = create(formatVersion, 100);
      List<AppendFiles> appends = new ArrayList<>();
      Runnable earlier =
          () -> {
            TableOperations ops = behind(name);
            TableMetadata base = ops.current();
            Snapshot snapshot = appends.get(0).apply();
            ops.commit(
                base, TableMetadata.buildFrom(base).setBranchSnapshot(snapshot, "main").build());
            if (expired) {
              append(catalog.loadTable(name));
            }
          };
      Table table = new BaseTable(conflicting(behind(name), false, earlier), "t");
      appends.add(table.newFastAppend().appendFile(file()));
      assertThat(catchThrowable(appends.get(0)::commit)).matches(CommitOutcomeTest::isUnknown);
    }
  }

  /** A cache, or a replica that lags, gives older metadata after the conflict, once or twice. */
  @Test
  void aServersConflictWithNothingIsNone() {
    for (int stale = 0; stale <= 2; stale++) {
      TableIdentifier name = create(3, 100);
      Runnable rival = () -> append(catalog.loadTable(name));
      ConflictingServer makes =
          new ConflictingServer(behind(name), true, () -> {}, Answer.REST_CONFLICT, stale);
      Throwable made = catchThrowable(() -> commitTo(makes));
      ConflictingServer refuses =
          new ConflictingServer(behind(name), false, rival, Answer.REST_CONFLICT, stale);
      Throwable not = catchThrowable(() -> commitTo(refuses));
      if (stale == 2) {
        assertThat(made).matches(CommitOutcomeTest::isUnknown);
        assertThat(not).matches(CommitOutcomeTest::isUnknown);
      } else {
        assertThat(made).isNull();
        assertThat(not).isInstanceOf(CommitFailedException.class);
      }
    }
  }

  /** A snapshot that it names is there, whatever the next load has; a staged one has no branch. */
  @Test
  void aServerThatNamesTheSnapshotHasMadeTheCommit() {
    for (boolean staged : List.of(true, false)) {
      for (int stale = 0; stale <= 2; stale++) {
        TableIdentifier name = create(3, 100);
        TableOperations ops =
            new ThroughOutcome(
                new ConflictingServer(behind(name), true, () -> {}, Answer.SNAPSHOT_EXISTS, stale),
                false);
        Transaction replacement = replacement(ops, Map.of());
        replacement.newFastAppend().appendFile(file()).commit();
        AppendFiles stage = new BaseTable(ops, "t").newFastAppend().appendFile(file()).stageOnly();
        Throwable told = catchThrowable(staged ? stage::commit : replacement::commitTransaction);
        boolean isSeen = stale < 2;
        assertThat(told)
            .as("staged: %s, %d stale loads", staged, stale)
            .matches(thrown -> isSeen ? thrown == null : isUnknown(thrown));
      }
    }
  }

  /** A file that is named after the snapshot says nothing. */
  @Test
  void aRefusalThatNamesTheListIsOne() {
    TableOperations behind = behind(create(3, 100));
    TableMetadata base = behind.current();
    Snapshot own = new BaseTable(behind, "t").newFastAppend().appendFile(file()).apply();
    TableMetadata next = TableMetadata.buildFrom(base).setBranchSnapshot(own, "main").build();
    String words = "cannot read memory:/snap-" + own.snapshotId() + "-1-x.avro";
    ForwardingOperations server = refusing(() -> behind, 400, words);
    assertThat(
            catchThrowable(
                () -> CommitOutcome.commit("t", server, true, base, next, next.changes())))
        .isInstanceOf(BadRequestException.class);
  }

  /** Who knows no table yet may lag. */
  @Test
  void aNameOfWhatIsNoTableIsRefused() {
    Map<String, Boolean> words =
        Map.of(
            "View with same name already exists: db.t", true,
            "Generic table with same name already exists: db.t", true,
            "Table already exists: db.t", false,
            "Table or view with same name already exists: db.t", false,
            "Tabular with the same name already exists", false);
    TableMetadata own = behind(create(3, 100)).current();
    words.forEach(
        (said, refused) -> {
          ForwardingOperations server =
              refusing(
                  () -> {
                    throw new NoSuchTableException("Table does not exist: db.t");
                  },
                  409,
                  said);
          assertThat(
                  catchThrowable(
                      () -> CommitOutcome.commit("t", server, true, null, own, own.changes())))
              .as(said)
              .isInstanceOf(
                  refused ? AlreadyExistsException.class : CommitStateUnknownException.class);
        });
  }

  private static ForwardingOperations refusing(
      Supplier<TableOperations> below, int code, String words) {
    return new ForwardingOperations() {
      @Override
      public TableOperations below() {
        return below.get();
      }

      @Override
      public void commit(TableMetadata base, TableMetadata metadata) {
        (base == null ? ErrorHandlers.tableErrorHandler() : ErrorHandlers.tableCommitHandler())
            .accept(ErrorResponse.builder().responseCode(code).withMessage(words).build());
      }
    };
  }

  /** It is the conflict with a commit that came before the replacement's own base was loaded. */
  @Test
  void aServerRefusesAReplacementThatWasBegunEarlier() {
    TableIdentifier name = create(3, 100);
    TableOperations ops =
        new ThroughOutcome(
            new ConflictingServer(behind(name), false, () -> {}, Answer.REST_CONFLICT, 0), false);
    Transaction own = replacement(ops, Map.of());
    catalog.loadTable(name).updateProperties().set("p", "").commit();
    assertThat(catchThrowable(own::commitTransaction)).isInstanceOf(CommitFailedException.class);
  }

  /**
   * Which the metadata in force cannot take: it was not made. One that it can take may have been.
   */
  @Test
  void aServerRefusesARowsReplacementThatWasBegunEarlier() {
    for (int formatVersion : List.of(2, 3)) {
      for (Change rival : List.of(APPEND, COLUMN, SET)) {
        TableIdentifier name = create(formatVersion, 100);
        TableOperations ops =
            new ThroughOutcome(
                new ConflictingServer(behind(name), false, () -> {}, Answer.REST_CONFLICT, 0),
                false);
        Transaction own = replacement(ops, Map.of(), WIDER);
        own.newFastAppend().appendFile(file()).commit();
        rival.run.accept(catalog.loadTable(name));
        boolean fits = rival == SET || rival == APPEND && formatVersion == 2;
        assertThat(catchThrowable(own::commitTransaction))
            .as("%s, version %d", rival, formatVersion)
            .isInstanceOf(fits ? CommitStateUnknownException.class : CommitFailedException.class);
      }
    }
  }

  /** The attempt before has made it, as the base shows; then a replica lags. */
  @Test
  void aReplacementThatIsInItsBaseWasMade() {
    TableIdentifier name = create(3, 100);
    TableMetadata before = behind(name).current();
    Transaction own = replacement(new ThroughOutcome(behind(name), false), Map.of());
    own.newFastAppend().appendFile(file()).commit();
    TableMetadata wanted = ((BaseTransaction) own).currentMetadata();
    own.commitTransaction();
    TableMetadata base = behind(name).current();
    ForwardingOperations lagging =
        new ForwardingOperations() {
          @Override
          public TableOperations below() {
            return new ConflictingServer(behind(name), false, () -> {}, Answer.REST_CONFLICT, 0);
          }

          @Override
          public TableMetadata refresh() {
            return before;
          }
        };
    assertThat(
            catchThrowable(
                () -> CommitOutcome.commit("t", lagging, true, base, wanted, wanted.changes())))
        .isNull();
  }

  private static Transaction replacement(TableOperations ops, Map<String, String> properties) {
    return replacement(ops, properties, TestLake.SCHEMA);
  }

  private static Transaction replacement(
      TableOperations ops, Map<String, String> properties, Schema schema) {
    TableMetadata before = ops.current();
    return Transactions.replaceTableTransaction(
        "t",
        ops,
        before.buildReplacement(
            schema,
            PartitionSpec.unpartitioned(),
            SortOrder.unsorted(),
            before.location(),
            properties));
  }

  private static void commitTo(ConflictingServer server) {
    append(new BaseTable(new ThroughOutcome(server, false), "t"));
  }

  private record ThroughOutcome(TableOperations below, boolean signed)
      implements ForwardingOperations {
    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      TableMetadata wanted =
          signed
              ? TableMetadata.buildFrom(metadata)
                  .discardChanges()
                  .withMetadataLocation(null)
                  .build()
              : metadata;
      boolean isOfRest = below instanceof ConflictingServer server && server.isOfRest();
      CommitOutcome.commit("t", below, isOfRest, base, wanted, metadata.changes());
    }
  }

  /** With a short log nothing would show it. */
  @Test
  void aCommitThatIcebergDoesNotSendIsNotUnknown() {
    TableIdentifier name = create(3, 1);
    TableOperations ops = behind(name);
    TableMetadata base = ops.current();
    SET.then(SET).run.accept(catalog.loadTable(name));
    ops.refresh();
    TableMetadata next = TableMetadata.buildFrom(base).setProperties(Map.of("p", "")).build();
    assertThat(catchThrowable(() -> new ThroughOutcome(ops, false).commit(base, next)))
        .isInstanceOf(CommitFailedException.class);
  }
}
