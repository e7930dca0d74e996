package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.Unit;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import io.icebergcrypto.lifecycle.encrypt.Version;
import io.icebergcrypto.lifecycle.encrypt.WritableSpec;
import io.icebergcrypto.spark.table.Workers;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataOperations;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Scan;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * Which files of a plaintext table are to be copied, and which copies each of its versions consists
 * of. It keeps a hash for each data file, and lists no files: it scans twice. It goes on with a
 * table to which others only add files, of which it then reads nothing but their manifests.
 */
final class CopyPlan {
  /** How many files that were added it holds; more are found by a scan. */
  private static final int MOST_ADDED = 10_000;

  private final SourceViews views;
  private final List<Version> versions;
  private final Map<Unit, Share> units = new HashMap<>();
  private final List<List<LoggedGroup>> groups = new ArrayList<>(); // of each version
  private final String name;
  private final Set<String> specs;
  private final String nameMapping;
  private TableMetadata base;
  private List<FileScanTask> newFiles; // null: what is missing is found by a scan
  private int newFilesOf;
  private long files;
  private long bytes;
  private long filesLeft;
  private long bytesLeft;

  /** Bits of versions: those that a unit is in, those that have it already, those scanned again. */
  private static final class Share {
    private long in;
    private long done;
    private long seen;
  }

  /** Files that are copied together, by what they have in common. */
  private record Kind(long versions, int specId, FileFormat format) {}

  /** Files that are copied together. */
  static final class Group {
    private final BaseTable source;
    private final Kind kind;
    private final List<FileScanTask> files = new ArrayList<>();
    private final List<Unit> units = new ArrayList<>();
    private long bytes;

    private Group(BaseTable source, Kind kind) {
      this.source = source;
      this.kind = kind;
    }

    private void add(FileScanTask file, Unit unit) {
      files.add(file);
      units.add(unit);
      bytes += file.file().fileSizeInBytes();
    }

    /** What they are read from. */
    BaseTable source() {
      return source;
    }

    /** Their partition spec. */
    int specId() {
      return kind.specId();
    }

    /** What their copies are. */
    FileFormat format() {
      return kind.format();
    }

    List<FileScanTask> files() {
      return files;
    }

    /** What each of them is, with its delete files. */
    List<Unit> units() {
      return units;
    }

    /** Their length together. */
    long bytes() {
      return bytes;
    }
  }

  /** Copies groups. */
  interface Copier {
    /** Asked of one group after another: whether it is to be copied; false: enough was. */
    default boolean takes(Group group) {
      return true;
    }

    /** How many nanoseconds to wait before that. */
    default long pause(Group group) {
      return 0;
    }

    /** Copies a group that it takes, on any thread. */
    LoggedGroup copy(Group group);
  }

  /**
   * Plans for a table as it is.
   *
   * @param copied what was copied before; copies of files that are gone are not used
   */
  CopyPlan(SourceViews views, String name, TableMetadata base, List<LoggedGroup> copied) {
    this.views = views;
    this.name = name;
    this.specs = WritableSpec.all(base);
    this.nameMapping = LoggedGroup.nameMapping(base);
    this.base = base;
    this.versions = versions(name, base);
    versions.forEach(version -> groups.add(new ArrayList<>()));
    for (int i = 0; i < versions.size(); i++) {
      int version = i;
      scan(versions.get(i), task -> count(task, version));
    }

    copied.forEach(this::use);
    countLeft();
  }

  private static List<Version> versions(String name, TableMetadata metadata) {
    List<Version> all = new ArrayList<>(Version.distinct(Version.byRef(name, metadata)));
    Collections.reverse(all); // main first: what it shares with a tag has its schema then
    return all;
  }

  /** Counts a file of a version; whether no other version has it. */
  private boolean count(FileScanTask task, int version) {
    Share share = units.get(firstWithout(task, 1L << version, false));
    boolean isNew = share.in == 0;
    if (isNew) {
      files++;
      bytes += task.file().fileSizeInBytes();
    }

    share.in |= 1L << version;
    return isNew;
  }

  /**
   * Goes on with the table as it is now: all was copied, and since then others have only added
   * files to one of its branches, which no other one has.
   *
   * @return false: something else happened as well, so that another plan has to be made, and this
   *     one is of no more use
   */
  boolean follows(TableMetadata now) {
    List<Version> next = versions(name, now);
    int changed = changed(next);
    if (changed < 0
        || filesLeft > 0
        || now.formatVersion() != base.formatVersion()
        || now.currentSchemaId() != base.currentSchemaId()
        || !WritableSpec.all(now).equals(specs)
        || !LoggedGroup.nameMapping(now).equals(nameMapping)) {
      return false;
    }

    List<FileScanTask> tasks = whatWasAdded(now, versions.get(changed), next.get(changed));
    if (tasks == null) {
      return false;
    }

    this.base = now;
    this.newFiles = tasks;
    this.newFilesOf = changed;
    versions.set(changed, next.get(changed));
    boolean allNew = true;
    for (FileScanTask task : tasks) {
      allNew &= count(task, changed);
    }

    countLeft();
    return allNew;
  }

