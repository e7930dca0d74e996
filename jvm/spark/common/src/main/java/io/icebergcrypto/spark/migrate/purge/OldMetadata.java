package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.spark.verify.TableVerifier;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;

/**
 * The metadata that a table had before it was encrypted: the copy that was kept, and older files of
 * the logs.
 *
 * @param kept null when it no longer exists, or is damaged
 * @param folders where the table was, by all metadata of it that could be read, as large as that is
 * @param rows the metadata files from before, as {@link OldTree#FILES}
 */
record OldMetadata(TableMetadata kept, Set<String> folders, Dataset<Row> rows) {
  private static final String EMBEDDED =
      "it lists manifests itself, as clients of format version 1 could, and these are not known";

  /** Whether all that the copy named is known: {@link OldTree} reads what manifest lists list. */
  boolean isWhole() {
    return kept != null && isWhole(kept);
  }

  private static boolean isWhole(TableMetadata kept) {
    return kept.snapshots().stream().allMatch(one -> one.manifestListLocation() != null);
  }

  /**
   * Reads them.
   *
   * @param path where the copy is
   * @throws TamperedException when the copy is not of this table
   */
  static OldMetadata read(
      SparkSession spark, FileIO storage, String tableName, TableMetadata current, String path) {
    List<Row> rows = new ArrayList<>();
    TableMetadata kept = kept(storage, tableName, current, path, rows);
    Set<String> folders = new LinkedHashSet<>();
    Set<String> older = new LinkedHashSet<>();
    Stream.concat(Stream.of(current), Stream.ofNullable(kept))
        .forEach(
            of -> {
              folders.addAll(TableVerifier.foldersOf(of));
              of.previousFiles().stream().map(MetadataLogEntry::file).forEach(older::add);
            });
    older.remove(current.metadataFileLocation());
    older.remove(path);
    for (String file : older) {
      try {
        MetadataFile read = MetadataFile.read(storage, file);
        TableMetadata metadata = metadataOrNull(read);
        if (metadata != null && current.uuid().equals(metadata.uuid())) {
          folders.addAll(TableVerifier.foldersOf(metadata));
          if (!EncryptionProperties.wasEncrypted(metadata)) {
            rows.add(row(file, read.length(), null, null, OldTree.PLAINTEXT));
          }
        }
      } catch (NotFoundException e) {
        // Iceberg, or an earlier call, has deleted it
      } catch (RuntimeException e) {
        rows.add(row(file, 0, null, Causes.innermostMessage(e), OldTree.UNKNOWN));
      }
    }

    return new OldMetadata(kept, folders, spark.createDataFrame(rows, OldTree.FILES));
  }

  private static TableMetadata kept(
      FileIO storage, String tableName, TableMetadata current, String path, List<Row> rows) {
    MetadataFile read;
    try {
      read = MetadataFile.read(storage, path);
    } catch (NotFoundException e) {
      rows.add(row(path, 0, OldTree.MISSING, "there is no such file", OldTree.GONE));
      return null;
    } catch (RuntimeException e) {
      rows.add(row(path, 0, OldTree.FAILED, Causes.innermostMessage(e), OldTree.UNKNOWN));
      return null;
    }

    TableMetadata kept = metadataOrNull(read);
    if (kept == null) {
      rows.add(
          row(path, read.length(), OldTree.DAMAGED, "it is not table metadata", OldTree.PLAINTEXT));
      return null;
    }

    if (!current.uuid().equals(kept.uuid())
        || EncryptionProperties.keyId(kept.properties()) != null) {
      throw new TamperedException(
              String.format("%s is not the metadata that it had before it was encrypted", path),
              String.format(
                  "Nothing was deleted. The property %s or that file was changed.",
                  EncryptionProperties.PLAINTEXT_METADATA))
          .inTable(tableName);
    }

    rows.add(
        isWhole(kept)
            ? row(path, read.length(), null, null, OldTree.PLAINTEXT)
            : row(path, read.length(), OldTree.DAMAGED, EMBEDDED, OldTree.PLAINTEXT));
    return kept;
  }

  private static TableMetadata metadataOrNull(MetadataFile file) {
    try {
      return file.metadata();
    } catch (RuntimeException e) {
      return null;
    }
  }

  private static Row row(String path, long length, String gap, String problem, String state) {
    return RowFactory.create(path, FileKind.METADATA_FILE.label(), length, gap, problem, state);
  }
}
