package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.CopiedGroup;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.EncryptedSnapshots;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.lifecycle.encrypt.Version;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Progress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.spark.sql.SparkSession;

/**
 * Encrypts a plaintext table in place. Spark copies the rows of all branches and tags into
 * encrypted files beside the plain ones; the copy is verified and compared; then one commit puts it
 * in the place of the plain files. Until then the table is as it was, and others read and write it:
 * what they commit is copied, too. A run that was killed goes on where it was.
 */
public final class TableEncryption {
  /** Each takes up what was committed during the one before. */
  private static final int ROUNDS = 20;

  private static final String FILES_PER_GROUP = "spark.iceberg-crypto.encrypt.files-per-group";
  private static final String BYTES_PER_GROUP = "spark.iceberg-crypto.encrypt.bytes-per-group";

  private final SparkSession spark;
  private final PlaintextTable plaintext;
  private final PlaintextViews views;
  private final Progress progress;
  private final CopyLog log;
  private EncryptedKey kek;
  private boolean compared = false;
  private int copiedFiles = 0;

  private TableEncryption(SparkSession spark, PlaintextTable plaintext, Progress progress) {
    this.spark = spark;
    this.plaintext = plaintext;
    this.views = new PlaintextViews(plaintext.table());
    this.progress = progress;
    this.log = CopyLog.read(plaintext.catalog(), plaintext.table(), plaintext.keyId());
  }

