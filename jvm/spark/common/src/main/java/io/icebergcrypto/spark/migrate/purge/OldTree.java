package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import io.icebergcrypto.spark.verify.scan.GroupIterator;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.InputFile;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * The files that old metadata names, read down to the data files, and what there is of each now.
 * Spark's tasks read all of it. What names others and cannot be read is in the result, too: nobody
 * knows then what it named.
 */
final class OldTree {
  /**
   * A file; gap: why that cannot be read what it names, null when it can; problem: why the state is
   * not known, or what is wrong with what it names.
   */
  private static final StructType FILE =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("kind", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false)
          .add("gap", DataTypes.StringType)
          .add("problem", DataTypes.StringType);

  /** A file with its state, see below. */
  static final StructType FILES = FILE.add("state", DataTypes.StringType);

  /** A file before it is looked at; manifest: how a manifest is read, null for all others. */
  private static final StructType NAMED =
      FILE.add("list", DataTypes.IntegerType).add("manifest", DataTypes.BinaryType);

  /** By its bytes it is not encrypted. */
  static final String PLAINTEXT = "plaintext";

  static final String ENCRYPTED = "encrypted";
  static final String GONE = "gone";

  /** The storage did not say. */
  static final String UNKNOWN = "unknown";

  /** A gap: there is no such file. */
  static final String MISSING = "missing";

  /** A gap: the storage gives all its bytes, and they are not what they should be. */
  static final String DAMAGED = "damaged";

  /** A gap: the storage did not give it, so another call may read it. */
  static final String FAILED = "failed";

  private OldTree() {}

  /**
   * Reads the tree, and looks at each file.
   *
   * @param table the table with its old metadata
   * @return {@link #FILES}, each path once
   */
  static Dataset<Row> read(SparkSession spark, BaseTable table) {
    List<ReachableFile> lists = new ArrayList<>();
    List<Row> named = new ArrayList<>();
    for (ReachableFile file : MetadataFiles.ofSnapshots(table).named()) {
      boolean isList = file.kind() == FileKind.MANIFEST_LIST;
      named.add(row(file.path(), file.kind(), file.length(), isList ? lists.size() : null, null));
      if (isList) {
        lists.add(file);
      }
    }

    try (TableTree.Shared tree = new TableTree.Shared(spark, new TableTree(table, lists))) {
      Reader reader = new Reader(tree.there());
      FileJobs jobs = new FileJobs(spark);
      Dataset<Row> top =
          read(jobs.spread(spark.createDataFrame(named, NAMED), size(named.size())), reader::list);
      Dataset<Row> manifests = top.where("manifest IS NOT NULL").dropDuplicates("path");
      Dataset<Row> below = read(jobs.spread(manifests, size(manifests.count())), reader::manifest);
      Dataset<Row> all =
          top.where("manifest IS NULL").union(below).dropDuplicates("path").persist(LEVEL);
      MapPartitionsFunction<Row, Row> look = rows -> GroupIterator.each(rows, reader::look);
      Dataset<Row> looked =
          jobs.spread(all, size(all.count())).mapPartitions(look, Encoders.row(FILES));
      Dataset<Row> found = looked.localCheckpoint(true); // before the tree goes
      all.unpersist();
      below.unpersist();
      top.unpersist();
      return found;
    }
  }

  private static final StorageLevel LEVEL = StorageLevel.MEMORY_AND_DISK();

  private static Size size(long files) {
    return new Size(files, 0);
  }

  private interface Step extends Serializable {
    Iterator<Row> read(Row row);
  }

  private static Dataset<Row> read(Dataset<Row> files, Step step) {
    MapPartitionsFunction<Row, Row> read = rows -> GroupIterator.each(rows, step::read);
    return files.mapPartitions(read, Encoders.row(NAMED)).persist(LEVEL);
  }

  private static Row row(String path, FileKind kind, long length, Integer list, byte[] manifest) {
    return RowFactory.create(path, kind.label(), length, null, null, list, manifest);
  }

