package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.SnapshotUtil;

/** Snapshots of an encrypted table that a client without encryption has committed. */
final class PlaintextFindings {
  private static final int NAMED = 10; // files and snapshots; verification names them all

  private final BaseTable table;
  private final FileIO io;
  private final boolean close;
  private final TableMetadata metadata;

  /**
   * Looks at nothing yet.
   *
   * @param io reads files; null: none can be read
   * @param close whether the manifests of plaintext snapshots are read, for the names of files
   */
  PlaintextFindings(BaseTable table, FileIO io, boolean close) {
    this.table = table;
    this.io = io;
    this.close = close;
    this.metadata = table.operations().current();
  }

  void addTo(List<Finding> found) {
    List<Snapshot> plaintext =
        metadata.snapshots().stream().filter(one -> one.keyId() == null).toList();
    Snapshot current = metadata.currentSnapshot();
    if (!plaintext.isEmpty()) {
      found.add(Finding.of(Kind.PLAINTEXT, detail(plaintext), remedy(plaintext, current)));
    }

    if (current != null && io != null) {
      checkList(current, found);
    }
  }

  /** How many snapshots are plaintext, in words; null: none. */
  static String count(TableMetadata metadata) {
    long plaintext = metadata.snapshots().stream().filter(one -> one.keyId() == null).count();
    return plaintext == 0
        ? null
        : String.format(
            "%d of %d snapshots are plaintext: they have no key",
            plaintext, metadata.snapshots().size());
  }

  private String detail(List<Snapshot> plaintext) {
    StringBuilder text = new StringBuilder();
    text.append(count(metadata));
    for (Snapshot snapshot : plaintext.stream().limit(NAMED).toList()) {
      text.append(
          String.format(
              "; snapshot %d of %tFT%<tTZ, manifest list %s%s",
              snapshot.snapshotId(),
              Instant.ofEpochMilli(snapshot.timestampMillis()).atZone(ZoneOffset.UTC),
              snapshot.manifestListLocation(),
              close ? ", " + files(snapshot) : ""));
    }

    return text.append(plaintext.size() > NAMED ? "; and more" : "").toString();
  }

  /** The files that a snapshot adds, as far as they are plaintext. */
  private String files(Snapshot snapshot) {
    List<String> files = new ArrayList<>();
    boolean more = false;
    try {
      for (ManifestFile manifest : snapshot.allManifests(io)) {
        if (manifest.keyMetadata() == null && manifest.snapshotId() == snapshot.snapshotId()) {
          more |= !add(manifest, files);
        }
      }
    } catch (RuntimeException e) {
      CancelledException.rethrow(e);
      return "whose files cannot be listed: " + e;
    }

    return files.isEmpty()
        ? "without files of its own"
        : "files " + String.join(", ", files) + (more ? " and more" : "");
  }

  /** Whether all files of a manifest were added. */
  private boolean add(ManifestFile manifest, List<String> files) {
    try (ManifestReader<? extends ContentFile<?>> reader =
        manifest.content() == ManifestContent.DATA
            ? ManifestFiles.read(manifest, io, metadata.specsById())
            : ManifestFiles.readDeleteManifest(manifest, io, metadata.specsById())) {
      for (ContentFile<?> file : reader.select(List.of("file_path", "key_metadata"))) {
        if (file.keyMetadata() == null) {
          if (files.size() == NAMED) {
            return false;
          }

          files.add(file.location());
        }
      }

      return true;
    } catch (IOException e) {
      throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
    }
  }

  private String remedy(List<Snapshot> plaintext, Snapshot current) {
    if (plaintext.size() == metadata.snapshots().size()) {
      return copy();
    }

    return String.format(
        "Find the client that wrote them, and give it this catalog class; what it wrote was"
            + " readable by all who read the storage. %sWhen all rows that are to stay are in"
            + " encrypted snapshots, and you have compared them, the plaintext files can go, in a"
            + " catalog with encryption.plaintext-files=allow: CALL"
            + " <catalog>.system.expire_snapshots(table => %s, snapshot_ids => array(%s),"
            + " older_than => TIMESTAMP '1970-01-01 00:00:00'). Without older_than, this would also"
            + " expire encrypted snapshots older than history.expire.max-snapshot-age-ms (Iceberg's"
            + " default: 5 days). repair_table rolls nothing back, and deletes nothing.",
        current != null && current.keyId() == null ? back() : "",
        SqlNames.literal(SqlNames.withoutCatalog(table.name())),
        plaintext.stream()
            .limit(NAMED)
            .map(snapshot -> Long.toString(snapshot.snapshotId()))
            .collect(Collectors.joining(", ")));
  }

