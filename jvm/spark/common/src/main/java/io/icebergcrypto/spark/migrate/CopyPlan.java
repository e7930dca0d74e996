package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.Unit;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import io.icebergcrypto.lifecycle.encrypt.Version;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.CloseableIterable;

/**
 * Which files of a plaintext table are to be copied, and which copies each of its versions consists
 * of. It keeps a hash for each data file, and lists no files: it scans twice.
 */
final class CopyPlan {
  private final SourceViews views;
  private final TableMetadata base;
  private final List<Version> versions;
  private final Map<Unit, Share> units = new HashMap<>();
  private final Map<Version, List<LoggedGroup>> groups = new LinkedHashMap<>();
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
  record Kind(long versions, int specId, FileFormat format) {}

  /** Copies files together; null: enough was copied. */
  interface Copier {
    LoggedGroup copy(BaseTable source, int specId, FileFormat format, List<FileScanTask> files);
  }

  /**
   * Plans for a table as it is.
   *
   * @param copied what was copied before; copies of files that are gone are not used
   */
  CopyPlan(SourceViews views, String name, TableMetadata base, List<LoggedGroup> copied) {
    this.views = views;
    this.base = base;
    List<Version> all = new ArrayList<>(Version.distinct(Version.byRef(name, base)));
    Collections.reverse(all); // main first: what it shares with a tag has its schema then
    this.versions = List.copyOf(all);
    versions.forEach(version -> groups.put(version, new ArrayList<>()));
    for (int i = 0; i < versions.size(); i++) {
      long bit = 1L << i;
      scan(
          versions.get(i),
          task -> {
            Share share = firstWithout(task, bit, false);
            if (share.in == 0) {
              files++;
              bytes += task.file().fileSizeInBytes();
            }

            share.in |= bit;
          });
    }

    copied.forEach(this::use);
    countLeft();
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
    return groups;
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

  /** Copies what no version has yet, in groups of a size. */
  void copy(GroupSize size, Copier copier) {
    for (int i = 0; i < versions.size(); i++) {
      long bit = 1L << i;
      BaseTable source = views.of(base, versions.get(i).schemaId());
      Map<Kind, List<FileScanTask>> open = new HashMap<>();
      Map<Kind, Long> sizes = new HashMap<>();
      scan(
          versions.get(i),
          task -> {
            Share share = firstWithout(task, bit, true);
            share.seen |= bit;
            long missing = share.in & ~share.done;
            if ((missing & bit) != 0) {
              Kind kind = new Kind(missing, task.file().specId(), formatOf(task));
              open.computeIfAbsent(kind, key -> new ArrayList<>()).add(task);
              long bytes = sizes.merge(kind, task.file().fileSizeInBytes(), Long::sum);
              if (size.isFull(bytes, open.get(kind).size())) {
                copy(copier, source, kind, open.remove(kind));
                sizes.remove(kind);
              }
            }
          });
      open.forEach((kind, tasks) -> copy(copier, source, kind, tasks));
    }
  }

  private void copy(Copier copier, BaseTable source, Kind kind, List<FileScanTask> tasks) {
    LoggedGroup group = copier.copy(source, kind.specId(), kind.format(), tasks);
    if (group != null) {
      use(group);
    }
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
              groups.get(versions.get(i)).add(part);
            }
          }
        });
  }

  private long suited(LoggedGroup group) {
    long bits = 0;
    if (base.schemasById().containsKey(group.schemaId())) {
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

  /** The units of tasks that are copied together, as {@link #copy} gave them. */
  List<Unit> unitsOf(List<FileScanTask> tasks) {
    Map<Unit, Integer> listed = new HashMap<>();
    List<Unit> all = new ArrayList<>();
    for (FileScanTask task : tasks) {
      Unit first = Unit.of(task, 0);
      int occurrence = listed.merge(first, 1, Integer::sum) - 1;
      all.add(occurrence == 0 ? first : Unit.of(task, occurrence));
    }

    return all;
  }

  /** The share of a task's unit, for the next time that a version lists this file. */
  private Share firstWithout(FileScanTask task, long bit, boolean again) {
    for (int occurrence = 0; ; occurrence++) {
      Share share = units.computeIfAbsent(Unit.of(task, occurrence), unit -> new Share());
      if (((again ? share.seen : share.in) & bit) == 0) {
        return share;
      }
    }
  }

  private void scan(Version version, Consumer<FileScanTask> each) {
    BaseTable view = views.of(base, version.schemaId());
    try (CloseableIterable<FileScanTask> tasks =
        view.newScan().useSnapshot(version.snapshotId()).planFiles()) {
      tasks.forEach(each);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot close the scan of " + view.name(), e);
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
