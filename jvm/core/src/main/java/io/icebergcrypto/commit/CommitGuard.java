package io.icebergcrypto.commit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.io.StatisticsFileIO;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.FileIO;

/**
 * Looks at every commit of a table before its catalog does. Refuses what would change or lose the
 * key id, and what would add a file that is not encrypted to an encrypted table. It reads the
 * commit's changes, never all snapshots: REST catalogs load those lazily.
 */
public final class CommitGuard {
  private final String tableName;
  private final boolean plaintextFiles;
  private final StatisticsPolicy statistics;
  private final boolean asStored;

  /**
   * Makes the guard of one table.
   *
   * @param plaintextFiles whether data and delete files may be added without a key
   * @param statistics what becomes of statistics files
   */
  public CommitGuard(String tableName, boolean plaintextFiles, StatisticsPolicy statistics) {
    this(tableName, plaintextFiles, statistics, false);
  }

  private CommitGuard(
      String tableName, boolean plaintextFiles, StatisticsPolicy statistics, boolean asStored) {
    this.tableName = tableName;
    this.plaintextFiles = plaintextFiles;
    this.statistics = statistics;
    this.asStored = asStored;
  }

  /** The same guard for an audit, which looks at the bytes of all files. */
  public CommitGuard withPlaintextFiles() {
    return new CommitGuard(tableName, true, statistics, true);
  }

  /** A table's storage, from which no plaintext file is read unless that is allowed. */
  public FileIO guarded(FileIO storage, TableEncryptionManager manager) {
    return asStored
        ? storage
        : StatisticsFileIO.guarded(storage, manager, plaintextFiles, statistics);
  }