  /** The one version that is another one now; negative when none is, or more are. */
  private int changed(List<Version> next) {
    if (next.size() != versions.size()) {
      return -1;
    }

    int[] changed =
        IntStream.range(0, next.size()).filter(i -> !next.get(i).equals(versions.get(i))).toArray();
    return changed.length == 1 ? changed[0] : -1;
  }

  /**
   * The files that a version has beside those of an earlier one; null when others are gone, or have
   * other deletes or row ids. All commits in between only appended, as they say; and as manifests
   * say, all that were there are as they were, and the others add these files and nothing else,
   * none of which is so old by its sequence number that an earlier delete applies to it.
   */
  private List<FileScanTask> whatWasAdded(TableMetadata now, Version before, Version after) {
    BaseTable view = views.of(now, after.schemaId());
    Snapshot old = now.snapshot(before.snapshotId());
    if (old == null
        || before.schemaId() != after.schemaId()
        || !onlyAppends(view, old.snapshotId(), after.snapshotId())) {
      return null;
    }

    Map<String, ManifestFile> manifests = new HashMap<>();
    now.snapshot(after.snapshotId())
        .allManifests(view.io())
        .forEach(manifest -> manifests.put(manifest.path(), manifest));
    for (ManifestFile manifest : old.allManifests(view.io())) {
      ManifestFile same = manifests.remove(manifest.path());
      if (same == null
          || same.sequenceNumber() != manifest.sequenceNumber()
          || !Objects.equals(same.firstRowId(), manifest.firstRowId())) {
        return null;
      }
    }

    if (!onlyAdd(manifests.values())) {
      return null;
    }

    List<FileScanTask> tasks = new ArrayList<>();
    each(
        view.newIncrementalAppendScan()
            .fromSnapshotExclusive(before.snapshotId())
            .toSnapshot(after.snapshotId()),
        tasks::add);
    List<String> scanned = tasks.stream().map(task -> task.file().location()).sorted().toList();
    return scanned.equals(paths(view, manifests.values())) ? tasks : null;
  }

  private static boolean onlyAppends(BaseTable table, long before, long after) {
    if (before == after || !SnapshotUtil.isAncestorOf(table, after, before)) {
      return false;
    }

    for (Snapshot snapshot : SnapshotUtil.ancestorsBetween(after, before, table::snapshot)) {
      if (!DataOperations.APPEND.equals(snapshot.operation())) {
        return false;
      }
    }

    return true;
  }

  /** Whether manifests add data files, and not too many to hold. */
  private static boolean onlyAdd(Collection<ManifestFile> manifests) {
    long files = 0;
    for (ManifestFile manifest : manifests) {
      if (manifest.content() != ManifestContent.DATA
          || manifest.addedFilesCount() == null
          || manifest.hasExistingFiles()
          || manifest.hasDeletedFiles()
          || manifest.minSequenceNumber() != manifest.sequenceNumber()) {
        return false;
      }

      files += manifest.addedFilesCount();
    }

    return files <= MOST_ADDED;
  }

  private static List<String> paths(BaseTable table, Collection<ManifestFile> manifests) {
    List<String> paths = new ArrayList<>();
    for (ManifestFile manifest : manifests) {
      try (CloseableIterable<String> files =
          ManifestFiles.readPaths(manifest, table.io(), table.specs())) {
        files.forEach(paths::add);
      } catch (IOException e) {
        throw new UncheckedIOException("Cannot read " + manifest.path(), e);
      }
    }

    Collections.sort(paths);
    return paths;
  }

  /** Counts what is left. The length is an estimate: the plan keeps none. */
  final void countLeft() {
    this.filesLeft = files;
    this.bytesLeft = bytes;
    if (units.values().stream().anyMatch(share -> share.done != 0)) {
      this.filesLeft = units.values().stream().filter(s -> (s.in & ~s.done) != 0).count();
      this.bytesLeft = files == 0 ? 0 : (long) ((double) bytes / files * filesLeft);
    }
  }

  /**
   * What each version has of the groups, once all is copied; the same for versions that share it.
   */
  Map<Version, List<LoggedGroup>> groups() {
    Map<Version, List<LoggedGroup>> all = new LinkedHashMap<>();
    for (int i = 0; i < versions.size(); i++) {
      all.put(versions.get(i), List.copyOf(groups.get(i)));
    }

    return all;
  }