  /** How to get an encrypted table out of one that is not. */
  private String copy() {
    String keyId = EncryptionProperties.keyId(metadata.properties());
    return String.format(
        "Anyone who can read the storage can read its rows. Find the client that wrote them, and"
            + " give it this project's catalog class. Copy them: CREATE TABLE <new> USING iceberg"
            + " TBLPROPERTIES ('%s'='%s') AS SELECT * FROM %s (where that is refused, in a catalog"
            + " with encryption.plaintext-files=allow), and compare the copy. It has the rows that"
            + " main shows now; branches, tags and older snapshots are in this table alone, which"
            + " is to be dropped only when nobody needs them.",
        EncryptionProperties.KEY_ID, keyId == null ? "<master key id>" : keyId, table.name());
  }

  /** How main comes back to what it showed before: not to what another branch shows. */
  private String back() {
    String before =
        lastEncryptedOfMain()
            .map(
                snapshot ->
                    SqlNames.call(
                        "set_current_snapshot",
                        table.name(),
                        "snapshot_id => " + snapshot.snapshotId()))
            .orElse(
                String.format(
                    "find out which one that is: SELECT * FROM %s.snapshots", table.name()));
    return String.format(
        "Save the rows that are to stay (SELECT in a catalog of the same tables with"
            + " encryption.plaintext-files=allow), go back to the last encrypted snapshot that"
            + " main had (%s), and insert them. ",
        before);
  }

  /**
   * The last encrypted snapshot that main certainly showed: by its log, or an ancestor. A client
   * that replaces the table may leave neither; then it is the newest one, if all are of main.
   */
  private Optional<Snapshot> lastEncryptedOfMain() {
    List<Long> newestFirst = new ArrayList<>();
    metadata.snapshotLog().forEach(entry -> newestFirst.add(0, entry.snapshotId()));
    newestFirst.addAll(SnapshotUtil.currentAncestorIds(table));
    List<Snapshot> encrypted =
        metadata.snapshots().stream().filter(one -> one.keyId() != null).toList();
    boolean areOfMain =
        metadata.refs().size() == 1
            && encrypted.stream()
                .noneMatch(one -> one.summary().containsKey(SnapshotSummary.STAGED_WAP_ID_PROP));
    return newestFirst.stream()
        .map(metadata::snapshot)
        .filter(encrypted::contains)
        .findFirst()
        .or(
            () ->
                encrypted.stream()
                    .filter(one -> areOfMain)
                    .max(Comparator.comparingLong(Snapshot::sequenceNumber)));
  }

  /** The current manifest list, which exists, and is encrypted if the metadata has its key. */
  private void checkList(Snapshot snapshot, List<Finding> found) {
    String list = snapshot.manifestListLocation();
    try {
      FileMagic magic = FileInspector.magic(io.newInputFile(list));
      if (snapshot.keyId() != null && !magic.encrypted()) {
        found.add(
            Finding.of(
                Kind.TAMPERED,
                String.format("manifest list %s was written encrypted, and is %s", list, magic),
                FileProblem.hint(ProblemCode.TAMPERED, FileKind.MANIFEST_LIST)
                    + " Another file was put in its place: find out who did it. No row was"
                    + " returned: queries refuse it."));
      }
    } catch (NotFoundException e) {
      addMissing(list, found);
    } catch (RuntimeException e) {
      addUnread(list, e, found);
    }
  }

  private void addMissing(String list, List<Finding> found) {
    try {
      if (isCurrent(list)) {
        found.add(
            Finding.of(
                Kind.UNREADABLE,
                String.format("the current manifest list %s does not exist", list),
                FileProblem.hint(ProblemCode.MISSING, FileKind.MANIFEST_LIST)));
      }
    } catch (RuntimeException e) {
      addUnread(list, e, found);
    }
  }

  private static void addUnread(String list, RuntimeException e, List<Finding> found) {
    CancelledException.rethrow(e);
    found.add(
        Finding.of(
            Kind.UNCHECKED,
            String.format("%s cannot be read: %s", list, e),
            "Check that the storage is up, and let this user read it."));
  }

  /**
   * Whether a manifest list is the current one, as the table is now: a commit and maintenance in
   * between may have deleted the one that was.
   */
  private boolean isCurrent(String list) {
    try {
      TableMetadata now = table.operations().refresh();
      Snapshot current = now == null ? null : now.currentSnapshot();
      return current != null && list.equals(current.manifestListLocation());
    } catch (NoSuchTableException e) {
      return false;
    }
  }
}
