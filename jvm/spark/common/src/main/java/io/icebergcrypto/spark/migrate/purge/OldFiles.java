package io.icebergcrypto.spark.migrate.purge;

import static org.apache.spark.sql.functions.col;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.spark.verify.scan.Folders;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.storage.StorageLevel;

/** What is left of a table's old files, and which of it a purge may delete. */
final class OldFiles implements AutoCloseable {
  private static final int SHOWN = 1000;
  private static final int SHOWN_OUTSIDE = 100_000;
  private static final int SHOWN_GAPS = 100;

  /** What may become of a file, in the column place. */
  private static final String DOOMED = "doomed";

  private static final String KEPT = "kept";
  private static final String OUTSIDE = "outside";
  private static final String STRAY = "stray";

  private final Dataset<Row> files;
  private final List<Group> groups;
  private final FormerFolders former;
  private final List<String> own;
  private final boolean dryRun;
  private final Phase begun;

  /** How many files are alike. */
  private record Group(
      String kind, String state, String gap, String place, long files, long bytes) {
    private boolean isPlaintext(String of) {
      return state.equals(OldTree.PLAINTEXT) && place.equals(of);
    }
  }

  /**
   * Divides them.
   *
   * @param files of {@link OldTree#FILES}, without those that the table in force reaches
   * @param strays the same of former folders, where no metadata names them
   * @param own the table's folders
   * @param begun how far the purge has come
   */
  OldFiles(
      Dataset<Row> files,
      Dataset<Row> strays,
      FormerFolders former,
      List<String> own,
      PurgeOptions options,
      Phase begun) {
    this.former = former;
    this.own = own;
    this.dryRun = options.dryRun();
    this.begun = begun;
    List<String> folders = Stream.concat(own.stream(), options.folders().stream()).toList();
    Column place =
        functions
            .when(Folders.isIn(col("path"), options.keep()), KEPT)
            .when(Folders.isIn(col("path"), folders), DOOMED)
            .otherwise(OUTSIDE);
    this.files =
        files
            .withColumn("place", place)
            .union(strays.withColumn("place", functions.lit(STRAY)))
            .persist(StorageLevel.MEMORY_AND_DISK());
    this.groups = new ArrayList<>();
    this.files
        .groupBy("kind", "state", "gap", "place")
        .agg(functions.count(functions.lit(1)), functions.sum("length"))
        .collectAsList()
        .forEach(
            row ->
                groups.add(
                    new Group(
                        row.getString(0),
                        row.getString(1),
                        row.getString(2),
                        row.getString(3),
                        row.getLong(4),
                        row.getLong(5))));
  }

  List<String> own() {
    return own;
  }

  /** Plaintext that the purge may delete in a step. */
  Dataset<Row> doomed(Phase phase) {
    return doomed().where(col("kind").isin(phase.kinds()));
  }

  /** All plaintext that the purge may delete. */
  Dataset<Row> doomed() {
    return plaintext(DOOMED);
  }

  /** How many these are. */
  long doomedCount(Phase phase) {
    List<Object> kinds = List.of(phase.kinds());
    return count(group -> group.isPlaintext(DOOMED) && kinds.contains(group.kind()));
  }

  private Dataset<Row> plaintext(String place) {
    return files.where(col("state").equalTo(OldTree.PLAINTEXT).and(col("place").equalTo(place)));
  }

  private long count(Predicate<Group> of) {
    return groups.stream().filter(of).mapToLong(Group::files).sum();
  }

  /** Files of which nothing is known, in words. */
  List<String> unknown(int most) {
    return words(
        most,
        group ->
            !group.place().equals(STRAY)
                && (group.state().equals(OldTree.UNKNOWN) || OldTree.FAILED.equals(group.gap())));
  }

  /** Files that named others, and are lost before the purge deletes such, in words. */
  List<String> gaps(int most) {
    return words(
        most,
        group ->
            OldTree.DAMAGED.equals(group.gap())
                || OldTree.MISSING.equals(group.gap())
                    && !Phase.mayMiss(FileKind.ofLabel(group.kind()), begun));
  }

  private List<String> words(int most, Predicate<Group> of) {
    return groups.stream().filter(of).flatMap(group -> words(most, group)).limit(most).toList();
  }

  private Stream<String> words(int most, Group group) {
    return files
        .where(
            col("kind")
                .equalTo(group.kind())
                .and(col("state").equalTo(group.state()))
                .and(col("gap").eqNullSafe(group.gap()))
                .and(col("place").equalTo(group.place())))
        .orderBy("path")
        .takeAsList(most)
        .stream()
        .map(
            file ->
                String.format(
                    "%s %s: %s",
                    group.kind(),
                    file.getString(0),
                    Objects.requireNonNullElse(file.getString(4), "not known")));
  }

  /** How many plaintext files are in other folders, by folder. */
  Map<String, Long> outside() {
    Map<String, Long> counts = new LinkedHashMap<>();
    if (count(group -> group.isPlaintext(OUTSIDE)) == 0) {
      return counts;
    }

    FormerFolders folders = former;
    Column folder =
        functions.udf((UDF1<String, String>) folders::of, DataTypes.StringType).apply(col("path"));
    plaintext(OUTSIDE)
        .groupBy(folder.as("folder"))
        .count()
        .orderBy(col("count").desc(), col("folder"))
        .takeAsList(SHOWN)
        .forEach(row -> counts.put(row.getString(0), row.getLong(1)));
    return counts;
  }

  /** How many these are. */
  long outsideCount() {
    return count(group -> group.isPlaintext(OUTSIDE));
  }

  /** The first of their paths. */
  List<String> outsidePaths(int most) {
    return outsideCount() == 0 ? List.of() : paths(plaintext(OUTSIDE), most);
  }

  private static List<String> paths(Dataset<Row> of, int most) {
    return of.orderBy("path").select("path").takeAsList(most).stream()
        .map(row -> row.getString(0))
        .toList();
  }

  /** What becomes of all that, or has become. */
  PurgeReport purged(String table, boolean deleted) {
    List<String> gaps = new ArrayList<>(gaps(SHOWN_GAPS));
    if (dryRun) {
      unknown(SHOWN_GAPS).stream().filter(one -> !gaps.contains(one)).forEach(gaps::add);
    }

    Predicate<Group> stays = group -> group.isPlaintext(KEPT) || group.place().equals(STRAY);
    long left = count(stays);
    Column isLeft = col("state").equalTo(OldTree.PLAINTEXT).and(col("place").equalTo(KEPT));
    return new PurgeReport(
        table,
        count(group -> group.isPlaintext(DOOMED)),
        groups.stream().filter(group -> group.isPlaintext(DOOMED)).mapToLong(Group::bytes).sum(),
        paths(plaintext(DOOMED), SHOWN),
        dryRun ? outside() : Map.of(),
        dryRun ? outsidePaths(SHOWN_OUTSIDE) : List.of(),
        left,
        left == 0 ? List.of() : paths(files.where(isLeft.or(col("place").equalTo(STRAY))), SHOWN),
        gaps,
        deleted);
  }

  @Override
  public void close() {
    files.unpersist();
  }
}
