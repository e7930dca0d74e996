package io.icebergcrypto.commit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.IcebergVersion;
import io.icebergcrypto.config.IcebergVersions;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.integrity.AuthenticatedFolder;
import io.icebergcrypto.io.WrittenFiles;
import io.icebergcrypto.io.checked.ParquetFooterCheck;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.util.Tasks;

/**
 * Refuses commits that would change or lose a table's key id, and those that would add a file to an
 * encrypted table that is not encrypted. It reads the commit's changes, never all snapshots: REST
 * catalogs load those lazily.
 */
final class CommitGuard {
  private static final List<String> COLUMNS =
      List.of("file_path", "file_format", "file_size_in_bytes", "key_metadata");

  /** Files that a commit reads at a time: fewer than an S3 client has connections (50). */
  private static final int READS = 32;

  private final boolean plaintextFiles;
  private final StatisticsPolicy statistics;
  private final boolean verified;

  /**
   * Makes a guard.
   *
   * @param plaintextFiles whether data and delete files may be added without a key
   * @param statistics what becomes of statistics files
   * @param verified whether what is inside of data files was looked at before
   */
  CommitGuard(boolean plaintextFiles, StatisticsPolicy statistics, boolean verified) {
    this.plaintextFiles = plaintextFiles;
    this.statistics = statistics;
    this.verified = verified;
  }

  /** Refuses another key id, or none, and properties of encryption that no table may have. */
  void checkProperties(Commit commit, TableMetadata metadata) {
    TableMetadata base = commit.base();
    Map<String, String> before = base == null ? Map.of() : base.properties();
    if (!KeyIdRule.isRestored(base, metadata)
        && !KeyIdRule.isRotated(base, metadata)
        && !KeyIdRule.isEncrypted(base, metadata)) {
      KeyIdRule.check(commit.tableName(), base != null, before, metadata.properties());
    }

    PropertyNames.checkTable(commit.tableName(), before, metadata.properties());
    ValueKeyProperties.checkKept(commit.tableName(), before, metadata.properties());
    refuseAnothersFolder(commit, before, metadata);
    if (EncryptionProperties.keyId(metadata.properties()) != null) {
      EncryptionProperties.check(commit.tableName(), before, metadata.properties());
      if (base == null || metadata.formatVersion() != base.formatVersion() || isFirst(base)) {
        EncryptionProperties.refuseLaterFormat(commit.tableName(), metadata.formatVersion());
      }
    }
  }

  /** Refuses to put metadata where that of an encrypted table is, and is cleaned up with it. */
  private static void refuseAnothersFolder(
      Commit commit, Map<String, String> before, TableMetadata metadata) {
    Map<String, String> after = metadata.properties();
    String path = after.get(TableProperties.WRITE_METADATA_LOCATION);
    String own = EncryptionProperties.keyId(after) == null ? null : metadata.uuid();
    if (AuthenticatedFolder.isOfAnother(path, own)
        && !path.equals(before.get(TableProperties.WRITE_METADATA_LOCATION))) {
      throw new InvalidConfigurationException(
              String.format(
                  "property %s belongs to another, encrypted table: %s",
                  TableProperties.WRITE_METADATA_LOCATION, path),
              "Leave it out. Nothing was committed.")
          .inTable(commit.tableName());
    }
  }