  /**
   * Checks a commit.
   *
   * @param base the metadata in force, null when the commit creates the table
   * @param metadata the metadata to be
   * @param io the table's FileIO, which decrypts
   * @param hasKey whether there is a key for a statistics file
   * @throws IcebergCryptoException a refusal; nothing has been committed
   */
  public void check(
      TableMetadata base, TableMetadata metadata, Supplier<FileIO> io, Predicate<String> hasKey) {
    Map<String, String> before = base == null ? Map.of() : base.properties();
    if (!restoresKeyId(base, metadata)) {
      checkKeyId(tableName, base != null, before, metadata.properties());
    }

    PropertyNames.checkTable(tableName, before, metadata.properties());
    if (EncryptionProperties.keyId(metadata.properties()) == null) {
      return;
    }

    EncryptionProperties.check(tableName, before, metadata.properties());
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.AddSnapshot added) {
        checkSnapshot(added.snapshot(), metadata.specsById(), io.get());
      } else if (change instanceof MetadataUpdate.SetSnapshotRef ref
          && !plaintextFiles
          && isSnapshotWithoutRef(base, ref.snapshotId())) {
        checkSnapshot(base.snapshot(ref.snapshotId()), metadata.specsById(), io.get());
      } else if (change instanceof MetadataUpdate.SetStatistics set) {
        checkStatistics(base, set.statisticsFile().path(), hasKey);
      } else if (change instanceof MetadataUpdate.SetPartitionStatistics set) {
        checkStatistics(base, set.partitionStatisticsFile().path(), hasKey);
      }
    }
  }

  /** Checks the data key length in force: a stock client may have set one that no key can have. */
  public void checkDataKeyLength(TableMetadata base) {
    if (base != null && EncryptionProperties.keyId(base.properties()) != null) {
      EncryptionProperties.dataKeyLength(tableName, base.properties());
    }
  }

  /** Whether a commit puts back the key id that somebody removed: the one that wrapped the KEKs. */
  private static boolean restoresKeyId(TableMetadata base, TableMetadata metadata) {
    return base != null
        && EncryptionProperties.keyId(base.properties()) == null
        && EncryptionProperties.keyId(metadata.properties()) != null
        && EncryptionProperties.keyId(metadata.properties())
            .equals(EncryptionProperties.masterKeyId(base));
  }

  /**
   * Checks that a table's key id stays as it was when the table was created.
   *
   * @param exists whether there is a table already
   */
  public static void checkKeyId(
      String tableName, boolean exists, Map<String, String> before, Map<String, String> after) {
    String old = EncryptionProperties.keyId(before);
    String wanted = EncryptionProperties.keyId(after);
    if (!exists || Objects.equals(old, wanted)) {
      return;
    }

    if (old == null) {
      throw new NotSupportedException(
              String.format(
                  "%s cannot be set on a table that is not encrypted: its files would stay"
                      + " plaintext",
                  EncryptionProperties.KEY_ID),
              String.format(
                  "Make an encrypted copy: CREATE TABLE <new> USING iceberg TBLPROPERTIES"
                      + " ('%s'='%s') AS SELECT * FROM %s; then drop this table.",
                  EncryptionProperties.KEY_ID, wanted, tableName))
          .inTable(tableName);
    }

    String how =
        wanted == null
            ? String.format(
                "To store the data unencrypted, copy it: CREATE TABLE <new> USING iceberg AS SELECT"
                    + " * FROM %s, in a catalog without table-default.%s.",
                tableName, EncryptionProperties.KEY_ID)
            : String.format(
                "To rotate the master key, make a new version of '%s' in the KMS. To use another"
                    + " key, copy the table: CREATE TABLE <new> USING iceberg TBLPROPERTIES"
                    + " ('%s'='%s') AS SELECT * FROM %s.",
                old, EncryptionProperties.KEY_ID, wanted, tableName);
    throw new NotSupportedException(
            String.format(
                "%s is '%s' since the table was created and cannot be %s",
                EncryptionProperties.KEY_ID,
                old,
                wanted == null ? "removed" : "changed to '" + wanted + "'"),
            how)
        .inTable(tableName);
  }

  /** One that somebody staged or left behind, perhaps without this guard. */
  private static boolean isSnapshotWithoutRef(TableMetadata base, long snapshotId) {
    return base != null
        && base.snapshot(snapshotId) != null
        && base.refs().values().stream().noneMatch(ref -> ref.snapshotId() == snapshotId);
  }

  private void checkSnapshot(Snapshot snapshot, Map<Integer, PartitionSpec> specs, FileIO io) {
    if (snapshot.keyId() == null) {
      throw plaintext("manifest list", snapshot.manifestListLocation());
    }

    for (ManifestFile manifest : snapshot.allManifests(io)) {
      if (Objects.equals(manifest.snapshotId(), snapshot.snapshotId())) {
        if (manifest.keyMetadata() == null) {
          throw plaintext("manifest", manifest.path());
        }

        if (!plaintextFiles && manifest.hasAddedFiles()) {
          checkAddedFiles(manifest, specs, io);
        }
      }
    }
  }

  private void checkAddedFiles(
      ManifestFile manifest, Map<Integer, PartitionSpec> specs, FileIO io) {
    try (ManifestReader<? extends ContentFile<?>> reader =
        manifest.content() == ManifestContent.DATA
            ? ManifestFiles.read(manifest, io, specs)
            : ManifestFiles.readDeleteManifest(manifest, io, specs)) {
      for (ContentFile<?> file : reader.select(List.of("file_path", "key_metadata"))) {
        if (file.keyMetadata() == null) {
          throw plaintext("file", file.location());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
    }
  }

  private IcebergCryptoException plaintext(String what, String path) {
    return new PlaintextException(
            String.format("the commit adds a %s without encryption: %s", what, path),
            "Write the rows with INSERT or MERGE, which encrypts them, instead of adding files as"
                + " they are. Nothing was committed.")
        .inTable(tableName);
  }

  /**
   * Refuses a statistics file without a key. It stays where it is, whoever wrote it: an entry may
   * name any file, one of data, too. This table's own FileIO writes none in plaintext.
   */
  private void checkStatistics(TableMetadata base, String path, Predicate<String> hasKey) {
    if (statistics == StatisticsPolicy.PLAINTEXT || hasKey.test(path)) {
      return;
    }

    boolean isNew = base == null || !StatisticsPaths.of(base).contains(path);
    throw new PlaintextException(
            String.format(
                "statistics file %s has no key: it holds column values in plaintext%s",
                path, isNew ? ", and stays in the storage" : ""),
            isNew
                ? String.format(
                    "Delete it, unless it is another file of a table. With the catalog property"
                        + " %s=encrypt, compute_table_stats and compute_partition_stats write"
                        + " encrypted ones. In Java, write the file with newOutputFile of the same"
                        + " table's io(), under a name that Iceberg gives such files.",
                    EncryptionProperties.STATISTICS)
                : "Remove it from the table first:"
                    + " updateStatistics().removeStatistics(<snapshot id>) or"
                    + " updatePartitionStatistics().removePartitionStatistics(<snapshot id>)"
                    + " in Java, or expire the snapshot.")
        .inTable(tableName);
  }
}
