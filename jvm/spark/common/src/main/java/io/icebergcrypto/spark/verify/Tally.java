package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.FileKind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/**
 * What checked files add up to: counts by kind, and the first problems. Spark SQL adds up, so no
 * object of this class is serialized: Java and Kryo do not agree on what they can.
 */
final class Tally {
  private static final int MAX_PROBLEMS = 1000;

  private record Group(String kind, String magic, boolean encrypted) implements Comparable<Group> {
    @Override
    public int compareTo(Group other) {
      return Comparator.comparing(Group::kind).thenComparing(Group::magic).compare(this, other);
    }
  }

  private final TreeMap<Group, long[]> groups = new TreeMap<>();
  private final List<VerifyResult.Problem> problems = new ArrayList<>();
  private long problemCount;

  /** Adds up a DataFrame of checked files; reads it again when there are problems. */
  static Tally of(Dataset<Row> checked) {
    Tally tally = new Tally();
    checked
        .groupBy("kind", "magic", "encrypted")
        .agg(
            functions.count("path"),
            functions.sum(functions.greatest(functions.col("length"), functions.lit(0L))),
            functions.count("problem"))
        .collectAsList()
        .forEach(tally::addGroup);
    if (tally.problemCount > 0) {
      checked
          .select("kind", "path", "problem")
          .where(functions.col("problem").isNotNull())
          .orderBy("path")
          .limit(MAX_PROBLEMS)
          .collectAsList()
          .forEach(tally::addProblem);
    }

    return tally;
  }

  private void addGroup(Row group) {
    String magic = group.isNullAt(1) ? "" : group.getString(1);
    groups.put(
        new Group(group.getString(0), magic, group.getBoolean(2)),
        new long[] {group.getLong(3), group.getLong(4)});
    this.problemCount += group.getLong(5);
  }

  private void addProblem(Row file) {
    String kind = file.getString(0);
    problems.add(
        new VerifyResult.Problem(
            kind, file.getString(1), file.getString(2), FileKind.ofLabel(kind).hint()));
  }

  void merge(Tally other) {
    other.groups.forEach(
        (group, sums) -> {
          long[] mine = groups.computeIfAbsent(group, ignored -> new long[2]);
          mine[0] += sums[0];
          mine[1] += sums[1];
        });
    other.problems.stream().limit(MAX_PROBLEMS - problems.size()).forEach(problems::add);
    this.problemCount += other.problemCount;
  }

  void add(VerifyResult.Problem problem) {
    this.problemCount++;
    if (problems.size() < MAX_PROBLEMS) {
      problems.add(problem);
    }
  }

  long problemCount() {
    return problemCount;
  }

  /** The first problems: those of the whole table, which explain the others, and then by path. */
  List<VerifyResult.Problem> problems() {
    return problems.stream()
        .sorted(
            Comparator.comparing((VerifyResult.Problem problem) -> !problem.kind().equals("table"))
                .thenComparing(VerifyResult.Problem::path))
        .toList();
  }

  long files() {
    return groups.values().stream().mapToLong(sums -> sums[0]).sum();
  }

  long bytes() {
    return groups.values().stream().mapToLong(sums -> sums[1]).sum();
  }

  /** The sums for each kind and magic. */
  List<Count> counts() {
    return groups.entrySet().stream()
        .map(entry -> Count.of(entry.getKey(), entry.getValue()))
        .toList();
  }

  /** The files of one kind that start alike; a null magic: they could not be read. */
  record Count(String kind, String magic, boolean encrypted, long files, long bytes) {
    private static Count of(Group group, long[] sums) {
      String magic = group.magic().isEmpty() ? null : group.magic();
      return new Count(group.kind(), magic, group.encrypted(), sums[0], sums[1]);
    }
  }
}