  /** Refuses files without a key in what is new in an encrypted table's metadata. */
  void checkFiles(Commit commit, TableMetadata metadata) {
    TableMetadata base = commit.base();
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.AddSnapshot added) {
        EncryptionProperties.checkPages(commit.tableName(), metadata.properties());
        checkSnapshot(commit, added.snapshot(), metadata.specsById());
      } else if (change instanceof MetadataUpdate.SetSnapshotRef ref
          && !plaintextFiles
          && isSnapshotWithoutRef(base, ref.snapshotId())) {
        checkSnapshot(commit, base.snapshot(ref.snapshotId()), metadata.specsById());
      } else if (change instanceof MetadataUpdate.SetStatistics set) {
        checkStatistics(commit, set.statisticsFile().path());
      } else if (change instanceof MetadataUpdate.SetPartitionStatistics set) {
        checkStatistics(commit, set.partitionStatisticsFile().path());
      }
    }
  }

  /**
   * Refuses files with a key in what is new in the metadata of a table that was decrypted: nobody
   * can read them there. A writer that had loaded the table before wrote them, such as a worker of
   * Kafka Connect, whose coordinator loads it again. Only such a table pays for reading manifests.
   */
  void checkFilesWithKeys(Commit commit, TableMetadata metadata) {
    Map<String, String> properties = metadata.properties();
    String former = properties.get(EncryptionProperties.FORMER_KEY_ID);
    if (former == null || EncryptionProperties.keyId(properties) != null) {
      return;
    }

    FileIO io = commit.plainIo();
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.AddSnapshot added) {
        Snapshot snapshot = added.snapshot();
        snapshot.allManifests(io).stream()
            .filter(m -> Objects.equals(m.snapshotId(), snapshot.snapshotId()))
            .filter(ManifestFile::hasAddedFiles)
            .forEach(m -> refuseKeys(commit, m, metadata.specsById(), io, former));
      }
    }
  }

  private static void refuseKeys(
      Commit commit,
      ManifestFile manifest,
      Map<Integer, PartitionSpec> specs,
      FileIO io,
      String former) {
    if (manifest.keyMetadata() != null) {
      throw withKey(commit, manifest.path(), former);
    }

    try (ManifestReader<? extends ContentFile<?>> reader = open(manifest, io, specs)) {
      for (ContentFile<?> file : reader.select(COLUMNS)) {
        if (file.keyMetadata() != null) {
          throw withKey(commit, file.location(), former);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
    }
  }

  private static IcebergCryptoException withKey(Commit commit, String path, String former) {
    return new NotSupportedException(
            String.format(
                "the commit adds encrypted file %s, which nobody could read in a plaintext table",
                path),
            String.format(
                "The table was encrypted with '%s', and the writer loaded it before decrypt_table."
                    + " To keep what it wrote, encrypt the table again, let the writer commit, stop"
                    + " it, and decrypt the table. Otherwise have it write its rows again. If a"
                    + " client without this catalog has committed the file before, nobody can read"
                    + " the table: once its rows were written again, delete the file from it (in"
                    + " Java, newDelete().deleteFile)."
                    + " Nothing was committed.",
                former))
        .inTable(commit.tableName());
  }

  /** One that was staged or left behind, perhaps without this guard. */
  private static boolean isSnapshotWithoutRef(TableMetadata base, long snapshotId) {
    return base != null
        && base.snapshot(snapshotId) != null
        && base.refs().values().stream().noneMatch(ref -> ref.snapshotId() == snapshotId);
  }

  private void checkSnapshot(Commit commit, Snapshot snapshot, Map<Integer, PartitionSpec> specs) {
    FileIO io = commit.io();
    if (snapshot.keyId() == null) {
      throw plaintext(commit, "manifest list", snapshot.manifestListLocation());
    }

    boolean first = isFirst(commit.base());
    List<ManifestFile> added =
        snapshot.allManifests(io).stream()
            .filter(m -> first || Objects.equals(m.snapshotId(), snapshot.snapshotId()))
            .toList();
    commit.keys().written().forget(snapshot.manifestListLocation());
    for (ManifestFile manifest : added) {
      if (manifest.keyMetadata() == null) {
        throw plaintext(commit, "manifest", manifest.path());
      }
    }

    if (!plaintextFiles || IcebergVersions.LOSES_KEYS_OF_DELETION_VECTORS) {
      // Tasks on a pool are asked every 10 ms whether they are done: longer than what is at hand
      // takes.
      WrittenFiles written = commit.keys().written();
      List<ManifestFile> unchecked =
          added.stream()
              .filter(m -> (first || m.hasAddedFiles()) && !written.isChecked(m))
              .toList();
      boolean toFetch = unchecked.stream().anyMatch(m -> !written.isAtHand(m));
      Queue<Runnable> footers = new ConcurrentLinkedQueue<>();
      Tasks.foreach(unchecked)
          .executeWith(toFetch && unchecked.size() > 1 ? AsCaller.workers() : null)
          .stopOnFailure()
          .run(manifest -> checkKeys(commit, manifest, specs, io, footers));
      sideBySide(footers);
      unchecked.forEach(written::checked);
    }

    added.forEach(manifest -> commit.keys().written().forget(manifest.path()));
  }

  /** Whether no commit of an encrypted table came before, whose files would have been checked. */
  private static boolean isFirst(TableMetadata base) {
    return base != null && EncryptionProperties.keyId(base.properties()) == null;
  }

  /** Refuses files without a key, and adds the checks of Parquet footers that are to be made. */
  private void checkKeys(
      Commit commit,
      ManifestFile manifest,
      Map<Integer, PartitionSpec> specs,
      FileIO io,
      Collection<Runnable> footers) {
    try (ManifestReader<? extends ContentFile<?>> reader = open(manifest, io, specs)) {
      for (ContentFile<?> file : reader.select(COLUMNS)) {
        if (file.keyMetadata() == null && isUnreadable(file)) {
          throw IcebergVersion.lostKey(commit.tableName(), file.location());
        } else if (file.keyMetadata() == null && !plaintextFiles) {
          throw isFirst(commit.base()) || isAdded(file, manifest)
              ? plaintext(commit, "file", file.location())
              : listedAgain(commit, file.location());
        } else if (!plaintextFiles
            && file.format() == FileFormat.PARQUET
            && !verified
            && !isFirst(commit.base()) // verified when it was copied
            && isAdded(file, manifest)) {
          InputFile stored = commit.stored(file);
          long length = file.fileSizeInBytes();
          footers.add(() -> ParquetFooterCheck.check(commit.tableName(), stored, length));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
    }
  }

  private static ManifestReader<? extends ContentFile<?>> open(
      ManifestFile manifest, FileIO io, Map<Integer, PartitionSpec> specs) {
    return manifest.content() == ManifestContent.DATA
        ? ManifestFiles.read(manifest, io, specs)
        : ManifestFiles.readDeleteManifest(manifest, io, specs);
  }

  /** A storage takes its time for each request, and one manifest lists thousands of files. */
  private static void sideBySide(Collection<Runnable> reads) {
    if (reads.size() <= 1) {
      reads.forEach(Runnable::run);
      return;
    }

    ExecutorService threads =
        AsCaller.threads("iceberg-crypto-commit", Math.min(reads.size(), READS));
    try {
      Tasks.foreach(reads).executeWith(threads).stopOnFailure().run(Runnable::run);
    } finally {
      threads.shutdown();
    }
  }

  /** Whether a file comes with the manifest; one that merges others also lists theirs. */
  private static boolean isAdded(ContentFile<?> file, ManifestFile manifest) {
    return Objects.equals(file.fileSequenceNumber(), manifest.sequenceNumber());
  }

  /** Whether a file without a key is a deletion vector that is nevertheless encrypted. */
  private static boolean isUnreadable(ContentFile<?> file) {
    return IcebergVersions.LOSES_KEYS_OF_DELETION_VECTORS && file.format() == FileFormat.PUFFIN;
  }

  private static IcebergCryptoException plaintext(Commit commit, String what, String path) {
    return new PlaintextException(
            String.format("the commit adds a %s without encryption: %s", what, path),
            "Write the rows with INSERT or MERGE, which encrypts them, instead of adding files as"
                + " they are. If this was such a statement, the table was encrypted while it ran:"
                + " run it again. Nothing was committed.")
        .inTable(commit.tableName());
  }

  private static IcebergCryptoException listedAgain(Commit commit, String path) {
    return PlaintextException.ofFile(path)
        .withHint(
            "Nothing was committed: the commit merges manifests and would list the file again. It"
                + " succeeds when the file is no longer in the table.")
        .inTable(commit.tableName());
  }

  /**
   * Refuses a statistics file without a key. It stays where it is, no matter who wrote it: an entry
   * may name any file, one of data, too. This table's own FileIO writes none in plaintext.
   */
  private void checkStatistics(Commit commit, String path) {
    if (statistics == StatisticsPolicy.PLAINTEXT || commit.keys().statisticsKey(path) != null) {
      return;
    }

    boolean isNew = commit.base() == null || !StatisticsPaths.of(commit.base()).contains(path);
    throw new PlaintextException(
            String.format(
                "statistics file %s has no key: it holds column values in plaintext%s",
                path, isNew ? ", and stays in the storage" : ""),
            isNew
                ? String.format(
                    "An entry may name any file: if this one holds nothing but statistics, it can"
                        + " be deleted. With the catalog property %s=encrypt, compute_table_stats"
                        + " and compute_partition_stats write encrypted ones. For"
                        + " compute_table_stats, name `columns`: their numbers of distinct values"
                        + " (ndv) stay plaintext in the metadata (docs/statistics.md). In Java,"
                        + " write the file with newOutputFile of the same table's io(), under a"
                        + " name that Iceberg gives such files.",
                    EncryptionProperties.STATISTICS)
                : "Remove it from the table first:"
                    + " updateStatistics().removeStatistics(<snapshot id>) or"
                    + " updatePartitionStatistics().removePartitionStatistics(<snapshot id>)"
                    + " in Java.")
        .inTable(commit.tableName());
  }
}