  /** How many different data files there are. */
  long files() {
    return files;
  }

  /** Their length together. */
  long bytes() {
    return bytes;
  }

  /** How many of them no earlier run has copied. */
  long filesLeft() {
    return filesLeft;
  }

  /** About their length. */
  long bytesLeft() {
    return bytesLeft;
  }

  /** Copies what no version has yet, in groups of a size, some of them at the same time. */
  void copy(GroupSize size, Copier copier) {
    for (int i = 0; i < versions.size(); i++) {
      SortedMap<Integer, LoggedGroup> copied = new ConcurrentSkipListMap<>();
      int version = i;
      int[] taken = {0};
      Workers.run(
          size.atOnce(),
          workers ->
              eachGroup(
                  version,
                  size,
                  group -> {
                    if (copier.takes(group)) {
                      int number = taken[0]++;
                      workers.pause(copier.pause(group));
                      workers.begin(() -> copied.put(number, copier.copy(group)));
                    }
                  }));
      copied.values().forEach(this::use);
    }

    this.newFiles = newFiles == null ? null : List.of();
  }

  /** Files that a version has and that are not copied yet, in groups. */
  private void eachGroup(int version, GroupSize size, Consumer<Group> each) {
    long bit = 1L << version;
    BaseTable source = views.of(base, versions.get(version).schemaId());
    Map<Kind, Group> open = new HashMap<>();
    Consumer<FileScanTask> collect =
        task -> {
          Unit unit = firstWithout(task, bit, true);
          Share share = units.get(unit);
          share.seen |= bit;
          long missing = share.in & ~share.done;
          if ((missing & bit) != 0) {
            Kind kind = new Kind(missing, task.file().specId(), formatOf(task));
            Group group = open.computeIfAbsent(kind, key -> new Group(source, key));
            group.add(task, unit);
            if (size.isFull(group.bytes(), group.files().size())) {
              each.accept(open.remove(kind));
            }
          }
        };
    if (newFiles == null) {
      scan(versions.get(version), collect);
    } else if (version == newFilesOf) {
      newFiles.forEach(collect);
    }

    open.values().forEach(each);
  }

  /** Each copy stands for its unit in the versions that have it. */
  private void use(LoggedGroup group) {
    long suited = suited(group);
    Map<Long, List<UnitCopy>> byVersions = new LinkedHashMap<>();
    for (UnitCopy copy : group.copies()) {
      Share share = units.get(copy.unit());
      long common = share == null ? 0 : suited & share.in & ~share.done;
      if (common != 0) {
        share.done |= common;
        byVersions.computeIfAbsent(common, bits -> new ArrayList<>()).add(copy);
      }
    }

    byVersions.forEach(
        (bits, copies) -> {
          LoggedGroup part = group.with(copies);
          for (int i = 0; i < versions.size(); i++) {
            if ((bits & 1L << i) != 0) {
              groups.get(i).add(part);
            }
          }
        });
  }

  /**
   * The versions that a copy can be of: none where the table has changed what its ids stand for.
   */
  private long suited(LoggedGroup group) {
    long bits = 0;
    if (base.schemasById().containsKey(group.schemaId())
        && specs.contains(group.spec())
        && nameMapping.equals(group.nameMapping())) {
      for (int i = 0; i < versions.size(); i++) {
        int schemaId = versions.get(i).schemaId();
        if (schemaId == group.schemaId()
            || group.suits(
                base.schemasById().get(group.schemaId()), base.schemasById().get(schemaId))) {
          bits |= 1L << i;
        }
      }
    }

    return bits;
  }

  /** A task's unit, for the next time that a version lists this file. */
  private Unit firstWithout(FileScanTask task, long bit, boolean again) {
    for (int occurrence = 0; ; occurrence++) {
      Unit unit = Unit.of(task, occurrence);
      Share share = units.computeIfAbsent(unit, absent -> new Share());
      if (((again ? share.seen : share.in) & bit) == 0) {
        return unit;
      }
    }
  }

  private void scan(Version version, Consumer<FileScanTask> each) {
    each(views.of(base, version.schemaId()).newScan().useSnapshot(version.snapshotId()), each);
  }

  private static void each(Scan<?, FileScanTask, ?> scan, Consumer<FileScanTask> each) {
    try (CloseableIterable<FileScanTask> tasks = scan.planFiles()) {
      tasks.forEach(each);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot close a scan", e);
    }
  }

  /** ORC files cannot be encrypted. */
  private static FileFormat formatOf(FileScanTask task) {
    FileFormat format = task.file().format();
    return format == FileFormat.ORC ? FileFormat.PARQUET : format;
  }

  /** A format as Iceberg's options name it. */
  static String name(FileFormat format) {
    return format.name().toLowerCase(Locale.ROOT);
  }
}
