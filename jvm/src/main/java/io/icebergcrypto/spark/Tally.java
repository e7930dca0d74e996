package io.icebergcrypto.spark;

import io.icebergcrypto.audit.FileKind;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * What checked files add up to: counts by kind, and the first problems. Executors make parts of it.
 */
final class Tally implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int MAX_PROBLEMS = 1000;

  private record Group(String kind, String magic, boolean encrypted)
      implements Serializable, Comparable<Group> {
    @Override
    public int compareTo(Group other) {
      return Comparator.comparing(Group::kind).thenComparing(Group::magic).compare(this, other);
    }
  }

  private final TreeMap<Group, long[]> groups = new TreeMap<>();
  private final ArrayList<VerifyResult.Problem> problems = new ArrayList<>();
  private long problemCount;

  /** Adds up a DataFrame of checked files, in one pass over it. */
  static Tally of(Dataset<Row> checked) {
    return checked.toJavaRDD().aggregate(new Tally(), Tally::addFile, Tally::merge);
  }

  private Tally addFile(Row file) {
    String kind = file.getAs("kind");
    String magic = file.getAs("magic");
    boolean encrypted = file.<Boolean>getAs("encrypted");
    long[] sums =
        groups.computeIfAbsent(
            new Group(kind, magic == null ? "" : magic, encrypted), ignored -> new long[2]);
    sums[0]++;
    sums[1] += Math.max(0L, file.<Long>getAs("length"));
    String problem = file.getAs("problem");
    if (problem != null) {
      add(
          new VerifyResult.Problem(
              kind, file.getAs("path"), problem, FileKind.ofLabel(kind).hint()));
    }

    return this;
  }

  Tally merge(Tally other) {
    other.groups.forEach(
        (group, sums) -> {
          long[] mine = groups.computeIfAbsent(group, ignored -> new long[2]);
          mine[0] += sums[0];
          mine[1] += sums[1];
        });
    other.problems.stream().limit(MAX_PROBLEMS - problems.size()).forEach(problems::add);
    this.problemCount += other.problemCount;
    return this;
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

  /** One map a kind and magic: kind, magic (null: unreadable), encrypted, files, bytes. */
  List<Map<String, Object>> counts() {
    List<Map<String, Object>> counts = new ArrayList<>();
    groups.forEach(
        (group, sums) -> {
          Map<String, Object> count = new LinkedHashMap<>();
          count.put("kind", group.kind());
          count.put("magic", group.magic().isEmpty() ? null : group.magic());
          count.put("encrypted", group.encrypted());
          count.put("files", sums[0]);
          count.put("bytes", sums[1]);
          counts.add(count);
        });
    return counts;
  }
}
