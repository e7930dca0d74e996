package io.icebergcrypto.spark.copy;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.lifecycle.PathMapping;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.spark.verify.scan.GroupIterator;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.avro.generic.GenericRecord;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.puffin.Blob;
import org.apache.iceberg.puffin.BlobMetadata;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinCompressionCodec;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.puffin.PuffinWriter;
import org.apache.iceberg.util.Pair;
import org.apache.spark.sql.Row;

/**
 * What a task does with the files of a table that is copied. It finds their keys in the manifest
 * list or the manifest that has them. What it writes has a new key, and a name of its own, so that
 * an attempt of a task meets no file of another attempt or of an earlier copy.
 */
@DefaultSerializer(JavaSerializer.class)
final class CopyTasks implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Pattern MANIFEST_LIST = Pattern.compile("(snap-\\d+)-.*");
  private static final int DELETED = 2; // a manifest entry's status
  private static final int ADDED = 1;
  private static final String REFERENCED_DATA_FILE = "referenced-data-file";

  private final TableTree tree;
  private final Plan plan;
  private final TableEncryptionManager manager;
  private final TableEncryptionManager ofStaged;
  private final Map<String, StagedFile> staged;

  /**
   * What all tasks of a copy have in common.
   *
   * @param staging the folder that files are written to
   * @param run the id of this run, which is in the name of each of its files
   * @param newerThan the sequence number from which on data files are new to the copy; -1 for all
   * @param kekId the KEK that encrypts the keys of new files
   */
  record Plan(PathMapping paths, String staging, String run, long newerThan, String kekId)
      implements Serializable {
    /** Where to write a file of the copy that belongs at a path. */
    String staged(String target) {
      return new PathMapping(paths.target(), paths.source()).below(staging, target);
    }

    /** The path, in the copy, of a file that takes the place of one of the table. */
    String target(String source, String name) {
      return paths.moved(source.substring(0, source.lastIndexOf('/'))) + "/" + name;
    }
  }

  /** One of the methods below that turn files into rows. */
  interface Step extends Serializable {
    Iterator<Row> apply(CopyTasks tasks, Iterator<Row> files);
  }

  /**
   * Takes what a step needs.
   *
   * @param manager encrypts new files
   * @param staged the files of earlier steps, which lists and manifests of this one name
   */
  CopyTasks(TableTree tree, Plan plan, TableEncryptionManager manager, List<StagedFile> staged) {
    this.tree = tree;
    this.plan = plan;
    this.manager = manager;
    this.ofStaged = manager.knowingToo(staged.stream().map(StagedFile::key).toList());
    this.staged = new HashMap<>();
    staged.forEach(file -> this.staged.put(file.source(), file));
  }

  // ---- what there is

  /** The manifests of manifest lists. */
  Iterator<Row> manifests(Iterator<Row> lists) {
    return GroupIterator.each(
        lists,
        list -> {
          List<Row> found = new ArrayList<>();
          int place = CopyRow.list(list);
          try (CloseableIterable<ManifestFile> manifests = tree.manifests(place)) {
            for (ManifestFile manifest : manifests) {
              String path = manifest.path();
              CopyProblem problem = problem(path, manifest.keyMetadata() != null);
              found.add(CopyRow.of(path, true, place, null, manifest.length(), problem));
            }
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }

          return found.iterator();
        });
  }

  /** The data and delete files that the copy needs, and all that cannot be copied. */
  Iterator<Row> files(Iterator<Row> manifests) {
    return ofManifests(
        manifests,
        (row, manifest) -> {
          List<Row> found = new ArrayList<>();
          AvroFiles.read(
              tree.io().newInputFile(manifest),
              entry -> {
                Row file = file(row, manifest, entry);
                if (file != null) {
                  found.add(file);
                }
              });
          return found.iterator();
        });
  }

  /** Null when the copy does not need it. */
  private Row file(Row row, ManifestFile manifest, GenericRecord entry) {
    GenericRecord file = (GenericRecord) entry.get("data_file");
    String path = file.get("file_path").toString();
    boolean isPuffin = FileFormat.PUFFIN.name().equalsIgnoreCase(text(file, "file_format"));
    boolean isPositions =
        value(file, "content") instanceof Integer content
            && content == FileContent.POSITION_DELETES.id();
    boolean isLive = (int) entry.get("status") != DELETED;
    CopyProblem problem = problem(path, !isLive || value(file, "key_metadata") != null);
    if (problem == null && isLive && isPositions && !isPuffin) {
      problem = CopyProblem.POSITION_DELETES;
    }

    if (problem == null && !(isLive && (isPositions || isNew(manifest, entry)))) {
      return null;
    }

    long length = (long) file.get("file_size_in_bytes");
    return CopyRow.of(path, isPositions, CopyRow.list(row), manifest.path(), length, problem);
  }

  private boolean isNew(ManifestFile manifest, GenericRecord entry) {
    Long number = (Long) value(entry, "file_sequence_number");
    if (number == null && (int) entry.get("status") == ADDED) {
      number = manifest.sequenceNumber(); // it is inherited
    }

    return number == null || number > plan.newerThan();
  }

  private CopyProblem problem(String path, boolean isKeyed) {
    if (!plan.paths().covers(path)) {
      return CopyProblem.OUTSIDE;
    }

    return isKeyed ? null : CopyProblem.PLAINTEXT;
  }

  // ---- what is written

  /** Rewrites deletion vectors: they name the data files that they are for. */
  Iterator<Row> rewriteDeletes(Iterator<Row> files) {
    return new GroupIterator<>(
        files,
        (first, next) ->
            CopyRow.list(first) == CopyRow.list(next)
                && Objects.equals(CopyRow.manifest(first), CopyRow.manifest(next)),
        group -> {
          String path = CopyRow.manifest(group.get(0));
          ManifestFile manifest =
              tree.manifests(CopyRow.list(group.get(0)), Set.of(path)).get(path);
          Map<String, ByteBuffer> keys = tree.keyMetadata(manifest, paths(group));
          return GroupIterator.each(
              group.iterator(),
              file -> rewriteDeletes(CopyRow.path(file), keys.get(CopyRow.path(file))));
        });
  }

  private Iterator<Row> rewriteDeletes(String path, ByteBuffer keyMetadata) {
    InputFile from =
        manager.decrypt(EncryptedFiles.encryptedInput(tree.io().newInputFile(path), keyMetadata));
    return write(path, "copy", to -> rewritePuffin(path, from, to)).iterator();
  }

  private long rewritePuffin(String path, InputFile from, OutputFile to) throws IOException {
    try (PuffinReader reader = Puffin.read(from).build()) {
      PuffinWriter writer = Puffin.write(to).setAll(reader.fileMetadata().properties()).build();
      try (writer) {
        for (Pair<BlobMetadata, ByteBuffer> read : reader.readAll(reader.fileMetadata().blobs())) {
          BlobMetadata before = read.first();
          BlobMetadata after = writer.write(moved(before, read.second()));
          if (before.offset() != after.offset() || before.length() != after.length()) {
            throw new IOException("The blobs of " + path + " do not follow each other");
          }
        }
      }

      return writer.fileSize();
    }
  }

  private Blob moved(BlobMetadata blob, ByteBuffer data) {
    Map<String, String> properties = new HashMap<>(blob.properties());
    properties.computeIfPresent(REFERENCED_DATA_FILE, (name, path) -> plan.paths().moved(path));
    return new Blob(
        blob.type(),
        blob.inputFields(),
        blob.snapshotId(),
        blob.sequenceNumber(),
        data,
        PuffinCompressionCodec.forName(blob.compressionCodec()),
        properties);
  }

  /** Rewrites manifests. */
  Iterator<Row> rewriteManifests(Iterator<Row> manifests) {
    return ofManifests(
        manifests,
        (row, manifest) ->
            write(
                    manifest.path(),
                    "copy",
                    to -> AvroFiles.rewrite(tree.io().newInputFile(manifest), to, this::moveEntry))
                .iterator());
  }

  private void moveEntry(GenericRecord entry) {
    GenericRecord file = (GenericRecord) entry.get("data_file");
    String path = file.get("file_path").toString();
    StagedFile copy = staged.get(path);
    if (copy == null) {
      file.put("file_path", plan.paths().moved(path));
    } else {
      file.put("file_path", copy.target());
      file.put("file_size_in_bytes", copy.length());
      file.put("key_metadata", keyMetadata(copy));
    }

    if (value(file, "referenced_data_file") != null) {
      file.put("referenced_data_file", plan.paths().moved(text(file, "referenced_data_file")));
    }
  }

  /** Rewrites manifest lists. */
  Iterator<Row> rewriteLists(Iterator<Row> lists) {
    return GroupIterator.each(
        lists,
        row -> {
          String path = CopyRow.path(row);
          Matcher name = MANIFEST_LIST.matcher(path.substring(path.lastIndexOf('/') + 1));
          return write(
                  path,
                  name.matches() ? name.group(1) + "-copy" : "snap-copy",
                  to -> AvroFiles.rewrite(tree.list(CopyRow.list(row)), to, this::moveManifest))
              .iterator();
        });
  }

  private void moveManifest(GenericRecord manifest) {
    String path = manifest.get("manifest_path").toString();
    StagedFile copy = Objects.requireNonNull(staged.get(path), path);
    manifest.put("manifest_path", copy.target());
    manifest.put("manifest_length", copy.length());
    manifest.put("key_metadata", keyMetadata(copy));
  }

  private ByteBuffer keyMetadata(StagedFile file) {
    return new KeyedFile(file.target(), file.key().keyId()).decryptKeyMetadata(ofStaged);
  }

  // ---- helpers

  /** Writes the content of a file. */
  private interface Content {
    /** Gives the length as stored. */
    long write(OutputFile to) throws IOException;
  }

  private List<Row> write(String source, String name, Content content) {
    String suffix = source.substring(source.lastIndexOf('.'));
    String target =
        plan.target(
            source, String.format("%s-%s-%s%s", name, plan.run(), UUID.randomUUID(), suffix));
    String path = plan.staged(target);
    NativeEncryptionOutputFile file = manager.encryptKeepingKey(tree.io().newOutputFile(path));
    try {
      long length = content.write(file.encryptingOutputFile());
      EncryptedKey key =
          KeyRegisteringManager.register(manager, file.keyMetadata().copyWithLength(length));
      if (!key.encryptedById().equals(plan.kekId())) {
        throw new IllegalStateException("Another KEK is in use: " + key.encryptedById());
      }

      return List.of(new StagedFile(source, path, target, length, key).toRow());
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path + " from " + source, e);
    }
  }

  private interface OfManifest {
    Iterator<Row> apply(Row row, ManifestFile manifest) throws IOException;
  }

  /** Works on manifests of which neighbours are of one manifest list. */
  private Iterator<Row> ofManifests(Iterator<Row> manifests, OfManifest work) {
    return new GroupIterator<>(
        manifests,
        (first, next) -> CopyRow.list(first) == CopyRow.list(next),
        group -> {
          Map<String, ManifestFile> listed =
              tree.manifests(CopyRow.list(group.get(0)), paths(group));
          return GroupIterator.each(
              group.iterator(),
              row -> {
                try {
                  return work.apply(row, listed.get(CopyRow.path(row)));
                } catch (IOException e) {
                  throw new UncheckedIOException("Cannot read " + CopyRow.path(row), e);
                }
              });
        });
  }

  private static Set<String> paths(List<Row> group) {
    return group.stream().map(CopyRow::path).collect(Collectors.toUnmodifiableSet());
  }

  /** Null also when files of this format version have no such field. */
  private static Object value(GenericRecord record, String field) {
    return record.hasField(field) ? record.get(field) : null;
  }

  private static String text(GenericRecord record, String field) {
    return String.valueOf(record.get(field));
  }
}
