package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.metadata.MetadataFile;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.exceptions.NotFoundException;

/** What was verified, and how: the part of a report that does not depend on what was found. */
final class Subject {
  private static final int MAX_SNAPSHOTS = 1000;

  private Subject() {}

  /**
   * How a table was verified, as JSON has it.
   *
   * @param metadata that of the table by which it was verified
   */
  static Map<String, Object> of(
      String name, BaseTable table, TableMetadata metadata, VerifyOptions options) {
    MetadataAuthentication authentication = EncryptedTable.metadataAuthentication(table, metadata);
    List<Snapshot> snapshots = new ArrayList<>(metadata.snapshots());
    snapshots.sort(Comparator.comparingLong(Snapshot::sequenceNumber).reversed());
    Snapshot current = metadata.currentSnapshot();
    List<Snapshot> checked =
        options.allSnapshots() ? snapshots : MetadataFiles.snapshotsOfRefs(metadata);

    String keyId = metadata.properties().get(TableProperties.ENCRYPTION_TABLE_KEY);

    Map<String, Object> json = new LinkedHashMap<>();
    json.put("table", name);
    json.put("key_id", keyId);
    json.put("kms", keyId == null ? null : EncryptedTable.kms(table));
    json.put("format_version", metadata.formatVersion());
    json.put("table_uuid", metadata.uuid());
    json.put("location", metadata.location());
    json.put("metadata_location", metadata.metadataFileLocation());
    json.put("metadata_sha256", sha256(table, metadata));
    json.put("metadata_authenticated", authentication.authenticated());
    json.put("metadata_authentication", authentication.detail());
    json.put("deep", options.depth() == Depth.DEEP);
    json.put("depth", options.depth().label());
    json.put("sample", options.sample());
    json.put("seed", options.seed());
    json.put("strays", options.strays());
    json.put("resume", options.resume());
    json.put("all_snapshots", options.allSnapshots());
    json.put("snapshots", checked.size());
    json.put("branches", refs(metadata, SnapshotRef::isBranch));
    json.put("tags", refs(metadata, SnapshotRef::isTag));
    json.put("current_snapshot_id", current == null ? null : current.snapshotId());
    json.put("snapshot_ids", first(checked).map(Snapshot::snapshotId).toList());
    json.put("snapshot_history", first(snapshots).map(Subject::history).toList());
    json.put(
        "plaintext_metadata", metadata.properties().get(EncryptionProperties.PLAINTEXT_METADATA));
    return json;
  }

  /** The names of branches besides main, or of tags. */
  private static List<String> refs(TableMetadata metadata, Predicate<SnapshotRef> kind) {
    return metadata.refs().entrySet().stream()
        .filter(ref -> kind.test(ref.getValue()))
        .map(Map.Entry::getKey)
        .filter(name -> !name.equals(SnapshotRef.MAIN_BRANCH))
        .sorted()
        .toList();
  }

  private static Stream<Snapshot> first(List<Snapshot> snapshots) {
    return snapshots.stream().limit(MAX_SNAPSHOTS);
  }

  /** The stored file's; null when the catalog does not say where that is, or commits removed it. */
  private static String sha256(BaseTable table, TableMetadata metadata) {
    String location = metadata.metadataFileLocation();
    try {
      return location == null ? null : MetadataFile.read(table.io(), location).sha256();
    } catch (NotFoundException e) {
      return null; // write.metadata.delete-after-commit.enabled
    }
  }

  private static Map<String, Object> history(Snapshot snapshot) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("snapshot_id", snapshot.snapshotId());
    json.put("timestamp", Instant.ofEpochMilli(snapshot.timestampMillis()).toString());
    json.put("files", total(snapshot, SnapshotSummary.TOTAL_DATA_FILES_PROP));
    json.put("bytes", total(snapshot, SnapshotSummary.TOTAL_FILE_SIZE_PROP));
    return json;
  }

  /** A sum that the writer kept in the snapshot's summary; null when it did not. */
  private static Long total(Snapshot snapshot, String property) {
    String value = snapshot.summary() == null ? null : snapshot.summary().get(property);
    try {
      return value == null ? null : Long.valueOf(value);
    } catch (NumberFormatException e) {
      return null;
    }
  }
}