  /**
   * Encrypts a table.
   *
   * @param keyId the id of a master key in the KMS
   * @param dryRun true: only says what there is to do
   * @param progress is told how far it is
   * @throws IcebergCryptoException a refusal, or an error of the KMS or of the commit: the table is
   *     as it was. Another call goes on where this one was
   */
  public static EncryptedInPlace run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      String keyId,
      boolean dryRun,
      Progress progress) {
    PlaintextTable plaintext = PlaintextTable.load(catalog, identifier, keyId);
    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    try {
      TableEncryption encryption = new TableEncryption(spark, plaintext, progress);
      return dryRun ? encryption.planned() : encryption.run();
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  private EncryptedInPlace planned() {
    TableMetadata base = plaintext.refreshed();
    CopyPlan plan = new CopyPlan(views, plaintext.name(), base, log.groups());
    return EncryptedInPlace.planned(plaintext, base, plan, spark);
  }

  private EncryptedInPlace run() {
    for (int round = 1; ; round++) {
      TableMetadata base = plaintext.refreshed();
      try {
        EncryptedInPlace done = round(base);
        if (done != null) {
          return done;
        }
      } catch (IcebergCryptoException e) {
        throw e;
      } catch (RuntimeException e) {
        // files of a snapshot that was expired meanwhile are gone
        if (round == ROUNDS || isInForce(base)) {
          throw e;
        }
      }

      if (round == ROUNDS) {
        throw new IcebergCryptoException(
                String.format(
                    "it was changed %d times while it was copied and compared, each time before the"
                        + " commit",
                    ROUNDS),
                "It is as it was, and what was copied is kept. Stop its writers for a while, and"
                    + " call encrypt_table again, which goes on.")
            .inTable(plaintext.name());
      }
    }
  }

  /** Copies what is missing, checks all of it, and commits; null: another commit came first. */
  private EncryptedInPlace round(TableMetadata base) {
    TableMetadata form = EncryptedForm.of(base, plaintext.keyId(), keks(base));
    begin("planning", 0, 0);
    CopyPlan plan = new CopyPlan(views, plaintext.name(), base, log.groups());
    begin("copying rows", plan.filesLeft(), plan.bytesLeft());
    plan.copy(
        setting(BYTES_PER_GROUP, 16L << 30),
        (int) setting(FILES_PER_GROUP, 2000),
        (source, specId, format, files) -> copy(plan, source, form, specId, format, files));
    String keptMetadata = keepMetadata(base);
    TableMetadata withCopy = withKeptMetadata(form, base, keptMetadata);
    BaseTable next =
        EncryptedSnapshots.make(
            plaintext.catalog(),
            plaintext.name(),
            plaintext.table().operations(),
            base,
            withCopy,
            plan.groups());
    boolean committed = false;
    try {
      RowSums rows = check(base, next);
      if (!isInForce(base)) {
        return null;
      }

      begin("commit", 0, 0);
      KeyIdChange.commit(
          plaintext.catalog(), plaintext.identifier(), base, next.operations().current());
      committed = true;
      log.delete();
      return EncryptedInPlace.done(plaintext, base, plan, rows.rows(), copiedFiles, keptMetadata);
    } catch (CommitFailedException e) {
      return null;
    } finally {
      if (!committed && isInForceOrUnknown(base)) {
        discard(next, keptMetadata);
      }
    }
  }

  // ---- copying

  private List<EncryptedKey> keks(TableMetadata base) {
    if (kek == null) {
      List<EncryptedKey> before = log.keks();
      this.kek =
          before.isEmpty()
              ? Kek.make(plaintext.name(), base, plaintext.keyId(), plaintext.catalog().kms())
              : before.get(before.size() - 1);
    }

    return List.of(kek);
  }

  private CopiedGroup copy(
      CopyPlan plan,
      BaseTable source,
      TableMetadata form,
      int specId,
      FileFormat format,
      List<FileScanTask> files) {
    int schemaId = source.schema().schemaId();
    BaseTable target = target(EncryptedForm.withSchema(form, schemaId));
    CopiedGroup group =
        new CopiedGroup(
            schemaId,
            form.lastColumnId(),
            plan.unitsOf(files),
            List.of(new GroupCopy(spark, source, target).copy(specId, format, files)));
    if (compared) { // else all is compared when all is copied
      requireSame("the files copied last", RowSums.of(spark, source, files), sumsOf(target, group));
    }

    log.add(target, group);
    copiedFiles += files.size();
    Progress.Counter counter = progress.counter();
    files.forEach(file -> counter.add(file.file().fileSizeInBytes()));
    return group;
  }

  private BaseTable target(TableMetadata metadata) {
    TableOperations ops = new MetadataInMemory(plaintext.table().operations(), metadata);
    return plaintext.catalog().uncommitted(ops, plaintext.name());
  }

  private RowSums sumsOf(BaseTable target, CopiedGroup group) {
    var append = target.newFastAppend();
    group.manifests().forEach(append::appendManifest);
    append.commit();
    Snapshot snapshot = target.currentSnapshot();
    try {
      return RowSums.of(spark, target, snapshot.snapshotId());
    } finally {
      delete(snapshot.manifestListLocation());
    }
  }

  // ---- checking

  /** Every file of every version is encrypted, and has the rows; gives the sums of main. */
  private RowSums check(TableMetadata base, BaseTable next) {
    verify(next);
    Map<String, Version> byRef = Version.byRef(plaintext.name(), base);
    Map<Version, RowSums> sums = new HashMap<>();
    if (!compared) {
      begin("comparing rows", 0, 0);
      byRef.forEach(
          (ref, version) ->
              sums.computeIfAbsent(
                  version, v -> compare(base, next.operations().current(), ref, v)));
      this.compared = true;
    }

    RowSums main = sums.get(byRef.get("main"));
    return main != null ? main : RowSums.NONE;
  }

  private void verify(BaseTable next) {
    Depth depth = compared ? Depth.MAGIC : Depth.DEEP;
    VerifyOptions options = new VerifyOptions(depth, true, 1.0, 0, false, null);
    try (VerifyResult result =
        TableVerifier.verifyUncommitted(spark, plaintext.name(), next, options, progress)) {
      if (!result.ok()) {
        throw new IcebergCryptoException(
                String.format(
                    "its encrypted copy does not verify: %s; the first is %s",
                    result.summary(),
                    result.problems().isEmpty() ? "not known" : result.problems().get(0)),
                "The table is as it was. Find out what changed or lost the new files, then call"
                    + " encrypt_table again.")
            .inTable(plaintext.name());
      }
    }
  }

  private RowSums compare(TableMetadata base, TableMetadata next, String ref, Version version) {
    int schemaId = version.schemaId();
    RowSums before = RowSums.of(spark, views.of(base, schemaId), version.snapshotId());
    BaseTable encrypted = target(EncryptedForm.withSchema(next, schemaId));
    RowSums after = RowSums.of(spark, encrypted, next.ref(ref).snapshotId());
    requireSame(ref, before, after);
    return after;
  }

  private void requireSame(String what, RowSums before, RowSums after) {
    if (!before.isSame(after)) {
      throw new IcebergCryptoException(
              String.format(
                  "its encrypted copy has other rows (%s): %d rows and checksum %s/%016x, and the"
                      + " table has %d and %s/%016x",
                  what,
                  after.rows(),
                  after.sum(),
                  after.xor(),
                  before.rows(),
                  before.sum(),
                  before.xor()),
              "The table is as it was. Somebody changed files of it or of the copy, or this is an"
                  + " error of iceberg-crypto: please report it.")
          .inTable(plaintext.name());
    }
  }

  // ---- metadata

  /**
   * Iceberg deletes old metadata files: this copy leads to the plain files until they are purged.
   */
  private String keepMetadata(TableMetadata base) {
    String path = base.location() + "/metadata/plaintext-" + UUID.randomUUID() + ".metadata.json";
    TableMetadataParser.write(base, plaintext.table().operations().io().newOutputFile(path));
    return path;
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
    return Objects.equals(now.metadataFileLocation(), base.metadataFileLocation())
        && now.lastUpdatedMillis() == base.lastUpdatedMillis();
  }

  /** Whether the table is plaintext still: a commit may have got through without an answer. */
  private boolean isInForceOrUnknown(TableMetadata base) {
    try {
      plaintext.refreshed();
      return true;
    } catch (RuntimeException e) {
      return false;
    }
  }

  private void discard(BaseTable next, String keptMetadata) {
    next.operations().current().snapshots().stream()
        .filter(snapshot -> snapshot.keyId() != null)
        .forEach(snapshot -> delete(snapshot.manifestListLocation()));
    delete(keptMetadata);
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

  private long setting(String name, long usual) {
    return Long.parseLong(spark.conf().get(name, String.valueOf(usual)));
  }
}
