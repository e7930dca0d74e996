package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.NotSupportedException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableMetadata;

/**
 * A state of a table that a branch or a tag shows: the rows of a snapshot, read with a schema. A
 * branch is read with the table's current schema, a tag with that of its snapshot.
 */
public record Version(long snapshotId, int schemaId) {
  /** One bit of a long stands for each. */
  private static final int MAX = 63;

  /**
   * The versions of a table by the names of its branches and tags; main is the last one.
   *
   * @throws NotSupportedException when there are too many
   */
  public static Map<String, Version> byRef(String tableName, TableMetadata metadata) {
    Map<String, Version> versions = new LinkedHashMap<>();
    metadata.refs().keySet().stream()
        .filter(name -> !name.equals(SnapshotRef.MAIN_BRANCH))
        .sorted()
        .forEach(name -> versions.put(name, of(metadata, metadata.ref(name))));
    SnapshotRef main = metadata.ref(SnapshotRef.MAIN_BRANCH);
    if (main != null) {
      versions.put(SnapshotRef.MAIN_BRANCH, of(metadata, main));
    }

    if (versions.values().stream().distinct().count() > MAX) {
      throw new NotSupportedException(
              String.format("it has more than %d different branches and tags", MAX),
              "Nothing was changed. Drop those that are no longer needed, and call this again.")
          .inTable(tableName);
    }

    return versions;
  }

  /** The different ones; that of main is the last one, whichever other names it has. */
  public static List<Version> distinct(Map<String, Version> byRef) {
    Version main = byRef.get(SnapshotRef.MAIN_BRANCH);
    Stream<Version> others = byRef.values().stream().filter(version -> !version.equals(main));
    return Stream.concat(others, Stream.ofNullable(main)).distinct().toList();
  }

  private static Version of(TableMetadata metadata, SnapshotRef ref) {
    Snapshot snapshot = metadata.snapshot(ref.snapshotId());
    Integer schemaId = ref.isTag() ? snapshot.schemaId() : null;
    return new Version(ref.snapshotId(), schemaId == null ? metadata.currentSchemaId() : schemaId);
  }
}
