package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import io.icebergcrypto.spark.verify.scan.Grouped;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Looks for one file of a table. Spark tasks read the manifests, unless they are few. They tell
 * which manifest lists the file, and no more: its key is read from there on this machine.
 */
final class FileSearch {
  /** A manifest (null: all of a list), the place of a list that has it, and the file it lists. */
  private static final StructType PLACE =
      new StructType()
          .add("path", DataTypes.StringType)
          .add("list", DataTypes.IntegerType, false)
          .add("file", DataTypes.StringType)
          .add("length", DataTypes.LongType, false); // of the manifest

  private static final int PATH = 0;
  private static final int LIST = 1;
  private static final int FILE = 2;

  private final SparkSession spark;
  private final BaseTable table;
  private final String wanted;
  private final List<ReachableFile> lists;
  private final FileJobs jobs;
  private final TableTree tree;
  private final TableTree.Shared shared;

  private FileSearch(
      SparkSession spark, BaseTable table, String wanted, List<ReachableFile> lists) {
    this.spark = spark;
    this.table = table;
    this.wanted = wanted;
    this.lists = lists;
    this.jobs = new FileJobs(spark);
    this.tree = new TableTree(table, lists);
    this.shared = new TableTree.Shared(spark, tree);
  }

  /**
   * Looks for a file: in the metadata itself, then in what the current snapshot lists, then in what
   * older ones list.
   *
   * @param table a table of an encrypting catalog, whose FileIO decrypts
   * @param path the file's location; a local one may be without its scheme
   * @throws InvalidConfigurationException when no snapshot reaches it
   * @throws IcebergCryptoException when it is not found, and a manifest could not be read
   */
  static KnownFile find(SparkSession spark, BaseTable table, String path) {
    String wanted = bare(path);
    MetadataFiles metadata = MetadataFiles.ofSnapshots(table);
    for (ReachableFile file : metadata.named()) {
      if (bare(file.path()).equals(wanted)) {
        return new KnownFile(
            file.kind(),
            file.path(),
            file.format(),
            file.length(),
            new TableTree(table, List.of()).keyMetadata(file.path(), file.keyId()));
      }
    }

    List<ReachableFile> lists =
        metadata.named().stream().filter(f -> f.kind() == FileKind.MANIFEST_LIST).toList();
    return new FileSearch(spark, table, wanted, lists).find();
  }

  private static String bare(String path) {
    return path.replaceFirst("^file:/*", "/");
  }

  private KnownFile find() {
    try (shared) {
      return findBelowLists();
    }
  }

  private KnownFile findBelowLists() {
    Snapshot snapshot = table.currentSnapshot();
    String current = snapshot == null ? null : snapshot.manifestListLocation();
    Map<Boolean, List<Integer>> places =
        IntStream.range(0, lists.size())
            .boxed()
            .collect(Collectors.partitioningBy(i -> lists.get(i).path().equals(current)));
    Row unreadable = null;
    for (List<Integer> some : List.of(places.get(true), places.get(false))) {
      Row place = some.isEmpty() ? null : placeOrNull(some);
      if (place != null && !place.isNullAt(FILE)) {
        return read(place);
      }

      unreadable = unreadable == null ? place : unreadable;
    }

    if (unreadable != null) {
      throw failure(unreadable);
    }

    throw new InvalidConfigurationException(
            String.format("no snapshot of it reaches the file %s", wanted),
            "Give the path as the table has it (SELECT file_path FROM <table>.all_files). The key"
                + " of a file goes with its last snapshot; --key-file takes one from elsewhere.")
        .inTable(table.name());
  }

  /** Where the file is listed; else what could not be read, where it may be; or null. */
  private Row placeOrNull(List<Integer> places) {
    List<Row> rows = places.stream().map(list -> RowFactory.create(null, list, null, 0L)).toList();
    FileSet lists = FileSet.few(spark, rows, PLACE);
    FileSet manifests =
        jobs.distinct(search(lists, new Size(rows.size(), 0), Search::manifests)).persist();
    try {
      return search(manifests, manifests.size(), Search::places).greatestOrNull("file");
    } finally {
      manifests.release();
    }
  }

  private FileSet search(FileSet places, Size read, Step step) {
    Search here = new Search(shared.here(), wanted);
    return jobs.check(
        places, read, rows -> step.apply(here, rows), () -> byJobs(places.rows(), step), PLACE);
  }

