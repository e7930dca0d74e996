package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;

/**
 * Makes the snapshots of the table to be, in memory: one for each version, of the manifests of the
 * groups that it consists of. Groups that all versions have are appended first and once, so that
 * their rows have the same row ids in all of them.
 */
public final class EncryptedSnapshots {
  private final BaseTable table;
  private final TableOperations ops;
  private final TableMetadata base;
  private final Map<String, Version> byRef;
  private final Map<Version, Long> made = new HashMap<>();

  private EncryptedSnapshots(BaseTable table, TableMetadata base) {
    this.table = table;
    this.ops = table.operations();
    this.base = base;
    this.byRef = Version.byRef(table.name(), base);
  }

  /**
   * The metadata with all snapshots, branches and tags.
   *
   * @param operations those of the catalog's table
   * @param base the metadata of the plaintext table
   * @param form that of the encrypted one, without snapshots
   * @param groups the groups of each version
   * @return a table that no catalog has; its metadata's changes are those of the base
   */
  public static BaseTable make(
      EncryptedCatalog catalog,
      String name,
      TableOperations operations,
      TableMetadata base,
      TableMetadata form,
      Map<Version, List<CopiedGroup>> groups) {
    BaseTable table = catalog.uncommitted(new MetadataInMemory(operations, form), name);
    new EncryptedSnapshots(table, base).run(groups);
    return table;
  }

  private void run(Map<Version, List<CopiedGroup>> groups) {
    Snapshot trunk = byRef.containsKey(SnapshotRef.MAIN_BRANCH) ? trunk(groups) : null;
    for (Version version : Version.distinct(byRef)) {
      List<CopiedGroup> own =
          groups.get(version).stream().filter(g -> !isCommon(groups, g)).toList();
      if (trunk != null && own.isEmpty() && version.schemaId() == base.currentSchemaId()) {
        made.put(version, trunk.snapshotId());
      } else {
        made.put(version, staged(version, own));
      }
    }

    commit(refs(trunk));
  }

  /** The snapshot of what all versions have; null when they share nothing. */
  private Snapshot trunk(Map<Version, List<CopiedGroup>> groups) {
    List<CopiedGroup> common =
        groups.values().iterator().next().stream().filter(g -> isCommon(groups, g)).toList();
    if (common.isEmpty() && groups.size() > 1) {
      return null;
    }

    append(table.newFastAppend(), common).commit();
    return table.currentSnapshot();
  }

  private static boolean isCommon(Map<Version, List<CopiedGroup>> groups, CopiedGroup group) {
    return groups.values().stream().allMatch(all -> all.stream().anyMatch(other -> other == group));
  }

  /** Makes a snapshot on top of the trunk, with the schema of the version. */
  private long staged(Version version, List<CopiedGroup> own) {
    commit(EncryptedForm.withSchema(ops.current(), version.schemaId()));
    append(table.newFastAppend(), own).stageOnly().commit();
    List<Snapshot> all = ops.current().snapshots();
    commit(EncryptedForm.withSchema(ops.current(), base.currentSchemaId()));
    return all.get(all.size() - 1).snapshotId();
  }

  private static AppendFiles append(AppendFiles append, List<CopiedGroup> groups) {
    groups.stream().flatMap(group -> group.manifests().stream()).forEach(append::appendManifest);
    return append;
  }

  private TableMetadata refs(Snapshot trunk) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(ops.current());
    byRef.forEach(
        (name, version) ->
            builder.setRef(
                name, SnapshotRef.builderFrom(base.ref(name), made.get(version)).build()));
    if (trunk != null && !made.containsValue(trunk.snapshotId())) {
      builder.removeSnapshots(List.of(trunk));
    }

    return builder.build();
  }

  private void commit(TableMetadata next) {
    if (next != ops.current()) {
      ops.commit(ops.current(), next);
    }
  }
}
