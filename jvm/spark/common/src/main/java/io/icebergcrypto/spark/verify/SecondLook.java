package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.table.TableLoader;
import io.icebergcrypto.spark.verify.scan.FileSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Whether what was found holds, as the table is now. Maintenance beside a verification deletes
 * files that are no longer reached: of snapshots that expire, of metadata that leaves the log.
 * Nobody is to be accused of that. What the table reaches as before stands; only what was found
 * through something that is gone is looked for again, and of the files' bytes no others are read.
 * An expiry may delete files long after its commit, in any order: what could not be read of expired
 * snapshots is looked for again even if the table has not changed.
 */
final class SecondLook {
  private static final Column STRAY = functions.col("kind").equalTo(FileKind.STRAY.label());

  /** Files of expired snapshots whose key may be unknown because what lists them is gone. */
  private static final Column UNREAD =
      functions
          .col("older")
          .and(
              functions
                  .col("code")
                  .isin(ProblemCode.UNREAD.stream().map(ProblemCode::label).toArray()));

  /** Files that the metadata itself names. */
  private static final Set<FileKind> NAMED =
      Set.of(
          FileKind.MANIFEST_LIST,
          FileKind.STATISTICS,
          FileKind.PARTITION_STATISTICS,
          FileKind.METADATA_FILE);

  private static final int ROUNDS = 3;

  private final SparkSession spark;
  private final String name;
  private final List<ReachableFile> lists;
  private final VerifyOptions again;
  private final TableMetadata then;

  /**
   * Looks at nothing yet.
   *
   * @param then the metadata by which files were checked
   * @param lists its manifest lists, by the places that rows have
   */
  SecondLook(
      SparkSession spark,
      String name,
      TableMetadata then,
      List<ReachableFile> lists,
      VerifyOptions options) {
    this.spark = spark;
    this.name = name;
    this.then = then;
    this.lists = lists;
    this.again = VerifyOptions.of(options.depth(), options.allSnapshots(), false);
  }

  /**
   * What came of it.
   *
   * @param looked the findings that were looked for again, and do not stand by themselves
   * @param now what was found about them this time; of what nothing reaches, nothing
   * @param isWhole whether nothing is unchecked for it: what is below a list that is gone may be
   *     reached through another one by now
   */
  record Result(FileSet looked, FileSet now, boolean isWhole) {}

  /**
   * Looks again, if the table has changed or files of expired snapshots could not be read.
   *
   * @param found what was found, rows of {@link FileRow#CHECKED}
   * @return null when all of it stands
   * @throws io.icebergcrypto.NotSupportedException when the table was dropped
   */
  Result of(FileSet found, Progress progress) {
    boolean isSuspect = !found.isEmpty();
    for (int round = 0; round < ROUNDS && isSuspect; round++) {
      BaseTable table = TableLoader.load(spark, name);
      TableMetadata now = table.operations().current();
      requireSameTable(now);
      FileSet doubtful = LoadedMetadata.isSame(then, now) ? found.where(UNREAD) : found;
      if (doubtful.isEmpty()) {
        return null;
      }

      FileSet strays = doubtful.where(STRAY);
      FileSet suspects = throughWhatIsGone(doubtful, table.io(), now);
      FileSet all = FileSet.all(List.of(suspects, strays));
      if (all.isEmpty()) {
        return null;
      }

      FileSet outcomes = outcomes(all, table, now, progress);
      FileSet wrong = outcomes.where(functions.col("problem").isNotNull());
      if (isWhole(wrong.among(all, false))) {
        FileSet committed = strays.among(outcomes, true);
        boolean isWhole = isWhole(suspects.among(wrong, false));
        FileSet looked = FileSet.all(List.of(suspects, committed)).computed();
        return new Result(looked, outcomes.among(all, true), isWhole);
      }

      // a list or a manifest is lost, so that what is below it cannot be told: was it lost before,
      // or did it go just now?
      boolean isLost = !isWhole(wrong.among(all, false).among(found, true));
      if (isLost || LoadedMetadata.isSame(now, reloaded())) {
        return null;
      }

      isSuspect = found.among(suspects, false).isEmpty(); // else there is something to report
    }

    if (isSuspect) {
      throw tooFast(name);
    }

    return null;
  }

  private void requireSameTable(TableMetadata now) {
    if (!then.uuid().equals(now.uuid())) {
      throw new IcebergCryptoException(
              "it was dropped while it was verified, and another one was created under its name",
              "Verify it again.")
          .inTable(name);
    }
  }

  private TableMetadata reloaded() {
    return TableLoader.load(spark, name).operations().current();
  }

  /** Whether these files do not lead to others. */
  private static boolean isWhole(FileSet files) {
    Column leads =
        functions
            .col("kind")
            .isin(FileKind.MANIFEST_LIST.label(), FileKind.MANIFEST.label())
            .and(functions.not(functions.col("older")));
    return files.where(leads).isEmpty();
  }

  /** What is found about some files, and about all that leads to files, as the table is now. */
  private FileSet outcomes(FileSet some, BaseTable table, TableMetadata now, Progress progress) {
    TableVerifier second =
        new TableVerifier(spark, name, table, now, again, again.allSnapshots(), progress);
    try {
      return second.outcomesOf(some).computed();
    } finally {
      second.release();
    }
  }

  /** Those that were found through a list that no snapshot has now, or are named by nothing. */
  private FileSet throughWhatIsGone(FileSet files, FileIO io, TableMetadata now) {
    MetadataFiles inForce =
        again.allSnapshots() ? MetadataFiles.ofLog(io, now) : MetadataFiles.ofSnapshots(now);
    Set<String> names =
        Stream.concat(
                inForce.named().stream().filter(file -> !file.older()).map(ReachableFile::path),
                inForce.versions().stream().map(MetadataFiles.Version::path))
            .collect(Collectors.toSet());
    if (!again.allSnapshots() && then.metadataFileLocation() != null) {
      names.add(then.metadataFileLocation()); // found about what was loaded
    }

    List<Integer> goneLists =
        IntStream.range(0, lists.size())
            .filter(list -> !names.contains(lists.get(list).path()))
            .boxed()
            .toList();
    Object[] kinds = NAMED.stream().map(FileKind::label).toArray();
    Column isNamed = functions.col("kind").isin(kinds);
    FileSet named = files.where(isNamed);
    FileSet others =
        files.where(
            functions
                .not(isNamed)
                .and(functions.not(STRAY))
                .and(functions.col("list").isInCollection(goneLists)));
    FileSet known =
        FileSet.few(spark, names.stream().map(RowFactory::create).toList(), FileRow.PATHS);
    return FileSet.all(List.of(named.among(known, false), others));
  }

  /** The failure of a check whose files are gone before they can be read, time and again. */
  static IcebergCryptoException tooFast(String name) {
    return new IcebergCryptoException(
            "its snapshots expire faster than they can be verified",
            "That says nothing about the table. Verify it again, with a tag on the snapshot or when"
                + " no maintenance runs.")
        .inTable(name);
  }
}
