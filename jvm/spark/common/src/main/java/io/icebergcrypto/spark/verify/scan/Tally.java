package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/**
 * What checked files add up to: counts by kind, and the first problems. Spark SQL adds up, so no
 * object of this class is serialized: Java and Kryo do not agree on what they can.
 */
public final class Tally {
  private static final int MAX_PROBLEMS = 1000;

  /** Those of the whole table, which explain the others, then findings, then what is unchecked. */
  private static final Comparator<Problem> FIRST =
      Comparator.comparing((Problem problem) -> !problem.isOfTable())
          .thenComparing(Problem::unchecked);

  /** Of a checked file: whether it could not be checked. */
  public static final Column UNCHECKED =
      functions.col("code").eqNullSafe(ProblemCode.UNREADABLE.label());

  /** The same in Java. */
  static boolean isUnchecked(String code) {
    return ProblemCode.UNREADABLE.label().equals(code);
  }

  private record Group(String kind, String magic, boolean encrypted) implements Comparable<Group> {
    @Override
    public int compareTo(Group other) {
      return Comparator.comparing(Group::kind).thenComparing(Group::magic).compare(this, other);
    }
  }

  /** Files, their bytes; of those with a problem the same, and of those that were not checked. */
  private static final int SUMS = 6;

  private static final Column BYTES =
      functions.greatest(functions.col("length"), functions.lit(0L));
  private static final Column WRONG =
      functions.col("problem").isNotNull().and(functions.not(UNCHECKED));

  private final TreeMap<Group, long[]> groups = new TreeMap<>();
  private final List<Problem> problems = new ArrayList<>();
  private long problemCount;
  private long uncheckedCount;

  /** Adds up checked files; reads a DataFrame of them again when there are problems. */
  public static Tally of(FileSet checked) {
    Tally tally = new Tally();
    if (checked.isFew()) {
      checked
          .select("kind", "path", "problem", "code", "magic", "encrypted", "length")
          .few()
          .forEach(tally::addFile);
      return tally;
    }

    checked
        .rows()
        .groupBy("kind", "magic", "encrypted")
        .agg(
            functions.count("path"),
            functions.sum(BYTES),
            functions.count_if(WRONG),
            functions.sum(functions.when(WRONG, BYTES).otherwise(0L)),
            functions.count_if(UNCHECKED),
            functions.sum(functions.when(UNCHECKED, BYTES).otherwise(0L)))
        .collectAsList()
        .forEach(tally::addGroup);
    if (tally.problemCount > 0) {
      checked
          .rows()
          .select("kind", "path", "problem", "code")
          .where(functions.col("problem").isNotNull())
          .orderBy(UNCHECKED, functions.col("path"))
          .limit(MAX_PROBLEMS)
          .collectAsList()
          .forEach(file -> tally.problems.add(problem(file)));
    }

    return tally;
  }

  private void addFile(Row file) {
    long[] sums = sums(file.getString(0), file.getString(4), file.getBoolean(5));
    long bytes = Math.max(file.getLong(6), 0L);
    count(sums, 0, bytes);
    if (!file.isNullAt(2)) {
      Problem problem = problem(file);
      count(sums, problem.unchecked() ? 4 : 2, bytes);
      add(problem);
    }
  }

  private static void count(long[] sums, int place, long bytes) {
    sums[place]++;
    sums[place + 1] += bytes;
  }

  private long[] sums(String kind, String magic, boolean encrypted) {
    Group group = new Group(kind, magic == null ? "" : magic, encrypted);
    return groups.computeIfAbsent(group, ignored -> new long[SUMS]);
  }

  private void addGroup(Row group) {
    long[] sums = sums(group.getString(0), group.getString(1), group.getBoolean(2));
    for (int place = 0; place < SUMS; place++) {
      sums[place] += group.getLong(3 + place);
    }
    this.problemCount += group.getLong(5) + group.getLong(7);
    this.uncheckedCount += group.getLong(7);
  }

  private static Problem problem(Row file) {
    return Problem.of(
        FileKind.ofLabel(file.getString(0)),
        file.getString(1),
        file.getString(2),
        ProblemCode.ofLabel(file.getString(3)));
  }

  /** Adds what another one adds up. */
  public void merge(Tally other) {
    other.groups.forEach(
        (group, sums) -> {
          long[] mine = groups.computeIfAbsent(group, ignored -> new long[SUMS]);
          Arrays.setAll(mine, place -> mine[place] + sums[place]);
        });
    problems.addAll(other.problems);
    keepFirst();
    this.problemCount += other.problemCount;
    this.uncheckedCount += other.uncheckedCount;
  }

  /** Adds a problem that is of no file. */
  public void add(Problem problem) {
    this.problemCount++;
    this.uncheckedCount += problem.unchecked() ? 1 : 0;
    problems.add(problem);
    keepFirst();
  }

  private void keepFirst() {
    if (problems.size() > MAX_PROBLEMS) {
      problems.sort(FIRST);
      problems.subList(MAX_PROBLEMS, problems.size()).clear();
    }
  }

  /** How many problems there are, with what could not be checked. */
  public long problemCount() {
    return problemCount;
  }

  /** How many of them could not be checked. */
  public long uncheckedCount() {
    return uncheckedCount;
  }

  /**
   * The first problems: those of the whole table, then findings, then what could not be checked,
   * each by path.
   */
  public List<Problem> problems() {
    return problems.stream().sorted(FIRST.thenComparing(Problem::path)).toList();
  }

  /** The files of {@link #problems}. */
  public Set<String> paths() {
    return problems.stream().map(Problem::path).collect(Collectors.toSet());
  }

  /**
   * Says in the hints of problems when these files were right.
   *
   * @param rightAt when that was, by path
   */
  public void tellBefore(Map<String, Instant> rightAt, Function<Instant, String> words) {
    problems.replaceAll(
        problem -> {
          Instant at = rightAt.get(problem.path());
          return at == null ? problem : problem.withHint(words.apply(at) + problem.hint());
        });
  }

  /** How many files were checked. */
  public long files() {
    return groups.values().stream().mapToLong(sums -> sums[0]).sum();
  }

  /** Their length together, in bytes. */
  public long bytes() {
    return groups.values().stream().mapToLong(sums -> sums[1]).sum();
  }

  /** The sums for each kind and magic. */
  public List<Count> counts() {
    return groups.entrySet().stream()
        .map(entry -> Count.of(entry.getKey(), entry.getValue()))
        .toList();
  }

  /**
   * The files of one kind that start alike; a null magic: they could not be read.
   *
   * @param wrongFiles how many of them have a problem, regardless of what they start with
   * @param uncheckedFiles how many could not be checked
   */
  public record Count(
      String kind,
      String magic,
      boolean encrypted,
      long files,
      long bytes,
      long wrongFiles,
      long wrongBytes,
      long uncheckedFiles,
      long uncheckedBytes) {
    private static Count of(Group group, long[] sums) {
      String magic = group.magic().isEmpty() ? null : group.magic();
      return new Count(
          group.kind(),
          magic,
          group.encrypted(),
          sums[0],
          sums[1],
          sums[2],
          sums[3],
          sums[4],
          sums[5]);
    }
  }
}
