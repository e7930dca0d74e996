package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.FileCheck;
import io.icebergcrypto.spark.verify.FileResult;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.GroupIterator;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Proves copies: each group when it was copied, by every byte and all rows; later that it is still
 * there, by lengths, headers and footers.
 *
 * @param name the table's full name
 */
record CopyProof(SparkSession spark, String name) {
  private static final Logger LOG = LoggerFactory.getLogger(CopyProof.class);
  private static final int FILES_AT_ONCE = 10_000;
  private static final StructType FILES =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("format", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false);
  private static final StructType FOUND =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("problem", DataTypes.StringType, false)
          .add("unchecked", DataTypes.BooleanType, false);

  /**
   * Proves a group that was copied just now: all of its files are encrypted and authentic, and the
   * copy of each file has the rows that this has.
   *
   * @param target a table to be, which is changed
   */
  void prove(BaseTable source, BaseTable target, LoggedGroup group, List<FileScanTask> files) {
    Snapshot snapshot = append(target, List.of(group));
    try {
      requireOk(target, Depth.DEEP, new Progress(spark.sparkContext()));
      Map<String, RowSums> before = RowSums.byFile(spark, source, files);
      Map<String, RowSums> after = RowSums.byFile(spark, target, tasks(target, snapshot));
      List<DataFile> copied = CopyManifests.files(target, group);
      requireNamed(before, files.stream().map(FileScanTask::file));
      requireNamed(after, copied.stream());
      Map<String, RowSums> copies = new HashMap<>(); // a file may be listed twice
      for (int i = 0; i < files.size(); i++) {
        UnitCopy copy = group.copies().get(i);
        RowSums rows = RowSums.NONE;
        for (DataFile file : copied.subList(copy.first(), copy.first() + copy.files())) {
          rows = rows.plus(after.getOrDefault(file.location(), RowSums.NONE));
        }

        requireRows("of " + files.get(i).file().location(), copy.rows(), rows.rows());
        copies.merge(files.get(i).file().location(), rows, RowSums::plus);
      }

      copies.forEach(
          (file, rows) -> requireSame("of " + file, before.getOrDefault(file, RowSums.NONE), rows));
    } finally {
      deleteList(target, snapshot);
    }
  }

  /** What is left is encrypted, and remove_orphan_files finds it. */
  private void deleteList(BaseTable target, Snapshot snapshot) {
    try {
      target.operations().io().deleteFile(snapshot.manifestListLocation());
    } catch (RuntimeException e) {
      LOG.warn("Table {}: could not delete {}", name, snapshot.manifestListLocation(), e);
    }
  }

  // ---- copies of earlier calls

