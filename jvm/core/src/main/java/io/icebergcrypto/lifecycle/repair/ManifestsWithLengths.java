package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.io.checked.ListedLength;
import io.icebergcrypto.metadata.KeyedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiFunction;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.MetadataTableUtils;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RewriteManifests;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.exceptions.CleanableFailure;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.CloseableIterable;

/**
 * Rewrites manifests of the current snapshot, so that their key metadata and that of the streams in
 * them (Avro, Puffin) gives the files' lengths. Everything else of an entry stays: row ids, the
 * snapshot that added the file, sequence numbers. Parquet finds a file's end by itself.
 */
final class ManifestsWithLengths {
  private static final List<String> KEYS =
      List.of("file_path", "file_format", "file_size_in_bytes", "key_metadata");

  private final BaseTable table;
  private final TableMetadata metadata;
  private final List<ManifestFile> written = new ArrayList<>();

  private ManifestsWithLengths(BaseTable table) {
    this.table = table;
    this.metadata = table.operations().current();
  }

  /**
   * The manifests that lack a length, or list streams that do.
   *
   * @param snapshot the current one; null: none
   * @param deep whether all manifests are read, as it is known that some client leaves lengths out;
   *     else only if one of them lacks its own
   */
  static List<ManifestFile> lacking(BaseTable table, Snapshot snapshot, boolean deep) {
    if (snapshot == null || snapshot.keyId() == null) {
      return List.of();
    }

    StandardEncryptionManager manager = (StandardEncryptionManager) table.encryption();
    List<ManifestFile> all = snapshot.allManifests(table.io());
    List<ManifestFile> found = new ArrayList<>();
    boolean looks = deep || all.stream().anyMatch(m -> lacks(manager, m.keyMetadata()));
    for (ManifestFile manifest : all) {
      if (looks && (lacks(manager, manifest.keyMetadata()) || listsLacking(table, manifest))) {
        found.add(manifest);
      }
    }

    return found;
  }

  private static boolean lacks(StandardEncryptionManager manager, ByteBuffer keyMetadata) {
    return keyMetadata != null && KeyedFile.parsed(keyMetadata, manager).fileLength() == null;
  }

  private static boolean listsLacking(BaseTable table, ManifestFile manifest) {
    StandardEncryptionManager manager = (StandardEncryptionManager) table.encryption();
    try (ManifestReader<? extends ContentFile<?>> files = reader(table, manifest)) {
      for (ContentFile<?> file : files.select(KEYS)) {
        if (file.format() != FileFormat.PARQUET && lacks(manager, file.keyMetadata())) {
          return true;
        }
      }

      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
    }
  }