  private Dataset<Row> byJobs(Dataset<Row> places, Step step) {
    Search there = new Search(shared.there(), wanted);
    MapPartitionsFunction<Row, Row> search = rows -> step.apply(there, rows);
    return places.sortWithinPartitions("list").mapPartitions(search, Encoders.row(PLACE));
  }

  /** Reads what a manifest, or a manifest list, has about the file. */
  private KnownFile read(Row place) {
    ManifestFile manifest = manifest(place);
    String path = place.getString(FILE);
    if (path.equals(manifest.path())) {
      return new KnownFile(
          FileKind.MANIFEST,
          path,
          FileKind.formatOfManifest(path),
          manifest.length(),
          manifest.keyMetadata());
    }

    try (CloseableIterable<? extends ContentFile<?>> files = tree.files(manifest)) {
      for (ContentFile<?> file : files) {
        if (path.equals(file.location())) {
          String format = file.format().name();
          return new KnownFile(
              FileKind.ofContent(file.content().id(), format),
              path,
              format,
              file.fileSizeInBytes(),
              tree.keyMetadata(manifest, Set.of(path)).get(path));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    throw failed(place);
  }

  private ManifestFile manifest(Row place) {
    String path = place.getString(PATH);
    return tree.manifests(place.getInt(LIST), Set.of(path)).get(path);
  }

  /** Reads again what a task could not read, for its own error. */
  private IcebergCryptoException failure(Row place) {
    try (CloseableIterable<?> all =
        place.isNullAt(PATH) ? tree.manifests(place.getInt(LIST)) : tree.files(manifest(place))) {
      all.forEach(ignored -> {});
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return failed(place);
  }

  private IcebergCryptoException failed(Row place) {
    String where =
        place.isNullAt(PATH) ? lists.get(place.getInt(LIST)).path() : place.getString(PATH);
    return new IcebergCryptoException(
            String.format("%s was not found, and %s could not be read at first", wanted, where),
            "The storage is not consistent, or failed for a moment. Try again.")
        .inTable(table.name());
  }

  /** One of the methods of {@link Search}. */
  private interface Step extends Serializable {
    Iterator<Row> apply(Search search, Iterator<Row> places);
  }

  /** What tasks do. Where they cannot read, they hand on the place without a file. */
  private record Search(TableTree.Source tree, String wanted) implements Serializable {
    /** The manifests of manifest lists. */
    Iterator<Row> manifests(Iterator<Row> lists) {
      return Grouped.each(
          lists,
          row -> {
            List<Row> found = new ArrayList<>();
            try (CloseableIterable<ManifestFile> all = tree.value().manifests(row.getInt(LIST))) {
              for (ManifestFile manifest : all) {
                found.add(
                    RowFactory.create(manifest.path(), row.getInt(LIST), null, manifest.length()));
              }
            } catch (IOException | RuntimeException e) {
              found.add(row);
            }

            return found.iterator();
          });
    }

    /** The manifests that list the file, or are it, of manifests with those of a list together. */
    Iterator<Row> places(Iterator<Row> manifests) {
      return new Grouped<>(
          manifests,
          (first, next) -> first.getInt(LIST) == next.getInt(LIST),
          group -> {
            Map<String, ManifestFile> listed;
            try {
              listed = tree.value().manifests(group.get(0).getInt(LIST), paths(group));
            } catch (RuntimeException e) {
              return group.iterator();
            }

            return Grouped.each(group.iterator(), row -> places(row, listed));
          });
    }

    private static Set<String> paths(List<Row> group) {
      return group.stream()
          .filter(row -> !row.isNullAt(PATH))
          .map(row -> row.getString(PATH))
          .collect(Collectors.toSet());
    }

    private Iterator<Row> places(Row row, Map<String, ManifestFile> listed) {
      if (row.isNullAt(PATH)) {
        return List.of(row).iterator();
      }

      String path = row.getString(PATH);
      if (bare(path).equals(wanted)) {
        return found(row, path);
      }

      try (CloseableIterable<? extends ContentFile<?>> files =
          tree.value().files(listed.get(path))) {
        for (ContentFile<?> file : files) {
          if (bare(file.location()).equals(wanted)) {
            return found(row, file.location());
          }
        }

        return Collections.emptyIterator();
      } catch (IOException | RuntimeException e) {
        return List.of(row).iterator();
      }
    }

    private static Iterator<Row> found(Row row, String file) {
      Row place = RowFactory.create(row.getString(PATH), row.getInt(LIST), file, 0L);
      return List.of(place).iterator();
    }
  }
}
