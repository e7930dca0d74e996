package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.cleanup.ProvenDeletion;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.EncryptedSnapshots;
import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextForm;
import io.icebergcrypto.lifecycle.encrypt.Version;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.spark.table.Progress;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decrypts a table in place: the way back of {@link TableEncryption}. Spark copies the rows of all
 * branches and tags into plaintext files; the copy is compared; then one commit puts it in the
 * place of the encrypted files. A run that fails deletes what it has written.
 */
public final class TableDecryption {
  private static final Logger LOG = LoggerFactory.getLogger(TableDecryption.class);
  private static final int ROUNDS = 20;
  private static final String INTERRUPT_ON_CANCEL = "spark.job.interruptOnCancel";

  private static final String TASKS_LEFT =
      "A task that ended at that moment may have left a plaintext file: verify_encryption with"
          + " strays => true finds it.";

  private static final String MAY_BE_IN_USE =
      "The commit may have been made, so the plaintext copy of its rows was not deleted, such as"
          + " %s. Load the table when the catalog answers again. If it is plaintext, all is well."
          + " If it is encrypted, and stays so, delete the copy with the storage's own tools:"
          + " verify_encryption with strays => true lists it.";

  private final SparkSession spark;
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final BaseTable table;
  private final BaseTable behind;
  private final CopyProof proof;
  private final Progress progress;
  private final List<LoggedGroup> copied = new ArrayList<>();
  private final Map<Version, List<LoggedGroup>> compared = new HashMap<>(); // with these copies
  private CreatedFiles creating; // by the group that is being copied; null: not now
  private String manifest; // and where that is to be listed
  private String example = "data files"; // of the copy
  private final SourceViews views = this::view;
  private final CopyManifests manifests = new CopyManifests();
  private Map<Version, List<LoggedGroup>> kept = Map.of(); // those that the commit has
  private final Map<String, String> left = new TreeMap<>(); // plaintext, and why it is not deleted
  private boolean inUse = false; // the copy, or perhaps: a commit may get through without an answer
  private boolean committed = false; // it is known that it did
  private TableMetadata base; // as it was last known: the table may be gone since

  private TableDecryption(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      BaseTable table,
      Progress progress) {
    this.spark = spark;
    this.catalog = catalog;
    this.identifier = identifier;
    this.table = table;
    this.base = table.operations().current();
    this.behind = catalog.context().unchecked(identifier);
    this.proof = new CopyProof(spark, table.name());
    this.progress = progress;
  }

