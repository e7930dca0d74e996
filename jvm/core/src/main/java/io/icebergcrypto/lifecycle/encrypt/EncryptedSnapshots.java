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
import org.apache.iceberg.util.SnapshotUtil;

/**
 * Makes the snapshots of the table to be, in memory: one for each version, of the manifests of the
 * groups that it consists of. Groups that all versions have are appended first and once, so that
 * their rows have the same row ids in all of them. A branch has more snapshots, of the same rows,
 * when more than one sink has written it: see {@link SinkProgress}.
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
      Map<Version, List<LoggedGroup>> groups) {
    BaseTable table = catalog.context().uncommitted(new MetadataInMemory(operations, form), name);
    new EncryptedSnapshots(table, base).run(groups);
    return table;
  }

  /** Main's version is the last one: the others would begin with its rows. */
  private void run(Map<Version, List<LoggedGroup>> groups) {
    Snapshot trunk = trunk(groups);
    for (Version version : Version.distinct(byRef)) {
      List<LoggedGroup> own =
          groups.get(version).stream().filter(g -> trunk == null || !isCommon(groups, g)).toList();
      List<Map<String, String>> sinks = sinks(version);
      if (trunk != null
          && own.isEmpty()
          && sinks.isEmpty()
          && version.schemaId() == base.currentSchemaId()) {
        made.put(version, trunk.snapshotId());
      } else {
        made.put(version, made(version, own, sinks, trunk));
      }
    }

    commit(refs(trunk));
    if (trunk != null && ops.current().snapshot(trunk.snapshotId()) == null) {
      table.io().deleteFile(trunk.manifestListLocation());
    }
  }

  /** The snapshot of what all versions have; null when they share nothing, or there is one. */
  private Snapshot trunk(Map<Version, List<LoggedGroup>> groups) {
    if (groups.size() < 2 || !byRef.containsKey(SnapshotRef.MAIN_BRANCH)) {
      return null;
    }

    List<LoggedGroup> common =
        groups.values().iterator().next().stream().filter(g -> isCommon(groups, g)).toList();
    if (common.isEmpty()) {
      return null;
    }

    append(table.newFastAppend(), common).commit();
    return table.currentSnapshot();
  }

  private static boolean isCommon(Map<Version, List<LoggedGroup>> groups, LoggedGroup group) {
    return groups.values().stream().allMatch(all -> all.stream().anyMatch(other -> other == group));
  }

  /** What sinks look for; nothing writes to a tag. */
  private List<Map<String, String>> sinks(Version version) {
    return branch(version) == null
        ? List.of()
        : SinkProgress.of(SnapshotUtil.ancestorsOf(version.snapshotId(), base::snapshot));
  }

  /** A branch that shows a version; null when only tags do. */
  private String branch(Version version) {
    return byRef.keySet().stream()
        .filter(ref -> byRef.get(ref).equals(version) && base.ref(ref).isBranch())
        .findFirst()
        .orElse(null);
  }

  /**
   * Makes a snapshot on top of the trunk, with the schema of the version, and on top of that one
   * for each further sink, so that each shows all rows of the version.
   */
  private long made(
      Version version, List<LoggedGroup> own, List<Map<String, String>> sinks, Snapshot trunk) {
    TableMetadata form = ops.current();
    commit(EncryptedForm.withSchema(form, version.schemaId()));
    String branch = branch(version);
    if (branch != null && trunk != null) {
      commit(withBranch(ops.current(), branch, trunk.snapshotId()));
    }

    AppendFiles next = append(table.newFastAppend(), own);
    for (int i = 0; i < sinks.size(); i++) {
      sinks.get(i).forEach(next::set);
      if (i < sinks.size() - 1) {
        next.toBranch(branch).commit();
        next = table.newFastAppend();
      }
    }

    (branch == null ? next.stageOnly() : next.toBranch(branch)).commit();
    List<Snapshot> all = ops.current().snapshots();
    commit(EncryptedForm.withSchemaOf(form, ops.current()));
    return all.get(all.size() - 1).snapshotId();
  }

  private static AppendFiles append(AppendFiles append, List<LoggedGroup> groups) {
    groups.stream().flatMap(group -> group.manifests().stream()).forEach(append::appendManifest);
    return append;
  }

  private static TableMetadata withBranch(TableMetadata metadata, String name, long snapshotId) {
    return TableMetadata.buildFrom(metadata)
        .setRef(name, SnapshotRef.branchBuilder(snapshotId).build())
        .build();
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
