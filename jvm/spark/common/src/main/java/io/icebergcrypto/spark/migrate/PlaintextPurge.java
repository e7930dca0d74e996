package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Progress;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.ForeachPartitionFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * Deletes the files that a table had before it was encrypted in place, after which its old history
 * is gone. It deletes what the kept metadata reaches, is plaintext by its bytes, and is reached by
 * no snapshot of the table in force; and old metadata files. All of that is in the table's folders:
 * the kept metadata and its manifests are plaintext, and whoever changes them names any file. Then
 * it proves that the table's folders hold nothing in plaintext. It can be run again after a crash.
 */
public final class PlaintextPurge {
  private static final StructType FILES =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("kind", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false);

  private static final int SHOWN = 1000;
  private static final int NAMED = 10;

  private final SparkSession spark;
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final BaseTable table;
  private final Progress progress;

  /**
   * What was deleted, or would be.
   *
   * @param table the table's full name
   * @param files how many files
   * @param bytes their length together
   * @param paths the first 1000 of them
   * @param committed whether they are gone: not by a dry run
   */
  public record Purged(
      String table, long files, long bytes, List<String> paths, boolean committed) {
    /** One sentence for people. */
    public String message() {
      return committed
          ? String.format(
              "%d plaintext files deleted; no file in the table's folders is plaintext", files)
          : String.format("%d plaintext files would be deleted; nothing was changed", files);
    }

    /** The names and values for JSON. */
    public Map<String, Object> toMap() {
      Map<String, Object> values = new LinkedHashMap<>();
      values.put("table", table);
      values.put("files", files);
      values.put("bytes", bytes);
      values.put("paths", paths);
      values.put("committed", committed);
      values.put("message", message());
      return values;
    }
  }

  private PlaintextPurge(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      BaseTable table,
      Progress progress) {
    this.identifier = identifier;
    this.spark = spark;
    this.catalog = catalog;
    this.table = table;
    this.progress = progress;
  }

