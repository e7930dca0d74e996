package io.icebergcrypto.audit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.checked.ExpectedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;

/**
 * One file as a table knows it, with its key: secret.
 *
 * @param kind what it is to the table
 * @param path its location as the table's metadata has it
 * @param format its format: parquet, avro, puffin
 * @param length its length in bytes as the metadata says; -1: it does not say
 * @param keyMetadata its key metadata, decrypted; null: the table has no key for it
 */
public record KnownFile(
    FileKind kind, String path, String format, long length, ByteBuffer keyMetadata) {

  /**
   * Looks for a file: in the metadata itself, then in the manifests of the current snapshot, then
   * in those of older ones, each read once on this machine, until it is found.
   *
   * @param table a table of an encrypting catalog, whose FileIO decrypts
   * @param path the file's location; a local one may be without its scheme
   * @throws InvalidConfigurationException when no snapshot reaches it
   * @throws IcebergCryptoException when it is not found, and a manifest could not be read
   */
  public static KnownFile find(BaseTable table, String path) {
    return new Search(table, bare(path)).find();
  }

  private static String bare(String path) {
    return path.replaceFirst("^file:/*", "/");
  }

  @Override
  public String toString() {
    return path;
  }

  /** A search in one table. Manifests are many: none is kept. */
  private static final class Search {
    private final BaseTable table;
    private final String wanted;
    private final FileIO io;
    private final EncryptionManager manager;
    private final Set<String> seen = new HashSet<>();
    private RuntimeException failure;

    Search(BaseTable table, String wanted) {
      this.table = table;
      this.wanted = wanted;
      this.io = table.io();
      this.manager = table.encryption();
    }

    private boolean matches(String path) {
      return bare(path).equals(wanted);
    }

    KnownFile find() {
      KnownFile found = inMetadata();
      List<Snapshot> snapshots = new ArrayList<>();
      table.snapshots().forEach(snapshots::add);
      Collections.reverse(snapshots);
      if (table.currentSnapshot() != null) {
        snapshots.add(0, table.currentSnapshot());
      }

      for (int i = 0; found == null && i < snapshots.size(); i++) {
        found = in(snapshots.get(i));
      }

      if (found != null) {
        return found;
      }

      if (failure != null) {
        throw failure;
      }

      throw new InvalidConfigurationException(
              String.format("no snapshot of it reaches the file %s", wanted),
              "Give the path as the table has it (SELECT file_path FROM <table>.all_files). The key"
                  + " of a file goes with its last snapshot; --key-file takes one from elsewhere.")
          .inTable(table.name());
    }

    private KnownFile inMetadata() {
      for (Snapshot snapshot : table.snapshots()) {
        String path = snapshot.manifestListLocation();
        if (matches(path)) {
          return inMetadata(FileKind.MANIFEST_LIST, path, "avro", -1, snapshot.keyId());
        }
      }

      for (StatisticsFile file : table.statisticsFiles()) {
        if (matches(file.path())) {
          return statistics(FileKind.STATISTICS, file.path(), "puffin", file.fileSizeInBytes());
        }
      }

      for (PartitionStatisticsFile file : table.partitionStatisticsFiles()) {
        if (matches(file.path())) {
          return statistics(
              FileKind.PARTITION_STATISTICS, file.path(), "parquet", file.fileSizeInBytes());
        }
      }

      return null;
    }

    private KnownFile statistics(FileKind kind, String path, String format, long length) {
      EncryptedKey key =
          manager instanceof TableEncryptionManager ours ? ours.statisticsKey(path) : null;
      return inMetadata(kind, path, format, length, key == null ? null : key.keyId());
    }

    private KnownFile inMetadata(
        FileKind kind, String path, String format, long length, String keyId) {
      try {
        ByteBuffer keyMetadata =
            keyId == null
                ? null
                : EncryptionUtil.decryptManifestListKeyMetadata(
                    new KeyOfList(path, keyId), manager);
        return new KnownFile(kind, path, format, length, keyMetadata);
      } catch (IcebergCryptoException e) {
        throw e;
      } catch (RuntimeException e) { // of any type, where an entry is gone or was changed
        throw new ExpectedFile(table.name(), path, null).unreadableKeyMetadata(e);
      }
    }

    private KnownFile in(Snapshot snapshot) {
      List<ManifestFile> manifests;
      try {
        manifests = snapshot.allManifests(io);
      } catch (RuntimeException e) {
        this.failure = failure == null ? e : failure;
        return null;
      }

      for (ManifestFile manifest : manifests) {
        if (matches(manifest.path())) {
          return new KnownFile(
              FileKind.MANIFEST,
              manifest.path(),
              "avro",
              manifest.length(),
              manifest.keyMetadata());
        }
      }

      for (ManifestFile manifest : manifests) {
        KnownFile found = seen.add(manifest.path()) ? in(manifest) : null;
        if (found != null) {
          return found;
        }
      }

      return null;
    }

    private KnownFile in(ManifestFile manifest) {
      try (CloseableIterable<? extends ContentFile<?>> files =
          manifest.content() == ManifestContent.DATA
              ? ManifestFiles.read(manifest, io, table.specs())
              : ManifestFiles.readDeleteManifest(manifest, io, table.specs())) {
        for (ContentFile<?> file : files) {
          if (matches(file.location())) {
            String format = file.format().name();
            return new KnownFile(
                FileKind.ofContent(file.content().id(), format),
                file.location(),
                format,
                file.fileSizeInBytes(),
                file.keyMetadata() == null ? null : file.keyMetadata().duplicate());
          }
        }
      } catch (IOException e) {
        this.failure = failure == null ? new UncheckedIOException(e) : failure;
      } catch (RuntimeException e) {
        this.failure = failure == null ? e : failure;
      }

      return null;
    }
  }
}
