package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.ValidationException;

/** What becomes of a plaintext table's metadata: all but the snapshots, which name plain files. */
public final class EncryptedForm {
  private static final int FORMAT_VERSION = 3;

  private EncryptedForm() {}

  /**
   * The metadata of the same table, encrypted and without a snapshot. Its changes are those of the
   * base.
   *
   * @param keys the keys that it has
   */
  public static TableMetadata of(TableMetadata base, String keyId, Collection<EncryptedKey> keys) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(base);
    if (base.formatVersion() < FORMAT_VERSION) {
      builder.upgradeFormatVersion(FORMAT_VERSION);
    }

    WritableSpec.ensure(base, builder);
    builder.setProperties(properties(base.properties(), keyId));
    Set<String> gone = new HashSet<>(EncryptionProperties.OF_PLAINTEXT); // someone else set them
    gone.add(EncryptionProperties.FORMER_KEY_ID);
    gone.retainAll(base.properties().keySet());
    builder.removeProperties(gone);
    keys.forEach(builder::addEncryptionKey);
    builder.removeSnapshots(base.snapshots().stream().map(Snapshot::snapshotId).toList());
    // also those of snapshots that are no longer there
    base.statisticsFiles().forEach(file -> builder.removeStatistics(file.snapshotId()));
    base.partitionStatisticsFiles()
        .forEach(file -> builder.removePartitionStatistics(file.snapshotId()));
    return builder.build();
  }

  /** The properties that are new or differ. */
  public static Map<String, String> properties(Map<String, String> before, String keyId) {
    Map<String, String> changed = new HashMap<>();
    changed.put(EncryptionProperties.KEY_ID, keyId);
    for (String name :
        new String[] {
          TableProperties.DEFAULT_FILE_FORMAT, TableProperties.DELETE_DEFAULT_FILE_FORMAT
        }) {
      if (FileFormat.ORC.name().equalsIgnoreCase(before.get(name))) {
        changed.put(name, FileFormat.PARQUET.name().toLowerCase(Locale.ROOT));
      }
    }

    return changed;
  }

  /**
   * The same metadata, to be read and written with one of its schemas. Where that lacks a column by
   * which the table is partitioned or sorted, another partition spec and no order are the default:
   * Iceberg builds no metadata otherwise.
   *
   * @throws NotSupportedException when it builds none for this schema: a partition field has the
   *     name of a column that was dropped since
   */
  public static TableMetadata withSchema(TableMetadata metadata, int schemaId) {
    if (schemaId == metadata.currentSchemaId()) {
      return metadata;
    }

    Schema schema = metadata.schemasById().get(schemaId);
    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    try {
      builder.setCurrentSchema(schemaId);
    } catch (IllegalArgumentException | ValidationException e) {
      throw new NotSupportedException(
          String.format(
              "an older snapshot has schema %d, which does not fit a partition spec: %s",
              schemaId, e.getMessage()),
          "Nothing was changed. Copy the rows of the tags and branches with this schema into other"
              + " tables, and drop these tags and branches.");
    }

    WritableSpec.setDefault(metadata, schema, builder);
    if (!metadata.sortOrder().fields().stream()
        .allMatch(field -> WritableSpec.hasSource(field.sourceId(), field.transform(), schema))) {
      builder.setDefaultSortOrder(SortOrder.unsorted());
    }

    return builder.build();
  }

  /** The metadata with the current schema of another, and its default partition spec and order. */
  static TableMetadata withSchemaOf(TableMetadata other, TableMetadata metadata) {
    return TableMetadata.buildFrom(metadata)
        .setCurrentSchema(other.currentSchemaId())
        .setDefaultPartitionSpec(other.defaultSpecId())
        .setDefaultSortOrder(other.defaultSortOrderId())
        .build();
  }
}
