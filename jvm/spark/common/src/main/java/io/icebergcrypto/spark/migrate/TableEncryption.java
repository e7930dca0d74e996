package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.EncryptedSnapshots;
import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.lifecycle.encrypt.Version;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.Depth;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.CleanableFailure;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.spark.sql.SparkSession;

/**
 * Encrypts a plaintext table in place. Spark copies the rows of all branches and tags into
 * encrypted files beside the plain ones; each group of copies is verified and compared when it is
 * made; then one commit puts them in the place of the plain files. Until then the table is as it
 * was, and others read and write it: what they commit is copied, too. A run that was killed goes on
 * where it was.
 */
public final class TableEncryption {
  /** Each takes up what was committed during the one before, and so has less to do. */
  private static final int ROUNDS = 100;

  /** How many of these may fail, as when files of an expired snapshot are gone. */
  private static final int FAILED_ROUNDS = 20;

  /** A look at all copies before a commit counts for so long, or for as long as it took. */
  private static final long LOOK_COUNTS_NANOS = 30_000_000_000L;

  /** A check of the key. Made before the others are counted. */
  private static final int CHECK_CALLS = 2;

  /** A KEK is wrapped, and unwrapped to see that it can be. */
  private static final int NEW_KEK_CALLS = 2;

  /** It is unwrapped when a run continues. */
  private static final int OLD_KEK_CALLS = 1;

  private final SparkSession spark;
  private final PlaintextTable plaintext;
  private final SourceViews views;
  private final CopyProof proof;
  private final Progress progress;
  private final CopyLog log;
  private final EncryptionOptions options;
  private final Throttle throttle;
  private final GroupSize groupSize;
  private final long kmsCallsBefore;
  private EncryptedKey kek;
  private final CopyManifests manifests = new CopyManifests();
  private final List<Map<Version, List<LoggedGroup>>> kept = new ArrayList<>(); // by commits
  private final Set<Proven> proven = new HashSet<>();
  private boolean committing = false; // in this round
  private CopyPlan plan; // of the round before; null: it is not known what that has copied
  private boolean verified = false;
  private boolean looked = false; // whether the copies of earlier calls are still there
  private long lookCountsUntil = System.nanoTime(); // that for all copies, before a commit
  private int copiedFiles = 0;
  private long takenBytes = 0;
  private long copyNanos = 0;

  /** Copies that were compared as a schema reads them. */
  private record Proven(int schemaId, LoggedGroup copies) {}

  private TableEncryption(
      SparkSession spark, PlaintextTable plaintext, EncryptionOptions options, Progress progress) {
    this.spark = spark;
    this.plaintext = plaintext;
    this.views = SourceViews.ofPlaintext(plaintext.table());
    this.proof = new CopyProof(spark, plaintext.name());
    this.progress = progress;
    this.options = options;
    this.throttle = new Throttle(options.throttle());
    this.groupSize =
        GroupSize.configured(
            spark, plaintext.table(), Math.min(options.maxBytes(), throttle.groupBytes()));
    this.kmsCallsBefore = kmsCalls();
    this.log = CopyLog.read(plaintext.catalog(), plaintext.table(), plaintext.keyId());
  }

