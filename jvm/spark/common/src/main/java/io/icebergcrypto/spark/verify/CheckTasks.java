package io.icebergcrypto.spark.verify;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.scan.GroupIterator;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.sql.Row;

/**
 * What a task does with the files that it was given. Keys do not come with them: the task opens the
 * manifest list, or the manifest, that has them.
 *
 * @param shared the tree, broadcast when the tasks are Spark's
 * @param check what is done with each file
 * @param recorded whether outcomes are recorded
 */
record CheckTasks(
    TableTree.Source shared, FileCheck check, boolean recorded, Progress.Counter counter)
    implements Serializable {

  /** One of the methods below that turn files into outcomes. */
  interface Check extends Serializable {
    Iterator<Row> apply(CheckTasks tasks, Iterator<Row> files);
  }

  /** Checks files that the table's metadata names, and reads what manifest lists list. */
  Iterator<Row> named(Iterator<Row> files) {
    return GroupIterator.each(
        files,
        file -> {
          TableTree tree = shared.value();
          if (isGone(file)) {
            return Collections.emptyIterator();
          }

          Supplier<ByteBuffer> key =
              () -> tree.keyMetadata(FileRow.path(file), FileRow.keyId(file));
          FileResult found = checked(file, key);
          return FileRow.kind(file) == FileKind.MANIFEST_LIST
              ? new ListingRows(found, () -> manifests(file), outcome -> row(file, outcome))
              : rows(file, found);
        });
  }

  private CloseableIterable<Row> manifests(Row list) {
    return CloseableIterable.transform(
        shared.value().manifests(FileRow.list(list)),
        manifest ->
            FileRow.below(
                list,
                FileKind.MANIFEST,
                manifest.path(),
                FileKind.formatOfManifest(manifest.path()),
                manifest.length(),
                null,
                null));
  }

  /** Checks manifests of which neighbours are of one manifest list, and reads what they list. */
  Iterator<Row> manifests(Iterator<Row> manifests) {
    return new GroupIterator<>(
        manifests,
        CheckTasks::together,
        group -> {
          Map<String, ManifestFile> listed;
          try {
            listed = shared.value().manifests(FileRow.list(group.get(0)), paths(group));
          } catch (RuntimeException e) {
            return failed(group, e);
          }

          return GroupIterator.each(
              group.iterator(),
              row -> {
                if (isGone(row)) {
                  return Collections.emptyIterator();
                }

                ManifestFile manifest = listed.get(FileRow.path(row));
                FileResult found = checked(row, manifest::keyMetadata);
                return new ListingRows(
                    found, () -> files(row, manifest), outcome -> row(row, outcome));
              });
        });
  }

  private CloseableIterable<Row> files(Row row, ManifestFile manifest) {
    return CloseableIterable.transform(
        shared.value().files(manifest, recorded), file -> file(row, manifest.path(), file));
  }

  private Row file(Row row, String manifest, ContentFile<?> file) {
    String format = file.format().name();
    FileKind kind = FileKind.ofContent(file.content().id(), format);
    long length = file.fileSizeInBytes();
    String entry =
        recorded
            ? FileRow.entry(kind, format, length, file.keyMetadata(), check.anyLength())
            : null;
    return FileRow.below(row, kind, file.location(), format, length, manifest, entry);
  }

  /** Checks data and delete files of which neighbours are of one manifest. */
  Iterator<Row> files(Iterator<Row> files) {
    if (check.depth() == Depth.MAGIC) {
      return GroupIterator.each(files, file -> found(file, () -> null));
    }

    return new GroupIterator<>(
        files,
        CheckTasks::together,
        group -> {
          Map<String, ByteBuffer> keys;
          try {
            keys = keys(group);
          } catch (RuntimeException e) {
            return failed(group, e);
          }

          return GroupIterator.each(
              group.iterator(), file -> found(file, () -> keys.get(FileRow.path(file))));
        });
  }

  private Map<String, ByteBuffer> keys(List<Row> group) {
    String path = FileRow.manifest(group.get(0));
    ManifestFile manifest =
        shared.value().manifests(FileRow.list(group.get(0)), Set.of(path)).get(path);
    return shared.value().keyMetadata(manifest, paths(group));
  }

  private Iterator<Row> found(Row file, Supplier<ByteBuffer> key) {
    return isGone(file) ? Collections.emptyIterator() : rows(file, checked(file, key));
  }

  /** Files that only expired snapshots reach are deleted sooner or later. */
  private boolean isGone(Row file) {
    try {
      return FileRow.isOlder(file) && !shared.value().stored(FileRow.path(file)).exists();
    } catch (RuntimeException e) {
      return false; // the check says why
    }
  }

  private Iterator<Row> rows(Row file, FileResult found) {
    return row(file, found).stream().iterator();
  }

  /**
   * What was found, unless it is that a file could not be read that only expired snapshots reach,
   * and it was deleted since it was there. If only what leads to it was, others may reach it, which
   * {@link SecondLook} finds out.
   */
  private Optional<Row> row(Row file, FileResult found) {
    boolean unread = found.code() != null && ProblemCode.UNREAD.contains(found.code());
    return unread && isGone(file) ? Optional.empty() : Optional.of(FileRow.checked(file, found));
  }

  private FileResult checked(Row file, Supplier<ByteBuffer> key) {
    FileResult found;
    try {
      ByteBuffer keyMetadata = check.depth() == Depth.MAGIC ? null : key.get();
      found =
          check.check(
              FileRow.kind(file),
              FileRow.format(file),
              shared.value().stored(FileRow.path(file)),
              FileRow.length(file),
              keyMetadata);
    } catch (RuntimeException e) {
      found = FailedCheck.of(FileRow.length(file), e);
    }

    counter.add(found.length());
    return found;
  }

  /** All of them, when what has their keys cannot be read. */
  private Iterator<Row> failed(List<Row> group, RuntimeException e) {
    return group.stream()
        .flatMap(file -> row(file, FailedCheck.of(FileRow.length(file), e)).stream())
        .iterator();
  }

  private static boolean together(Row first, Row next) {
    return FileRow.list(first) == FileRow.list(next)
        && FileRow.part(first) == FileRow.part(next)
        && Objects.equals(FileRow.manifest(first), FileRow.manifest(next));
  }

  private static Set<String> paths(List<Row> group) {
    return group.stream().map(FileRow::path).collect(Collectors.toUnmodifiableSet());
  }
}