  /** What tasks do. */
  private record Reader(TableTree.Source tree) implements Serializable {
    /** A manifest list and its manifests; any other file is handed on. */
    Iterator<Row> list(Row list) {
      if (list.isNullAt(5)) {
        return List.of(list).iterator();
      }

      List<Row> found = new ArrayList<>();
      Gap gap = null;
      try (CloseableIterable<ManifestFile> all = tree.value().manifests(list.getInt(5))) {
        for (ManifestFile manifest : all) {
          byte[] encoded = ManifestFiles.encode(manifest);
          found.add(row(manifest.path(), FileKind.MANIFEST, manifest.length(), null, encoded));
        }
      } catch (IOException | RuntimeException e) {
        gap = gap(list.getString(0), e);
      }

      found.add(read(list, gap));
      return found.iterator();
    }

    /** A manifest, and the files that are live in it. */
    Iterator<Row> manifest(Row row) {
      List<Row> found = new ArrayList<>();
      Gap gap = null;
      try (CloseableIterable<? extends ContentFile<?>> files =
          tree.value().files(ManifestFiles.decode(row.<byte[]>getAs("manifest")))) {
        requireLength(tree.value().stored(row.getString(0)), row.getLong(2));
        for (ContentFile<?> file : files) {
          FileKind kind = FileKind.ofContent(file.content().id(), file.format().name());
          found.add(row(file.location(), kind, file.fileSizeInBytes(), null, null));
        }
      } catch (IOException | RuntimeException e) {
        gap = gap(row.getString(0), e);
      }

      found.add(read(row, gap));
      return found.iterator();
    }

    /** Avro takes a file that was cut off for one that ends there. */
    private static void requireLength(InputFile manifest, long expected) {
      if (manifest.getLength() != expected) {
        throw new IllegalStateException(
            String.format("it has %d bytes, expected %d", manifest.getLength(), expected));
      }
    }

    private static Row read(Row file, Gap gap) {
      return RowFactory.create(
          file.getString(0),
          file.getString(1),
          file.getLong(2),
          gap == null ? null : gap.kind(),
          gap == null ? null : gap.why(),
          null,
          null);
    }

    /** Whether the storage failed, or returned all bytes of what still cannot be read. */
    private Gap gap(String path, Exception e) {
      if (Causes.any(e, NotFoundException.class::isInstance)) {
        return new Gap(MISSING, "there is no such file");
      }

      try (InputStream in = tree.value().stored(path).newStream()) {
        in.transferTo(OutputStream.nullOutputStream());
        return new Gap(DAMAGED, Causes.innermostMessage(e));
      } catch (NotFoundException gone) {
        return new Gap(MISSING, "there is no such file");
      } catch (IOException | RuntimeException failed) {
        return new Gap(FAILED, Causes.innermostMessage(failed));
      }
    }

    /** What there is of a file, as a row of {@link #FILES}. */
    Iterator<Row> look(Row file) {
      InputFile stored = tree.value().stored(file.getString(0));
      long length = file.getLong(2);
      String why = file.getString(4);
      String state;
      try {
        FileMagic magic = FileInspector.magic(stored);
        length = length > 0 ? length : stored.getLength(); // one request less for each data file
        state = magic.encrypted() || magic == FileMagic.LATER ? ENCRYPTED : PLAINTEXT;
      } catch (NotFoundException e) {
        state = GONE;
      } catch (RuntimeException e) {
        boolean gone = FileProblem.isGone(() -> stored);
        state = gone ? GONE : UNKNOWN;
        why = gone ? why : Causes.innermostMessage(e);
      }

      return List.of(
              RowFactory.create(
                  stored.location(),
                  file.getString(1),
                  Math.max(length, 0),
                  file.getString(3),
                  why,
                  state))
          .iterator();
    }
  }

  private record Gap(String kind, String why) {}
}
