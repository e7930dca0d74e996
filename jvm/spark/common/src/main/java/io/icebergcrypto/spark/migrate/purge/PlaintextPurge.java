package io.icebergcrypto.spark.migrate.purge;

import static org.apache.spark.sql.functions.col;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.cleanup.ProvenDeletion;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * Deletes the files that a table had before it was encrypted in place, after which its old history
 * is gone. It deletes what the kept metadata reaches, is plaintext by its bytes, and is reached by
 * no snapshot of the table in force; and old metadata files. All of that is in the table's folders,
 * or in those that the user names: the kept metadata and its manifests are plaintext, and anyone
 * who changes them can name any file. It goes from the data to what names it, a step at a time
 * ({@link Phase}), then proves that the table's folders hold nothing in plaintext, and only then
 * forgets where the old files were: after a crash or a failure another call does the rest.
 */
public final class PlaintextPurge {
  private static final int NAMED = 10;

  /** Other commits may have made one since, so names count, too. */
  private static final Pattern METADATA =
      Pattern.compile("(?:\\.metadata\\.json(?:\\.gz)?|/version-hint\\.text)$");

  private final SparkSession spark;
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final BaseTable table;
  private final PurgeOptions options;
  private final Progress progress;
  private final FileIO storage;

  private PlaintextPurge(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      BaseTable table,
      PurgeOptions options,
      Progress progress) {
    this.identifier = identifier;
    this.spark = spark;
    this.catalog = catalog;
    this.table = table;
    this.options = options;
    this.progress = progress;
    this.storage = FailFastFileIO.below(behind().io()); // deletes many files at once
  }