  private static ManifestReader<? extends ContentFile<?>> reader(
      BaseTable table, ManifestFile manifest) {
    return manifest.content() == ManifestContent.DATA
        ? ManifestFiles.read(manifest, table.io(), table.specs())
        : ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs());
  }

  /**
   * Writes them, and commits a snapshot with them.
   *
   * @param table as its catalog gives it, whose lists have lengths
   * @throws RuntimeException of the commit; if it is a {@link CleanableFailure}, nothing was
   *     changed
   */
  static void rewrite(BaseTable table) {
    List<ManifestFile> lacking = lacking(table, table.currentSnapshot(), true);
    if (!lacking.isEmpty()) {
      new ManifestsWithLengths(table).rewrite(lacking);
    }
  }

  private void rewrite(List<ManifestFile> lacking) {
    boolean commits = false;
    try {
      Map<String, FileScanTask> entries = entries();
      RewriteManifests commit = table.rewriteManifests();
      for (ManifestFile manifest : lacking) {
        FileScanTask read = entries.get(manifest.path());
        if (read == null) {
          throw new CommitFailedException(
              "Another commit has replaced manifest %s of %s", manifest.path(), table.name());
        }

        Map<String, Long> addedBy = addedBy(read);
        if (!addedBy.isEmpty()) {
          commit.addManifest(written(manifest, addedBy));
        }

        commit.deleteManifest(manifest);
      }

      commits = true;
      commit.commit();
    } catch (RuntimeException e) {
      if (!commits || e instanceof CleanableFailure) { // else it may have been committed
        written.forEach(manifest -> table.io().deleteFile(manifest.path()));
      }

      throw e;
    }
  }

  /** The reads of the manifests' entries by the manifests' paths, planned once for all. */
  private Map<String, FileScanTask> entries() {
    Table entries =
        MetadataTableUtils.createMetadataTableInstance(table, MetadataTableType.ENTRIES);
    Map<String, FileScanTask> found = new HashMap<>();
    try (CloseableIterable<FileScanTask> tasks =
        entries.newScan().select("snapshot_id", "data_file.file_path").planFiles()) {
      tasks.forEach(task -> found.put(task.file().location(), task));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return found;
  }

  /** The snapshots that added the live files of a manifest, by path: its reader does not say. */
  private static Map<String, Long> addedBy(FileScanTask manifest) {
    Map<String, Long> found = new HashMap<>();
    try (CloseableIterable<StructLike> rows = manifest.asDataTask().rows()) {
      for (StructLike row : rows) {
        String path = row.get(1, StructLike.class).get(0, CharSequence.class).toString();
        found.put(path, row.get(0, Long.class));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return found;
  }

  private ManifestFile written(ManifestFile manifest, Map<String, Long> addedBy) {
    PartitionSpec spec = metadata.spec(manifest.partitionSpecId());
    String name = FileFormat.AVRO.addExtension(UUID.randomUUID() + "-with-lengths");
    EncryptedOutputFile target =
        table
            .encryption()
            .encrypt(table.io().newOutputFile(table.operations().metadataFileLocation(name)));
    int version = metadata.formatVersion();
    ManifestFile made =
        manifest.content() == ManifestContent.DATA
            ? written(
                ManifestFiles.read(manifest, table.io(), table.specs()),
                ManifestFiles.write(version, spec, target, null),
                addedBy,
                (file, length) -> withLength(spec, file, length))
            : written(
                ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs()),
                ManifestFiles.writeDeleteManifest(version, spec, target, null),
                addedBy,
                (file, length) -> withLength(spec, file, length));
    written.add(made);
    return made;
  }

  private <F extends ContentFile<F>> ManifestFile written(
      ManifestReader<F> files,
      ManifestWriter<F> writer,
      Map<String, Long> addedBy,
      BiFunction<F, Long, F> withLength) {
    StandardEncryptionManager manager = (StandardEncryptionManager) table.encryption();
    try (files;
        writer) {
      for (F file : files) {
        boolean lacks = file.format() != FileFormat.PARQUET && lacks(manager, file.keyMetadata());
        writer.existing(
            lacks ? withLength.apply(file, storedLength(file)) : file,
            addedBy.get(file.location()),
            file.dataSequenceNumber(),
            file.fileSequenceNumber());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return writer.toManifestFile();
  }

  /** The length in bytes of a stream, which has to be the one that the manifest gives. */
  private long storedLength(ContentFile<?> file) {
    long stored = table.io().newInputFile(file.location()).getLength();
    if (!ListedLength.fits(file.fileSizeInBytes(), stored)) {
      throw new NotSupportedException(
              String.format(
                  "file %s has %d bytes, but its manifest gives %d",
                  file.location(), stored, file.fileSizeInBytes()),
              "Verify the table, and restore that file; then call repair_table again.")
          .inTable(table.name());
    }

    return stored;
  }

  private DataFile withLength(PartitionSpec spec, DataFile file, long length) {
    DataFiles.Builder copy = DataFiles.builder(spec).copy(file).withFileSizeInBytes(length);
    return copy.withEncryptionKeyMetadata(keyMetadata(file, length)).build();
  }

  private DeleteFile withLength(PartitionSpec spec, DeleteFile file, long length) {
    return FileMetadata.deleteFileBuilder(spec)
        .copy(file)
        .withFileSizeInBytes(length)
        .withEncryptionKeyMetadata(keyMetadata(file, length))
        .build();
  }

  private NativeEncryptionKeyMetadata keyMetadata(ContentFile<?> file, long length) {
    return KeyedFile.parsed(file.keyMetadata(), (StandardEncryptionManager) table.encryption())
        .copyWithLength(length);
  }
}