  /**
   * Encrypts a table.
   *
   * @param progress is told how far it is
   * @throws IcebergCryptoException a refusal, or an error of the KMS or of the commit: the table is
   *     as it was. Another call continues where this one stopped
   */
  public static EncryptionReport run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      EncryptionOptions options,
      Progress progress) {
    PlaintextTable plaintext = PlaintextTable.load(catalog, identifier, options.keyId());
    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    try {
      TableEncryption encryption = new TableEncryption(spark, plaintext, options, progress);
      try {
        return options.dryRun() ? encryption.planned() : encryption.run();
      } catch (IcebergCryptoException e) {
        throw e.inTable(plaintext.name());
      } finally {
        CancelledException.toTheEnd(encryption::tidyUp);
      }
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  /** Where another run was faster, what this one has written of the log is no longer read. */
  private void tidyUp() {
    manifests.unused(kept).forEach(this::delete);
    TableMetadata now = plaintext.table().operations().current();
    if (EncryptionProperties.keyId(now.properties()) != null) {
      log.delete();
    }
  }

  private EncryptionReport planned() {
    TableMetadata base = plaintext.refreshed();
    lookForCopies(base);
    long rate = EncryptionReport.usualRate(spark, options.throttle());
    return report(base, plan(base), rate, null, null);
  }

  /**
   * What this call did, or would do.
   *
   * @param rate at how many bytes a second files are copied; null: none is left
   * @param rows how many rows main has; null: the table is not encrypted
   * @param keptMetadata where the metadata from before is; null likewise
   */
  private EncryptionReport report(
      TableMetadata base, CopyPlan plan, Long rate, Long rows, String keptMetadata) {
    boolean dryRun = options.dryRun();
    long planned = log.keks().isEmpty() ? NEW_KEK_CALLS : OLD_KEK_CALLS;
    return new EncryptionReport(
        plaintext.name(),
        plaintext.keyId(),
        Version.byRef(plaintext.name(), base).size(),
        plan.files(),
        plan.bytes(),
        dryRun ? plan.filesLeft() : copiedFiles,
        plan.filesLeft(),
        rows,
        CHECK_CALLS + (int) (dryRun ? planned : kmsCalls() - kmsCallsBefore),
        rate == null ? null : plan.bytesLeft() / rate + 1,
        keptMetadata,
        dryRun,
        keptMetadata != null);
  }

  private EncryptionReport run() {
    int failed = 0; // since the last round that copied something
    for (int round = 1; ; round++) {
      CancelledException.check();
      TableMetadata base = plaintext.refreshed();
      int before = copiedFiles;
      try {
        EncryptionReport done = round(base);
        if (done != null) {
          return done;
        }
      } catch (IcebergCryptoException | CommitStateUnknownException e) {
        throw e;
      } catch (Exception e) { // Spark throws checked ones undeclared
        CancelledException.rethrow(e);
        boolean inForce = isInForce(base);
        if (inForce && (!isOfGoneFile(e) || areCopiesThere(base))) {
          throw failed(e);
        }

        // files of a snapshot that was expired meanwhile are gone
        failed = copiedFiles > before ? 1 : failed + 1;
        if (failed == FAILED_ROUNDS || round == ROUNDS) {
          throw isOfGoneFile(e) && !inForce ? changed(round).withHint(lastFailure(e)) : failed(e);
        }
      }

      if (round == ROUNDS) {
        throw changed(round);
      }
    }
  }

  private IcebergCryptoException changed(int times) {
    return new IcebergCryptoException(
            String.format(
                "it was changed %d times while it was copied and compared, each time before the"
                    + " commit",
                times),
            "It is as it was, and what was copied is kept. Stop its writers for a while, and"
                + " call encrypt_table again, which continues.")
        .inTable(plaintext.name());
  }

  private static String lastFailure(Exception e) {
    return "The last time, a file of a snapshot was gone: " + reason(e);
  }

  private static String reason(Exception e) {
    return Causes.root(e).toString().lines().findFirst().orElse("");
  }

  private static boolean isOfGoneFile(Exception e) {
    return Causes.any(e, NotFoundException.class::isInstance);
  }

  private IcebergCryptoException failed(Exception e) {
    String reason = reason(e);
    if (committing) {
      return new IcebergCryptoException(
              "its commit failed: " + reason,
              "The table is as it was, unless the catalog makes the commit later, and what was"
                  + " copied is kept. Fix what failed, such as a grant, and call encrypt_table"
                  + " again: it continues, or says that the table is encrypted.",
              e)
          .inTable(plaintext.name());
    }

    return new IcebergCryptoException(
            "its rows cannot be copied: " + reason,
            "The table is as it was, and what was copied is kept. A file that is gone or damaged is"
                + " named above or in an executor's log: restore it from a backup or an object"
                + " version, and do not give up any of its rows for this. Fix anything else that"
                + " failed. Then call encrypt_table again, which continues.",
            e)
        .inTable(plaintext.name());
  }

  /**
   * Copies what is missing, checks all of it, and commits; null: another commit came first. When
   * enough was copied for one call, it ends after that.
   */
  private EncryptionReport round(TableMetadata base) {
    this.committing = false;
    TableMetadata form = EncryptedForm.of(base, plaintext.keyId(), keks(base));
    lookForCopies(base);
    begin("planning", 0, 0);
    CopyPlan plan = plan(base);
    if (plan.filesLeft() > 0) {
      log.begin();
    }

    begin("copying rows", plan.filesLeft(), plan.bytesLeft());
    long start = System.nanoTime();
    plan.copy(groupSize, new Copies(form));
    this.copyNanos += System.nanoTime() - start;
    plan.countLeft();
    this.plan = plan;
    if (plan.filesLeft() > 0) {
      return report(base, plan, throttle.rate(takenBytes, copyNanos), null, null);
    }

    String keptMetadata = keptMetadata(base);
    TableMetadata withCopy = withKeptMetadata(form, base, keptMetadata);
    BaseTable next = null;
    boolean keep = false;
    boolean committed = false;
    try {
      Map<Version, List<LoggedGroup>> groups = manifests.of(target(form), plan.groups());
      next =
          EncryptedSnapshots.make(
              plaintext.catalog(),
              plaintext.name(),
              plaintext.table().operations(),
              base,
              withCopy,
              groups);
      prove(base, next, plan.groups());
      if (!isInForce(base) || !wereCopiesThere(base)) {
        return null;
      }

      begin("commit", 0, 0);
      CancelledException.check();
      keep(base, keptMetadata);
      kept.add(groups);
      this.committing = true;
      keep = true; // it may get through without an answer
      KeyIdChange.commit(
          plaintext.catalog(), plaintext.identifier(), base, next.operations().current());
      committed = true; // even if a server, of a replica that lags, say, shows otherwise
      KeyIdChange.requireEncrypted(plaintext.catalog(), plaintext.identifier(), base);
      log.delete();
      return report(base, plan, null, rowsOf(next.currentSnapshot()), keptMetadata);
    } catch (CommitFailedException e) {
      keep = false;
      return null;
    } catch (RuntimeException e) {
      keep = committed || keep && !(e instanceof CleanableFailure);
      throw e;
    } finally {
      if (!keep) {
        if (committing) {
          kept.remove(kept.size() - 1);
        }

        BaseTable made = next;
        CancelledException.toTheEnd(() -> discard(made, keptMetadata));
      }
    }
  }

  private CopyPlan plan(TableMetadata base) {
    CopyPlan before = plan;
    this.plan = null; // until all that this one has is copied
    return before != null && before.follows(base)
        ? before
        : new CopyPlan(views, plaintext.name(), base, log.groups());
  }

  // ---- copying

  private List<EncryptedKey> keks(TableMetadata base) {
    if (kek == null) {
      List<EncryptedKey> before = log.keks();
      this.kek =
          before.isEmpty()
              ? Kek.make(
                  plaintext.name(), base, plaintext.keyId(), plaintext.catalog().context().kms())
              : before.get(before.size() - 1);
    }

    return List.of(kek);
  }

  /** Copies groups into a table to be, as far as this call copies, and proves each. */
  private final class Copies implements CopyPlan.Copier {
    private final TableMetadata form;

    private Copies(TableMetadata form) {
      this.form = form;
    }

    @Override
    public boolean takes(CopyPlan.Group group) {
      return isTaken(group.bytes());
    }

    @Override
    public long pause(CopyPlan.Group group) {
      return throttle.pause(group.bytes(), System.nanoTime());
    }

    @Override
    public LoggedGroup copy(CopyPlan.Group group) {
      BaseTable source = group.source();
      BaseTable target = target(EncryptedForm.withSchema(form, source.schema().schemaId()));
      boolean done = false;
      try {
        LoggedGroup copy = new GroupCopy(spark, group, target, form).copy(log.newManifest());
        proof.prove(source, target, copy, group.files());
        copied(target, copy, group);
        done = true;
        return copy;
      } finally {
        if (!done) {
          giveBack(group.bytes());
        }
      }
    }
  }

  /** Whether this call copies more, these bytes then. */
  private synchronized boolean isTaken(long bytes) {
    boolean isTaken = takenBytes < options.maxBytes();
    takenBytes += isTaken ? bytes : 0;
    return isTaken;
  }

  /** They were not copied: another round may. */
  private synchronized void giveBack(long bytes) {
    takenBytes -= bytes;
  }

  private synchronized void copied(BaseTable target, LoggedGroup copy, CopyPlan.Group group) {
    log.add(target, copy);
    copiedFiles += group.files().size();
    Progress.Counter counter = progress.counter();
    group.files().forEach(file -> counter.add(file.file().fileSizeInBytes()));
  }

  private BaseTable target(TableMetadata metadata) {
    TableOperations ops = new MetadataInMemory(plaintext.table().operations(), metadata);
    return plaintext.catalog().context().uncommitted(ops, plaintext.name());
  }

  private long kmsCalls() {
    KmsMetrics metrics = plaintext.catalog().context().kms().metrics();
    return metrics.wrapCalls() + metrics.unwrapCalls();
  }

  // ---- checking

  /** What is gone of the copies of earlier calls is copied again. */
  private void lookForCopies(TableMetadata base) {
    if (!looked && !log.groups().isEmpty()) {
      begin("looking for what was copied", 0, 0);
      BaseTable target = target(EncryptedForm.of(base, plaintext.keyId(), keks(base)));
      log.replaceAll(proof.present(plaintext.table().operations().io(), target, log.groups()));
    }

    this.looked = true;
  }

  /**
   * Whether all copies and their manifests are still there: until the commit, orphan removal of
   * other clients deletes files that no table has. What is gone is made again.
   */
  private boolean areCopiesThere(TableMetadata base) {
    boolean manifestsAreThere = !manifests.forgetGone(plaintext.table().operations().io());
    int before = copies();
    this.looked = false;
    lookForCopies(base);
    if (copies() == before) {
      return manifestsAreThere;
    }

    this.plan = null; // it counts on those that are gone
    return false;
  }

  /**
   * Whether that was so a short time ago: a look counts for as long as it took. The more there is,
   * the longer it takes, and beside writers, a look right before each commit would only bring
   * another round. What was copied since then was proved since then.
   */
  private boolean wereCopiesThere(TableMetadata base) {
    long now = System.nanoTime();
    if (now - lookCountsUntil < 0) {
      return true;
    }

    boolean areThere = areCopiesThere(base);
    long end = System.nanoTime();
    this.lookCountsUntil = areThere ? end + Math.max(end - now, LOOK_COUNTS_NANOS) : now;
    return areThere;
  }

  private int copies() {
    return log.groups().stream().mapToInt(group -> group.copies().size()).sum();
  }

  /**
   * Checks that every file is there and encrypted, once, as files of later rounds were proved just
   * now; and that every version has the rows of its copies. These were compared when they were
   * made; again where a version reads them with another schema than they were copied with, or than
   * the current one, with which their manifests are written.
   */
  private void prove(TableMetadata base, BaseTable next, Map<Version, List<LoggedGroup>> groups) {
    if (!verified) {
      proof.requireOk(next, Depth.STRUCTURE, progress);
      this.verified = true;
    }

    begin("comparing rows", 0, 0);
    Version.byRef(plaintext.name(), base)
        .forEach((ref, version) -> compare(base, next, ref, version, groups.get(version)));
  }

  private void compare(
      TableMetadata base, BaseTable next, String ref, Version version, List<LoggedGroup> groups) {
    TableMetadata copied = next.operations().current();
    Snapshot made = copied.snapshot(copied.ref(ref).snapshotId());
    long rows = groups.stream().mapToLong(LoggedGroup::rows).sum();
    proof.requireRows(ref, rows, listedRows(next, made));
    int schemaId = version.schemaId();
    List<Proven> unproven =
        groups.stream()
            .filter(group -> group.schemaId() != schemaId || schemaId != base.currentSchemaId())
            .map(group -> new Proven(schemaId, group))
            .filter(group -> !proven.contains(group))
            .toList();
    if (!unproven.isEmpty()) {
      BaseTable copy = target(EncryptedForm.withSchema(copied, schemaId));
      proof.requireSame(
          ref,
          RowSums.of(spark, views.of(base, schemaId), version.snapshotId()),
          RowSums.of(spark, copy, made.snapshotId()));
      proven.addAll(unproven);
    }
  }

  /** By the manifests: a summary does not count what a branch began with. */
  private static long listedRows(BaseTable table, Snapshot snapshot) {
    return snapshot.allManifests(table.io()).stream()
        .mapToLong(manifest -> manifest.addedRowsCount() + manifest.existingRowsCount())
        .sum();
  }

  /** How many rows a snapshot has, as it says; 0 without one. */
  private static long rowsOf(Snapshot snapshot) {
    return snapshot == null
        ? 0
        : Long.parseLong(snapshot.summary().getOrDefault(SnapshotSummary.TOTAL_RECORDS_PROP, "0"));
  }

  // ---- metadata

  /** Iceberg deletes old metadata files: a copy leads to the plain files until they are purged. */
  private static String keptMetadata(TableMetadata base) {
    return base.location() + "/metadata/plaintext-" + UUID.randomUUID() + ".metadata.json";
  }

  private void keep(TableMetadata base, String path) {
    TableMetadataParser.write(base, plaintext.table().operations().io().newOutputFile(path));
  }

  /** Nothing may delete files by age while two metadata files share the folder. */
  private static TableMetadata withKeptMetadata(
      TableMetadata form, TableMetadata base, String path) {
    Map<String, String> properties = new HashMap<>();
    properties.put(EncryptionProperties.PLAINTEXT_METADATA, path);
    String gc = base.properties().get(TableProperties.GC_ENABLED);
    if (gc != null) {
      properties.put(EncryptionProperties.PLAINTEXT_GC, gc);
    }

    properties.put(TableProperties.GC_ENABLED, "false");
    return TableMetadata.buildFrom(form).setProperties(properties).build();
  }

  private boolean isInForce(TableMetadata base) {
    TableMetadata now = plaintext.refreshed();
    return LoadedMetadata.isSame(now, base);
  }

  private void discard(BaseTable next, String keptMetadata) {
    delete(keptMetadata);
    if (next == null) {
      return;
    }

    next.operations().current().snapshots().stream()
        .filter(snapshot -> snapshot.keyId() != null)
        .forEach(snapshot -> delete(snapshot.manifestListLocation()));
  }

  private void delete(String path) {
    try {
      plaintext.table().operations().io().deleteFile(path);
    } catch (RuntimeException e) {
      // a file that nothing names: remove_orphan_files finds it
    }
  }

  // ---- Spark

  private void begin(String step, long files, long bytes) {
    spark
        .sparkContext()
        .setJobDescription("iceberg-crypto encrypts " + plaintext.name() + ": " + step);
    progress.begin(step, files, bytes);
  }
}