  /**
   * Decrypts a table.
   *
   * @param confirm has to be true
   * @return what was done, for rows and JSON
   * @throws InvalidConfigurationException when it is not, or the catalog has encrypted tables only
   * @throws NotEncryptedException when it is not encrypted
   * @throws IcebergCryptoException any other refusal: the table is as it was
   */
  public static Map<String, Object> run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      boolean confirm,
      Progress progress) {
    if (!(catalog.loadTable(identifier) instanceof BaseTable table)) {
      throw NotSupportedException.ofMetadataTable(catalog.context().fullName(identifier));
    }

    check(catalog, table, confirm);
    TableDecryption decryption = new TableDecryption(spark, catalog, identifier, table, progress);
    SparkContext context = spark.sparkContext();
    String before = context.getLocalProperty("spark.job.description");
    String interrupts = context.getLocalProperty(INTERRUPT_ON_CANCEL);
    try {
      context.setLocalProperty(INTERRUPT_ON_CANCEL, "true"); // such a task deletes its plaintext
      return decryption.run();
    } catch (CommitStateUnknownException e) {
      throw new CommitStateUnknownException(decryption.told(e));
    } catch (NoSuchTableException e) { // another client dropped or renamed it
      throw decryption.left.isEmpty() ? e : decryption.told(e);
    } catch (Exception e) { // Spark throws checked ones undeclared
      throw decryption.told(e);
    } finally {
      context.setJobDescription(before);
      context.setLocalProperty(INTERRUPT_ON_CANCEL, interrupts);
    }
  }

  private static void check(EncryptedCatalog catalog, BaseTable table, boolean confirm) {
    Map<String, String> properties = table.operations().current().properties();
    String keyId = EncryptionProperties.keyId(properties);
    if (keyId == null) {
      throw new NotEncryptedException("There is nothing to decrypt. Nothing was changed.")
          .inTable(table.name());
    }

    ValueKeyProperties.checkDecrypt(table.name(), properties);
    if (catalog.context().settings().encryptionRequired()) {
      throw new InvalidConfigurationException(
              String.format(
                  "it is encrypted, and the catalog has %s=true or %s=refuse",
                  EncryptionProperties.REQUIRED, EncryptionProperties.PLAINTEXT_TABLES),
              "Call decrypt_table in a session without that property. Nothing was changed.")
          .inTable(table.name());
    }

    if (!confirm) {
      throw new InvalidConfigurationException(
              String.format("it is encrypted with '%s', and would be plaintext", keyId),
              "Call decrypt_table with confirm => true if that is what you want. Streams"
                  + " that read the table will need new checkpoints. Nothing was changed.")
          .inTable(table.name());
    }

    if (properties.containsKey(EncryptionProperties.PLAINTEXT_METADATA)) {
      throw new NotSupportedException(
              "its plaintext from before encrypt_table is still there",
              "Call purge_plaintext, then decrypt_table. Nothing was changed.")
          .inTable(table.name());
    }
  }

  private Map<String, Object> run() {
    try {
      return rounds();
    } catch (Exception e) { // Spark throws checked ones undeclared
      CancelledException.rethrow(e);
      throw e;
    } finally {
      CancelledException.toTheEnd(this::deleteUnused);
    }
  }

  private Map<String, Object> rounds() {
    for (int round = 1; round <= ROUNDS; round++) {
      CancelledException.check();
      this.base = table.operations().refresh();
      if (EncryptionProperties.keyId(base.properties()) == null) {
        throw new NotEncryptedException("Another call has decrypted it meanwhile.")
            .inTable(table.name());
      }

      CopyPlan plan = new CopyPlan(views, table.name(), base, copied);
      begin("copying rows", plan.filesLeft(), plan.bytesLeft());
      TableMetadata form = PlaintextForm.of(base);
      plan.copy(GroupSize.inTurn(spark, table), group -> copy(form, group));
      BaseTable target = view(form, base.currentSchemaId());
      Map<Version, List<LoggedGroup>> groups = manifests.of(target, plan.groups());
      BaseTable next =
          EncryptedSnapshots.make(catalog, table.name(), behind.operations(), base, form, groups);
      try {
        begin("comparing rows", 0, 0);
        TableMetadata plaintext = next.operations().current();
        Version.byRef(table.name(), base)
            .forEach((ref, version) -> compare(plaintext, ref, version, groups.get(version)));
        begin("looking for what was copied", 0, 0);
        proof.requirePresent(behind.operations().io(), target, copied);
        begin("commit", 0, 0);
        commit(plaintext, groups);
        copied.forEach(group -> delete(group, plan.groups().values()));
        KeyIdChange.requireDecrypted(catalog, identifier, base);
        return result(plan);
      } catch (CommitFailedException e) {
        // what the other commit brought is copied, too
      } finally {
        if (!inUse) {
          CancelledException.toTheEnd(() -> deleteLists(next));
        }
      }
    }

    throw new IcebergCryptoException(
            String.format("it was changed %d times while it was copied", ROUNDS),
            "It is as it was. Stop its writers for a while, and call decrypt_table again.")
        .inTable(table.name());
  }

  private void commit(TableMetadata plaintext, Map<Version, List<LoggedGroup>> groups) {
    this.inUse = true;
    this.kept = groups;
    try {
      KeyIdChange.decrypt(catalog, identifier, base, plaintext);
      this.committed = true;
    } catch (CommitStateUnknownException e) {
      throw e;
    } catch (RuntimeException e) {
      this.inUse = false;
      this.kept = Map.of();
      throw e;
    }
  }

  private void deleteLists(BaseTable next) {
    delete(
        next.operations().current().snapshots().stream()
            .map(Snapshot::manifestListLocation)
            .toList());
  }

  private LoggedGroup copy(TableMetadata form, CopyPlan.Group group) {
    CreatedFiles created = new CreatedFiles(spark.sparkContext());
    BaseTable target = view(form, group.source().schema().schemaId(), created::recording);
    this.manifest = target.operations().metadataFileLocation(UUID.randomUUID() + "-m0.avro");
    this.creating = created;
    LoggedGroup copy = new GroupCopy(spark, group, target, form).copy(manifest);
    copied.add(copy);
    this.example = created.paths().stream().findFirst().orElse(example);
    this.creating = null;
    Progress.Counter counter = progress.counter();
    group.files().forEach(file -> counter.add(file.file().fileSizeInBytes()));
    return copy;
  }

  /** Once: neither for each tag that shows a version, nor in each round. */
  private void compare(TableMetadata next, String ref, Version version, List<LoggedGroup> copies) {
    if (copies.equals(compared.get(version))) {
      return;
    }

    RowSums before = RowSums.of(spark, view(base, version.schemaId()), version.snapshotId());
    RowSums after = RowSums.of(spark, view(next, version.schemaId()), next.ref(ref).snapshotId());
    if (!before.isSame(after)) {
      throw new IcebergCryptoException(
              String.format(
                  "its plaintext copy has different rows (%s): %d, and the table has %d",
                  ref, after.rows(), before.rows()),
              "The table is as it was. Files of the copy were changed, or this is a bug in"
                  + " iceberg-crypto: please report it.")
          .inTable(table.name());
    }

    compared.put(version, copies);
  }

  /** The table as metadata says, which may be encrypted, with one of its schemas. */
  private BaseTable view(TableMetadata metadata, int schemaId) {
    return view(metadata, schemaId, UnaryOperator.identity());
  }

  private BaseTable view(
      TableMetadata metadata, int schemaId, UnaryOperator<LocationProvider> locations) {
    TableMetadata withSchema = EncryptedForm.withSchema(metadata, schemaId);
    return catalog
        .context()
        .uncommitted(
            new MetadataInMemory(behind.operations(), withSchema, locations), table.name());
  }

  private Map<String, Object> result(CopyPlan plan) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", table.name());
    values.put("old_key_id", EncryptionProperties.keyId(base.properties()));
    values.put("files", plan.files());
    values.put("bytes", plan.bytes());
    values.put("committed", true);
    values.put(
        "message",
        String.format(
            "plaintext now: %d data files copied, all rows compared; the encrypted files remain"
                + " until remove_orphan_files deletes them; where other tables share the table's"
                + " location, it deletes their files, too",
            plan.files()));
    return values;
  }

  /** Deletes what no table has, the rows first. */
  private void deleteUnused() {
    if (!inUse) {
      copied.forEach(group -> delete(group, List.of()));
      copied.clear();
    }

    if (creating != null) { // by a group that failed
      delete(Stream.concat(creating.paths().stream(), Stream.of(manifest)).toList());
    }

    delete(
        manifests.unused(List.of(kept)).stream().filter(path -> !left.containsKey(path)).toList());
  }

  /** Never fails: what is left is told. */
  private boolean delete(List<String> paths) {
    Map<String, String> failed = new TreeMap<>();
    try {
      FileIO io = FailFastFileIO.below(behind.operations().io());
      failed.putAll(new ProvenDeletion(io).delete(paths.iterator()));
    } catch (RuntimeException e) {
      paths.forEach(path -> failed.put(path, Causes.innermostMessage(e)));
    }

    failed.forEach((path, why) -> LOG.warn("Could not delete the plaintext {}: {}", path, why));
    left.putAll(failed);
    return failed.isEmpty();
  }

  private IcebergCryptoException failed(Exception e) {
    return new IcebergCryptoException(
            "it cannot be decrypted: "
                + Causes.innermostMessage(e).lines().findFirst().orElse(e.toString()),
            inUse
                ? "Check with verify_encryption whether it is."
                : "The table is as it was. Fix what failed, and call decrypt_table again.",
            e)
        .inTable(table.name());
  }

  /** An error of this project, which says what is left of the copy. */
  private IcebergCryptoException told(Exception e) {
    IcebergCryptoException told =
        Causes.typed(e).map(typed -> typed.inTable(table.name())).orElseGet(() -> failed(e));
    if (creating != null) {
      told = told.withHint(TASKS_LEFT);
    }

    if (inUse && !committed) {
      told = told.withHint(String.format(MAY_BE_IN_USE, example));
    }

    return left.isEmpty()
        ? told
        : told.withHint(
            String.format(
                "%d files of its plaintext copy could not be deleted, such as %s. Delete them with"
                    + " the storage's own tools; verify_encryption with strays => true lists them.",
                left.size(), left.entrySet().iterator().next()));
  }

  /** Deletes a copy that this run has made, and its manifest; but no file that a version has. */
  private void delete(LoggedGroup group, Collection<List<LoggedGroup>> versions) {
    BitSet used = new BitSet();
    versions.stream()
        .flatMap(List::stream)
        .filter(part -> part.manifests().equals(group.manifests()))
        .forEach(part -> used.or(part.positions()));
    try {
      BaseTable target = view(PlaintextForm.of(base), base.currentSchemaId());
      List<DataFile> files = CopyManifests.files(target, group);
      List<String> unused =
          IntStream.range(0, files.size())
              .filter(position -> !used.get(position))
              .mapToObj(position -> files.get(position).location())
              .toList();
      if (delete(unused)) { // as long as some of that is there, something names it
        delete(group.manifests().stream().map(ManifestFile::path).toList());
      }
    } catch (RuntimeException e) {
      String manifest = group.manifests().get(0).path();
      LOG.warn("Could not delete the plaintext files of {}", manifest, e);
      left.put(manifest, "nor the files that it lists: " + Causes.innermostMessage(e));
    }
  }

  private void begin(String step, long files, long bytes) {
    spark.sparkContext().setJobDescription("iceberg-crypto decrypts " + table.name() + ": " + step);
    progress.begin(step, files, bytes);
  }
}