  /**
   * The copies of earlier calls that are still there, and of the length that they had. Orphan
   * removal of other clients, say, deletes files that no table has.
   *
   * @param storage returns stored bytes
   * @param target a table to be
   */
  List<LoggedGroup> present(FileIO storage, BaseTable target, List<LoggedGroup> groups) {
    List<LoggedGroup> present = new ArrayList<>();
    Map<LoggedGroup, List<DataFile>> some = new IdentityHashMap<>();
    int files = 0;
    Broadcast<Storage> io =
        JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new Storage(storage));
    try {
      for (LoggedGroup group : groups) {
        List<DataFile> listed = listed(target, group);
        if (listed == null) {
          continue;
        }

        some.put(group, listed);
        files += listed.size();
        if (files >= FILES_AT_ONCE) {
          present.addAll(present(io, some));
          some.clear();
          files = 0;
        }
      }

      present.addAll(present(io, some));
      return present;
    } finally {
      io.destroy();
    }
  }

  /** The files of a group; null when the list itself is gone, or not that of the group. */
  List<DataFile> listed(BaseTable target, LoggedGroup group) {
    try {
      List<DataFile> files = CopyManifests.files(target, group);
      if (group.positions().length() <= files.size()) {
        return files;
      }

      LOG.warn(
          "Table {}: a list of copies has {} files only; they are copied again",
          name,
          files.size());
      return null;
    } catch (NotFoundException | TamperedException e) {
      LOG.warn("Table {}: a list of copies is gone or changed; they are copied again", name, e);
      return null;
    }
  }

  private List<LoggedGroup> present(
      Broadcast<Storage> io, Map<LoggedGroup, List<DataFile>> groups) {
    Set<String> paths = new HashSet<>();
    for (Row found : gone(io, groups.values().stream().flatMap(List::stream), true)) {
      LOG.warn(
          "Table {}: {}: {}; it is copied again", name, found.getString(0), found.getString(1));
      paths.add(found.getString(0));
    }

    return groups.entrySet().stream()
        .map(entry -> entry.getKey().with(left(entry.getKey(), entry.getValue(), paths)))
        .toList();
  }

  /**
   * Requires that a plaintext copy is still there, with the length that it had.
   *
   * @param storage returns stored bytes
   * @param target the table to be
   */
  void requirePresent(FileIO storage, BaseTable target, List<LoggedGroup> groups) {
    Broadcast<Storage> io =
        JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new Storage(storage));
    try {
      for (LoggedGroup group : groups) {
        List<Row> gone = gone(io, CopyManifests.files(target, group).stream(), false);
        if (!gone.isEmpty()) {
          throw new IcebergCryptoException(
                  String.format(
                      "a file of its plaintext copy is gone or was changed: %s: %s",
                      gone.get(0).getString(0), gone.get(0).getString(1)),
                  "The table is as it was. Until the commit, no table has these files, and removal"
                      + " of orphan files takes them for orphans: stop it, and call decrypt_table"
                      + " again.")
              .inTable(name);
        }
      }
    } finally {
      io.destroy();
    }
  }

  /** Those of some files that are not as they were written, and what is wrong with each. */
  private List<Row> gone(Broadcast<Storage> io, Stream<DataFile> copies, boolean encrypted) {
    List<Row> files =
        copies
            .map(
                file ->
                    RowFactory.create(
                        file.location(), CopyPlan.name(file.format()), file.fileSizeInBytes()))
            .toList();
    int tasks = Math.max(1, Math.min(files.size(), spark.sparkContext().defaultParallelism()));
    MapPartitionsFunction<Row, Row> look =
        rows -> GroupIterator.each(rows, row -> look(io.value(), row, encrypted));
    List<Row> gone =
        spark
            .createDataFrame(files, FILES)
            .repartition(tasks)
            .mapPartitions(look, Encoders.row(FOUND))
            .collectAsList();
    for (Row found : gone) {
      if (found.getBoolean(2)) {
        throw new IcebergCryptoException(
                String.format(
                    "its copy cannot be checked: %s: %s", found.getString(0), found.getString(1)),
                "The table is as it was. Fix what failed (storage, permission), then call this"
                    + " again.")
            .inTable(name);
      }
    }

    return gone;
  }

  /** What is wrong with a file, if anything is. */
  private static Iterator<Row> look(Storage storage, Row file, boolean encrypted) {
    InputFile stored = storage.io().newInputFile(file.getString(0));
    FileResult found =
        new FileCheck(Depth.MAGIC).check(FileKind.DATA, file.getString(1), stored, -1, null);
    boolean isAsMade = encrypted ? found.problem() == null : found.code() == ProblemCode.PLAINTEXT;
    if (isAsMade && found.length() == file.getLong(2)) {
      return Collections.emptyIterator();
    }

    String words =
        isAsMade
            ? String.format("it has %d bytes, not %d", found.length(), file.getLong(2))
            : found.words();
    return List.of(RowFactory.create(file.getString(0), words, found.unchecked())).iterator();
  }

  private static List<UnitCopy> left(LoggedGroup group, List<DataFile> files, Set<String> gone) {
    return group.copies().stream()
        .filter(
            copy ->
                files.subList(copy.first(), copy.first() + copy.files()).stream()
                    .noneMatch(file -> gone.contains(file.location())))
        .toList();
  }

  private static Snapshot append(BaseTable target, List<LoggedGroup> groups) {
    AppendFiles append = target.newFastAppend();
    groups.forEach(group -> group.manifests().forEach(append::appendManifest));
    append.commit();
    return target.currentSnapshot();
  }

  private static List<FileScanTask> tasks(BaseTable table, Snapshot snapshot) {
    List<FileScanTask> all = new ArrayList<>();
    try (CloseableIterable<FileScanTask> files =
        table.newScan().useSnapshot(snapshot.snapshotId()).planFiles()) {
      files.forEach(all::add);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot close the scan of " + table.name(), e);
    }

    return all;
  }

  // ---- files

  /** Requires that all files of a table to be are encrypted, and as they were written. */
  void requireOk(BaseTable table, Depth depth, Progress progress) {
    VerifyOptions options = VerifyOptions.of(depth, true, false);
    try (VerifyResult result =
        TableVerifier.verifyUncommitted(spark, name, table, options, progress)) {
      if (!result.ok()) {
        Problem first = result.problems().get(0);
        throw new IcebergCryptoException(
                String.format(
                    "its encrypted copy does not verify: %s; the first is %s: %s",
                    result.summary(), first.path(), first.problem()),
                result.problems().stream().anyMatch(Problem::unchecked) // says nothing of the copy
                    ? "The table is as it was. Fix what failed (KMS, storage, permission), then"
                        + " call encrypt_table again."
                    : "The table is as it was. Find out what changed or lost the new files, then"
                        + " call encrypt_table again, which copies these again.")
            .inTable(name);
      }
    }
  }

  // ---- rows

  /** Rows that Spark does not know the file of would count for none. */
  private void requireNamed(Map<String, RowSums> sums, Stream<DataFile> files) {
    Set<String> locations = files.map(DataFile::location).collect(Collectors.toSet());
    sums.keySet().stream()
        .filter(file -> !locations.contains(file))
        .findFirst()
        .ifPresent(
            file -> {
              throw new IcebergCryptoException(
                      String.format(
                          "its rows cannot be compared: Spark reports that some come from '%s',"
                              + " which is not one of the files that it read",
                          file),
                      "The table is as it was. If a library of this session replaces Spark's own"
                          + " operators (input_file_name() has to name the files), call"
                          + " encrypt_table in a session without it. If not, please report it.")
                  .inTable(name);
            });
  }

  /** Requires that a copy has the rows of what it is a copy of. */
  void requireSame(String what, RowSums before, RowSums after) {
    if (!before.isSame(after)) {
      throw new IcebergCryptoException(
              String.format(
                  "its encrypted copy has different rows (%s): %d rows and checksum %s/%016x, and"
                      + " the table has %d and %s/%016x",
                  what,
                  after.rows(),
                  after.sum(),
                  after.xor(),
                  before.rows(),
                  before.sum(),
                  before.xor()),
              "The table is as it was. Files of it or of the copy were changed, or this is a bug in"
                  + " iceberg-crypto: please report it.")
          .inTable(name);
    }
  }

  /** Requires that a file or a version has as many rows as its copies have, as was counted. */
  void requireRows(String ref, long proved, long made) {
    if (proved != made) {
      throw new IcebergCryptoException(
              String.format("its encrypted copy has %d rows (%s), not %d", made, ref, proved),
              "The table is as it was. This is a bug in iceberg-crypto: please report it.")
          .inTable(name);
    }
  }
}