  /**
   * Purges the plaintext of a table.
   *
   * @throws NotSupportedException when the table was not encrypted in place, or was purged before,
   *     or some of it is in folders that the user has not named
   * @throws InvalidConfigurationException when gc.enabled was false, or on Nessie not true, before
   * @throws TamperedException when the kept metadata is not that of this table
   * @throws IcebergCryptoException when something in plaintext is left that it may not, or could
   *     not, delete; or when it is not known what is left
   */
  public static PurgeReport run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      PurgeOptions options,
      Progress progress) {
    if (!(catalog.loadTable(identifier) instanceof BaseTable table)) {
      throw NotSupportedException.ofMetadataTable(catalog.context().fullName(identifier));
    }

    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    try {
      return new PlaintextPurge(spark, catalog, identifier, table, options, progress).run();
    } catch (Exception e) { // Spark throws checked ones undeclared
      CancelledException.rethrow(e);
      throw e;
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  private PurgeReport run() {
    TableMetadata current = table.operations().current();
    String path = current.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    if (path == null || EncryptionProperties.keyId(current.properties()) == null) {
      throw new NotSupportedException(
              String.format(
                  "it has no %s: encrypt_table did not encrypt it, or its plaintext was purged",
                  EncryptionProperties.PLAINTEXT_METADATA),
              "Nothing was deleted. verify_encryption with strays => true finds plaintext files in"
                  + " its folders.")
          .inTable(table.name());
    }

    if (!options.dryRun()) {
      requireOwnFiles(current.properties());
    }

    begin("old files", 0);
    OldMetadata old = OldMetadata.read(spark, storage, table.name(), current, path);
    Broadcast<Storage> shared =
        JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(new Storage(storage));
    Dataset<Row> inForce = inForce(current);
    try (OldFiles files = files(current, old, inForce, shared)) {
      if (isAnotherAhead(files, path, current)) {
        return run();
      }

      if (options.dryRun()) {
        return files.purged(table.name(), false);
      }

      requireKnown(files, old);
      requireNamed(files);
      PurgeRecord record = new PurgeRecord(table.name(), table.operations(), current.uuid(), path);
      String accepted = options.acceptMissing() && !old.isWhole() ? path : null;
      Proof proof = new Proof(spark, table, accepted, progress);
      CancelledException.check();
      record.begin(Phase.DATA);
      CopyLog.deleteAll(table);
      Dataset<Row> data = files.doomed(Phase.DATA).where(isNot(path));
      boolean first = PurgeRecord.begun(current.properties()) == Phase.DATA;
      deleteData(files, data, shared, first);
      if (first) {
        begin("other files", 0);
        long count = files.doomedCount(Phase.DATA);
        proof.ofOthers(
            files, data, inForce, shared, left -> delete(shared, left, count, Phase.DATA, false));
      }

      for (Phase phase : List.of(Phase.MANIFESTS, Phase.MANIFEST_LISTS, Phase.METADATA_FILES)) {
        delete(files, phase, shared, path, record);
      }

      record.shortenLog();
      proof.ofAll();
      CancelledException.check();
      record.require();
      deleteKept(path);
      record.forget();
      return files.purged(table.name(), true);
    } finally {
      shared.destroy();
    }
  }

  /** Whether what is missing is what another call deletes: that has begun its next step since. */
  private boolean isAnotherAhead(OldFiles files, String path, TableMetadata then) {
    if (files.gaps(1).isEmpty()) {
      return false;
    }

    Map<String, String> now = table.operations().refresh().properties();
    Phase begun = PurgeRecord.begun(then.properties());
    return !path.equals(now.get(EncryptionProperties.PLAINTEXT_METADATA))
        || !PurgeRecord.begun(now).isReached(begun);
  }

  /**
   * encrypt_table itself set gc.enabled; what counts is what it was, unless the user set it since.
   */
  private void requireOwnFiles(Map<String, String> properties) {
    String gc = properties.get(EncryptionProperties.PLAINTEXT_GC);
    if (catalog.context().behind().mayShareFiles(gc)
        && !"true".equalsIgnoreCase(properties.get(TableProperties.GC_ENABLED))) {
      throw new InvalidConfigurationException(
              String.format(
                  "%s was %s before it was encrypted: its plaintext files may be another table's"
                      + " or another branch's of the catalog",
                  TableProperties.GC_ENABLED, gc == null ? "not set" : gc),
              String.format(
                  "Nothing was deleted. If they are this table's alone, say so with ALTER TABLE ..."
                      + " SET TBLPROPERTIES ('%s'='true'), and call purge_plaintext again. On"
                      + " Nessie its branches, tags and older commits share files.",
                  TableProperties.GC_ENABLED))
          .inTable(table.name());
    }
  }

  // ---- what to delete

  private OldFiles files(
      TableMetadata current, OldMetadata old, Dataset<Row> inForce, Broadcast<Storage> shared) {
    Dataset<Row> files = old.rows();
    if (old.kept() != null) {
      TableOperations before = new MetadataInMemory(behind(), old.kept());
      Dataset<Row> tree = OldTree.read(spark, new BaseTable(before, table.name()));
      files = files.union(tree.where(functions.not(isMetadata(current))));
    }

    List<String> own = TableVerifier.foldersOf(current);
    List<String> named = union(options.folders(), options.keep());
    Phase begun = PurgeRecord.begun(current.properties());
    FormerFolders former =
        begun == Phase.DATA
            ? FormerFolders.of(old.folders(), union(own, named))
            : FormerFolders.of(union(old.folders(), named), own); // nothing names all files
    Dataset<Row> known = files.select("path").union(inForce);
    Dataset<Row> strays =
        FormerFolders.plaintext(spark, shared, former.outermost(), known, progress);
    Dataset<Row> unreached = files.join(inForce, "path", "left_anti");
    return new OldFiles(unreached, strays, former, own, options, begun);
  }

  private static List<String> union(Collection<String> some, Collection<String> others) {
    return Stream.of(some, others).flatMap(Collection::stream).toList();
  }

  /**
   * Table metadata is plaintext as long as the table lives: old manifests, which anyone may have
   * changed, have no say in whether that goes.
   */
  private static Column isMetadata(TableMetadata current) {
    Set<String> places =
        Stream.concat(
                Stream.of(current.metadataFileLocation()),
                current.previousFiles().stream().map(TableMetadata.MetadataLogEntry::file))
            .map(Storage::comparable)
            .collect(Collectors.toSet());
    UDF1<String, Boolean> isMetadata =
        path -> {
          String place = Storage.comparable(path);
          return places.contains(place) || METADATA.matcher(place).find();
        };
    return functions.udf(isMetadata, DataTypes.BooleanType).apply(col("path"));
  }

  /** The paths that the table reaches, all of which are encrypted. */
  private Dataset<Row> inForce(TableMetadata current) {
    BaseTable now =
        catalog.context().uncommitted(new MetadataInMemory(behind(), current), table.name());
    VerifyOptions all = VerifyOptions.of(Depth.MAGIC, true, false);
    try (VerifyResult result =
        TableVerifier.verifyUncommitted(spark, table.name(), now, all, progress)) {
      if (!result.ok()) {
        throw new IcebergCryptoException(
                "it does not verify: " + result.summary(),
                "Nothing was deleted. verify_encryption says what is wrong; the plaintext may be"
                    + " needed.")
            .inTable(table.name());
      }

      return result.files().select("path").localCheckpoint(true); // it lets go of its files
    }
  }

  /** What is not known may be plaintext, or name it. */
  private void requireKnown(OldFiles files, OldMetadata old) {
    List<String> unknown = files.unknown(NAMED);
    if (!unknown.isEmpty()) {
      throw new IcebergCryptoException(
              "not finished: some of its old files cannot be read: " + String.join(", ", unknown),
              "Nothing was deleted by this call. The storage failed, or does not let this client"
                  + " read them: fix that, and call purge_plaintext again, which continues.")
          .inTable(table.name());
    }

    List<String> gaps = files.gaps(NAMED);
    if (!gaps.isEmpty() && !options.acceptMissing()) {
      boolean isEmbedded = gaps.size() == 1 && old.kept() != null && !old.isWhole();
      String first =
          isEmbedded
              ? "No backup of it tells more: call purge_plaintext with accept_missing => true,"
                  + " which"
              : "Restore these files from a backup or an object version, and call purge_plaintext"
                  + " again. If they are lost, call it with accept_missing => true: it then";
      throw new IcebergCryptoException(
              "not finished: what named its old files is missing or damaged, so not all of them are"
                  + " known: "
                  + String.join(", ", gaps),
              "Nothing was deleted by this call. "
                  + first
                  + " deletes what is known, and looks for other plaintext in the table's folders"
                  + " and its former ones, which it names and leaves; files that only these named"
                  + " elsewhere are not found.")
          .inTable(table.name());
    }
  }

  /** By the metadata in force, which is authenticated, as the kept one is not. */
  private void requireNamed(OldFiles files) {
    if (files.outsideCount() > 0) {
      String folders =
          files.outside().entrySet().stream()
              .limit(NAMED)
              .map(folder -> String.format("%s (%d)", folder.getKey(), folder.getValue()))
              .collect(Collectors.joining(", "));
      throw new NotSupportedException(
              String.format(
                  "%d plaintext files that its old metadata names are not in its folders (%s). They"
                      + " are in %s; such as %s",
                  files.outsideCount(),
                  String.join(", ", files.own()),
                  folders,
                  String.join(", ", files.outsidePaths(NAMED))),
              "Nothing was deleted. They may be another table's: add_files, snapshot and migrate"
                  + " import such files, and anyone who can write to the storage can name any."
                  + " purge_plaintext with dry_run => true lists them. Give folders with files that"
                  + " others need as keep => array('...'), and those in which the listed files"
                  + " belong to this table alone, such as a former write.data.path, as folders =>"
                  + " array('...').")
          .inTable(table.name());
    }
  }

  // ---- deleting

  /**
   * Deletes data files.
   *
   * @param listed whether the proof lists the table's folders afterwards
   */
  private void deleteData(
      OldFiles files, Dataset<Row> data, Broadcast<Storage> shared, boolean listed) {
    long count = files.doomedCount(Phase.DATA);
    if (count == 0) {
      return;
    }

    CancelledException.check();
    begin("deleting " + Phase.DATA.label(), count);
    if (!listed) {
      delete(shared, data, count, Phase.DATA, false);
      return;
    }

    List<String> folders = files.own();
    UDF1<String, Boolean> shows = file -> Folders.shows(folders, file);
    Column shown = functions.udf(shows, DataTypes.BooleanType).apply(col("path"));
    delete(shared, data.where(shown), count, Phase.DATA, true);
    delete(shared, data.where(functions.not(shown)), count, Phase.DATA, false);
  }

  private void delete(
      OldFiles files, Phase phase, Broadcast<Storage> shared, String kept, PurgeRecord record) {
    long count = files.doomedCount(phase);
    if (count == 0) {
      return;
    }

    CancelledException.check();
    if (phase == Phase.METADATA_FILES) {
      record.require(); // it begins when all but the copy are gone
    } else {
      record.begin(phase);
    }

    Dataset<Row> some = files.doomed(phase).where(isNot(kept));
    begin("deleting " + phase.label(), count);
    delete(shared, some, count, phase, false);
  }

  /** The copy leads to all others, and goes last. */
  private static Column isNot(String kept) {
    return col("path").notEqual(functions.lit(kept));
  }

  /**
   * Deletes files.
   *
   * @param listed whether the caller lists them afterwards
   */
  private void delete(
      Broadcast<Storage> shared, Dataset<Row> some, long count, Phase phase, boolean listed) {
    Deletion deletion = Deletion.of(spark, shared, some, count, listed, progress);
    if (deletion.left() > 0) {
      throw notFinished(
          String.format(
              "%d of %d files (%s) could not be deleted", deletion.left(), count, phase.label()),
          deletion.first());
    }
  }

  private void deleteKept(String path) {
    Map<String, String> left = new ProvenDeletion(storage).delete(List.of(path).iterator());
    if (!left.isEmpty()) {
      throw notFinished(
          "its other old files were deleted, but its old metadata could not be",
          List.of(path + ": " + left.get(path)));
    }
  }

  private IcebergCryptoException notFinished(String what, List<String> files) {
    return Proof.notFinished(
        table.name(),
        what,
        files,
        "The purge keeps its record, and what names these files is still there. Let this client"
            + " delete them, or wait until the storage works again, and call purge_plaintext again,"
            + " which continues.");
  }

  // ---- storage

  private void begin(String step, long files) {
    spark.sparkContext().setJobDescription("iceberg-crypto purges " + table.name() + ": " + step);
    progress.begin(step, files, 0);
  }

  /** Operations that read and write plain files of this table. */
  private TableOperations behind() {
    return catalog.context().unchecked(identifier).operations();
  }
}