  /**
   * Purges the plaintext of a table.
   *
   * @param dryRun true: only lists it
   * @throws NotSupportedException when the table was not encrypted in place, or was purged before,
   *     or some of it is not in the table's folders
   * @throws InvalidConfigurationException when gc.enabled was false before it was encrypted
   * @throws TamperedException when the kept metadata is not that of this table
   * @throws IcebergCryptoException when something in plaintext is left that it may not delete
   */
  public static Purged run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      boolean dryRun,
      Progress progress) {
    if (!(catalog.loadTable(identifier) instanceof BaseTable table)) {
      throw new NotSupportedException(
          String.format("%s is not a table with files of its own", identifier),
          "Give the table, without the name of a metadata table behind it.");
    }

    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    try {
      return new PlaintextPurge(spark, catalog, identifier, table, progress).run(dryRun);
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  private Purged run(boolean dryRun) {
    TableMetadata current = table.operations().current();
    String path = current.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    if (path == null || EncryptionProperties.keyId(current.properties()) == null) {
      throw new NotSupportedException(
              String.format(
                  "it has no %s: encrypt_table did not encrypt it, or its plaintext was purged",
                  EncryptionProperties.PLAINTEXT_METADATA),
              "Nothing was deleted. verify_encryption with strays => true finds plaintext files in"
                  + " its folders.")
          .inTable(table.name());
    }

    if (!dryRun) {
      requireOwnFiles(current.properties());
    }

    TableMetadata kept = kept(current, path);
    Dataset<Row> files = kept == null ? none() : files(current, kept);
    files = files.union(oldMetadata(current, kept, path)).persist(StorageLevel.MEMORY_AND_DISK());
    try {
      requireInFolders(files);
      Purged purged = listed(files, !dryRun);
      if (!dryRun) {
        delete(files);
        forget();
        CopyLog.deleteAll(table);
        prove();
      }

      return purged;
    } finally {
      files.unpersist();
    }
  }

  /**
   * encrypt_table itself set gc.enabled; what counts is what it was, unless the user set it since.
   */
  private void requireOwnFiles(Map<String, String> properties) {
    boolean shared = "false".equalsIgnoreCase(properties.get(EncryptionProperties.PLAINTEXT_GC));
    if (shared && !"true".equalsIgnoreCase(properties.get(TableProperties.GC_ENABLED))) {
      throw new InvalidConfigurationException(
              String.format(
                  "%s was false before it was encrypted: its plaintext files may be another table's"
                      + " or another branch's of the catalog",
                  TableProperties.GC_ENABLED),
              String.format(
                  "Nothing was deleted. If they are this table's alone, say so with ALTER TABLE ..."
                      + " SET TBLPROPERTIES ('%s'='true'), and call purge_plaintext again. On"
                      + " Nessie its branches share files: use Nessie's own garbage collection.",
                  TableProperties.GC_ENABLED))
          .inTable(table.name());
    }
  }

  /** The metadata that the table had; null when an earlier call has deleted it. */
  private TableMetadata kept(TableMetadata current, String path) {
    TableMetadata kept;
    try {
      kept = MetadataFile.read(storage(), path).metadata();
    } catch (NotFoundException e) {
      return null;
    }

    if (!current.uuid().equals(kept.uuid())
        || EncryptionProperties.keyId(kept.properties()) != null) {
      throw new TamperedException(
              String.format("%s is not the metadata that it had before it was encrypted", path),
              String.format(
                  "Nothing was deleted. Somebody changed the property %s, or that file.",
                  EncryptionProperties.PLAINTEXT_METADATA))
          .inTable(table.name());
    }

    return kept;
  }

  // ---- what to delete

  /** What the kept metadata reaches and is plaintext, less what the table reaches. */
  private Dataset<Row> files(TableMetadata current, TableMetadata kept) {
    TableOperations before = new MetadataInMemory(behind(), kept);
    BaseTable now = catalog.uncommitted(new MetadataInMemory(behind(), current), table.name());
    Column plain = functions.col("encrypted").equalTo(false);
    try (VerifyResult old = reached(new BaseTable(before, table.name()));
        VerifyResult inForce = reached(now)) {
      if (!inForce.ok()) {
        throw new IcebergCryptoException(
                "it does not verify: " + inForce.summary(),
                "Nothing was deleted. verify_encryption says what is wrong; the plaintext may be"
                    + " needed.")
            .inTable(table.name());
      }

      return computed(
          old.files()
              .where(plain)
              .select("path", "kind", "length")
              .join(inForce.files().select("path"), "path", "left_anti"));
    }
  }

  /** Computed now, as the verifications let go of their files. */
  private static Dataset<Row> computed(Dataset<Row> files) {
    return files.localCheckpoint(true);
  }

  private VerifyResult reached(BaseTable of) {
    VerifyOptions options = new VerifyOptions(Depth.MAGIC, true, 1.0, 0, false, null);
    return TableVerifier.verifyUncommitted(spark, table.name(), of, options, progress);
  }

  /** Metadata files of the table's logs from before; those with a key id are left. */
  private Dataset<Row> oldMetadata(TableMetadata current, TableMetadata kept, String path) {
    Set<String> logged = new LinkedHashSet<>();
    current.previousFiles().stream().map(MetadataLogEntry::file).forEach(logged::add);
    if (kept != null) {
      kept.previousFiles().stream().map(MetadataLogEntry::file).forEach(logged::add);
    }

    logged.remove(current.metadataFileLocation());
    logged.add(path); // the last one: without it nothing leads to the others
    List<Row> rows = new ArrayList<>();
    for (String file : logged) {
      try {
        MetadataFile read = MetadataFile.read(storage(), file);
        TableMetadata metadata = read.metadata();
        if (current.uuid().equals(metadata.uuid())
            && !EncryptionProperties.wasEncrypted(metadata)) {
          rows.add(RowFactory.create(file, "metadata file", read.length()));
        }
      } catch (NotFoundException e) {
        // Iceberg, or an earlier call, has deleted it
      }
    }

    return spark.createDataFrame(rows, FILES);
  }

  /** By the metadata in force, which is authenticated, as the kept one is not. */
  private void requireInFolders(Dataset<Row> files) {
    List<String> folders = TableVerifier.foldersOf(table);
    Dataset<Row> outside = Folders.outside(files, folders);
    List<String> paths =
        outside.select("path").takeAsList(NAMED).stream().map(row -> row.getString(0)).toList();
    if (!paths.isEmpty()) {
      throw new NotSupportedException(
              String.format(
                  "%d plaintext files that its old metadata names are not in its folders (%s): %s",
                  outside.count(), String.join(", ", folders), String.join(", ", paths)),
              "Nothing was deleted. They may be another table's: add_files, snapshot and migrate"
                  + " import such files, and whoever can write to the storage can name any. If they"
                  + " are this table's alone, delete them with the tools of the storage, then call"
                  + " purge_plaintext again.")
          .inTable(table.name());
    }
  }

  private Dataset<Row> none() {
    return spark.createDataFrame(List.of(), FILES);
  }

  private Purged listed(Dataset<Row> files, boolean deleted) {
    Row sums =
        files.agg(functions.count(functions.lit(1)), functions.sum(functions.col("length"))).head();
    List<String> paths =
        files.orderBy("path").select("path").takeAsList(SHOWN).stream()
            .map(row -> row.getString(0))
            .toList();
    long bytes = sums.isNullAt(1) ? 0 : sums.getLong(1);
    return new Purged(table.name(), sums.getLong(0), bytes, paths, deleted);
  }

  // ---- deleting

  /** Data first, then what leads to it, so that a call after a crash finds the rest. */
  private void delete(Dataset<Row> files) {
    progress.begin("deleting", 0, 0);
    Broadcast<Storage> io =
        JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new Storage(storage()));
    ForeachPartitionFunction<Row> task =
        rows -> rows.forEachRemaining(row -> deleteFile(io.value().io(), row.getString(0)));
    try {
      Column metadata = functions.col("kind").equalTo("metadata file");
      files.where(functions.not(metadata)).foreachPartition(task);
      for (Row row : files.where(metadata).collectAsList()) {
        deleteFile(storage(), row.getString(0));
      }
    } finally {
      io.destroy();
    }
  }

  private static void deleteFile(FileIO io, String path) {
    try {
      io.deleteFile(path);
    } catch (NotFoundException e) {
      // an earlier call has deleted it
    }
  }

  /**
   * The log of metadata files forgets those from before, which takes a commit with a short log; and
   * the user's properties are back. A call after a crash in between does the rest.
   */
  private void forget() {
    commit(
        (before, builder) ->
            builder.setProperties(
                Map.of(
                    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX,
                    "1",
                    EncryptionProperties.PLAINTEXT_VERSIONS,
                    before.getOrDefault(
                        EncryptionProperties.PLAINTEXT_VERSIONS,
                        before.getOrDefault(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, "")))));
    commit(
        (before, builder) -> {
          builder.removeProperties(
              Set.of(
                  EncryptionProperties.PLAINTEXT_METADATA,
                  EncryptionProperties.PLAINTEXT_GC,
                  EncryptionProperties.PLAINTEXT_VERSIONS,
                  TableProperties.GC_ENABLED,
                  TableProperties.METADATA_PREVIOUS_VERSIONS_MAX));
          Map<String, String> back = new HashMap<>();
          String gc = before.get(TableProperties.GC_ENABLED);
          back.put(
              TableProperties.GC_ENABLED,
              "true".equalsIgnoreCase(gc) ? gc : before.get(EncryptionProperties.PLAINTEXT_GC));
          back.put(
              TableProperties.METADATA_PREVIOUS_VERSIONS_MAX,
              before.get(EncryptionProperties.PLAINTEXT_VERSIONS));
          back.values().removeIf(value -> value == null || value.isEmpty());
          return builder.setProperties(back);
        });
  }

  private void commit(
      BiFunction<Map<String, String>, TableMetadata.Builder, TableMetadata.Builder> change) {
    CommitRetry.commit(
        table.name(),
        table.operations(),
        Map.of(),
        base -> change.apply(base.properties(), TableMetadata.buildFrom(base)).build());
  }

  private void prove() {
    VerifyOptions options = new VerifyOptions(Depth.MAGIC, true, 1.0, 0, true, null);
    try (VerifyResult result = TableVerifier.verify(spark, table.name(), options, progress)) {
      if (!result.ok()) {
        throw new IcebergCryptoException(
                String.format(
                    "its plaintext files were deleted, and its folders hold others: %s, such as %s",
                    result.summary(), result.problems().get(0).path()),
                "verify_encryption with strays => true lists them. They belong to snapshots that"
                    + " expired, to failed writes, or to others: look at them, then delete them.")
            .inTable(table.name());
      }
    }
  }

  // ---- storage

  private FileIO storage() {
    return TableFileIO.storageBelow(table.operations().io());
  }

  /** Operations that read and write plain files of this table. */
  private TableOperations behind() {
    return catalog.unchecked(identifier).operations();
  }
}
