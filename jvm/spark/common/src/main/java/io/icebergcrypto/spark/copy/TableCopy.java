package io.icebergcrypto.spark.copy;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.lifecycle.CopyMetadata;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.StatisticsPaths;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.io.OutputFile;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;

/**
 * Prepares a copy of an encrypted table at another location, as Iceberg's {@code
 * rewrite_table_path} does for others: what holds paths (metadata, manifest lists, manifests,
 * deletion vectors) is rewritten into a staging folder, under new DEKs, and a list says which files
 * are to be copied where. KEKs, and the DEKs of data files, stay.
 *
 * <p>The driver holds an entry for each manifest list, manifest and file of deletion vectors, and
 * none for data files.
 */
public final class TableCopy {
  private final SparkSession spark;
  private final EncryptedCatalog catalog;
  private final BaseTable table;
  private final TableMetadata metadata;
  private final CopyRequest request;
  private final List<ReachableFile> lists;
  private final TableTree tree;
  private final FileJobs jobs;
  private final List<Broadcast<?>> broadcasts = new ArrayList<>();
  private final List<FileSet> cached = new ArrayList<>();
  private final EncryptedKey kek;
  private final TableEncryptionManager manager;
  private final CopyTasks.Plan plan;
  private final Staging staging;

  /**
   * What was prepared.
   *
   * @param latestVersion the name of the copy's metadata file
   * @param fileList the path of the list of files; {@code N/A} when none was wanted
   * @param manifests how many manifests were rewritten
   * @param deleteFiles how many delete files were rewritten
   */
  public record Result(String latestVersion, String fileList, int manifests, int deleteFiles) {}

  private TableCopy(
      SparkSession spark,
      EncryptedCatalog catalog,
      BaseTable table,
      TableMetadata metadata,
      CopyRequest request,
      CopyRequest.Start start) {
    this.spark = spark;
    this.catalog = catalog;
    this.table = table;
    this.metadata = metadata;
    this.request = request;
    this.jobs = new FileJobs(spark);
    this.lists =
        MetadataFiles.ofSnapshots(table).named().stream()
            .filter(file -> file.kind() == FileKind.MANIFEST_LIST)
            .toList();
    this.tree = new TableTree(table, lists);
    this.kek = kek();
    this.manager = ((TableEncryptionManager) table.encryption()).knowingToo(List.of(kek));
    String run = UUID.randomUUID().toString();
    this.staging = Staging.of(table, request, run);
    this.plan =
        new CopyTasks.Plan(
            request.paths(), staging.folder(), run, start.sequenceNumber(), kek.keyId());
  }

  /**
   * Writes what a copy of a table needs.
   *
   * @throws InvalidConfigurationException when the request does not fit the table; nothing was
   *     written
   * @throws NotSupportedException when the table cannot be copied; nothing was written
   * @throws IcebergCryptoException what the KMS or the files of the table are refused for; what was
   *     written was deleted
   */
  public static Result run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      CopyRequest request) {
    if (!(catalog.loadTable(identifier) instanceof EncryptedTable table)) {
      throw NotSupportedException.ofMetadataTable(catalog.context().fullName(identifier));
    }

    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    TableCopy copy = null;
    try {
      TableMetadata metadata = table.operations().refresh();
      request.check(table.name(), metadata);
      CopyMetadata.check(table.name(), metadata, request.paths());
      CopyRequest.Start start = request.start(table, metadata);
      copy = new TableCopy(spark, catalog, table, metadata, request, start);
      return copy.run(start);
    } catch (Exception e) { // Spark throws checked exceptions that it does not declare
      TableCopy begun = copy;
      AtomicBoolean isDeleted = new AtomicBoolean(true);
      CancelledException.toTheEnd(
          () -> isDeleted.set(begun == null || begun.staging.deleteWritten()));
      CancelledException.rethrow(e);
      throw error(table.name(), e, isDeleted.get());
    } finally {
      if (copy != null) {
        copy.cached.forEach(FileSet::release);
        copy.broadcasts.forEach(Broadcast::destroy);
      }

      spark.sparkContext().setJobDescription(before);
    }
  }

  private static RuntimeException error(String table, Exception e, boolean isDeleted) {
    return Causes.typed(e)
        .<RuntimeException>map(known -> known.inTable(table))
        .orElseGet(
            () ->
                new IcebergCryptoException(
                        "its copy could not be prepared: " + Causes.innermostMessage(e),
                        (isDeleted
                                ? "What was written was deleted."
                                : "Files may be left in the staging folder.")
                            + " Fix what failed, and call it again.",
                        e)
                    .inTable(table));
  }

  /** The newest KEK, or a new one when that is too old to encrypt. */
  private EncryptedKey kek() {
    String keyId = EncryptionProperties.keyId(metadata.properties());
    return Kek.newest(metadata)
        .filter(newest -> Kek.lives(newest, System.currentTimeMillis()))
        .filter(newest -> newest.encryptedById().equals(keyId))
        .orElseGet(() -> Kek.make(table.name(), metadata, keyId, catalog.context().kms()));
  }

  private Result run(CopyRequest.Start start) {
    checkKms();
    FileSet allLists = FileSet.few(spark, listRows(), CopyRow.SCHEMA);
    FileSet manifests = cache(reached(allLists, "manifest lists", spread(), CopyTasks::manifests));
    FileSet files = cache(reached(manifests, "manifests", byList(), CopyTasks::files));
    FileSet vectors = files.where(functions.col("is_rewritten"));
    List<StagedFile> deletes =
        written(vectors, "deletion vectors", List.of(), byManifest(), CopyTasks::rewriteDeletes);
    List<StagedFile> newManifests =
        written(manifests, "manifests", deletes, byList(), CopyTasks::rewriteManifests);
    List<StagedFile> newLists =
        written(allLists, "manifest lists", newManifests, spread(), CopyTasks::rewriteLists);
    String metadataFile = writeMetadata(newLists);
    String fileList = "N/A"; // as Iceberg's action says it
    if (request.createFileList()) {
      FileSet data = files.where(functions.not(functions.col("is_rewritten")));
      fileList =
          staging.writeFileList(
              list -> {
                data.rows()
                    .select("path")
                    .toLocalIterator()
                    .forEachRemaining(row -> list.copied(row.getString(0)));
                StatisticsPaths.of(metadata).stream()
                    .filter(path -> !start.statistics().contains(path))
                    .forEach(list::copied);
                deletes.forEach(list::staged);
                newManifests.forEach(list::staged);
                newLists.forEach(list::staged);
                list.add(plan.staged(metadataFile), metadataFile); // last: it names all others
              });
    }

    String name = metadataFile.substring(metadataFile.lastIndexOf('/') + 1);
    return new Result(name, fileList, newManifests.size(), deletes.size());
  }

  // ---- metadata

  private List<Row> listRows() {
    List<Row> rows = new ArrayList<>();
    for (ReachableFile list : lists) {
      rows.add(CopyRow.of(list.path(), true, rows.size(), null, 0, null));
    }

    return rows;
  }

  /** The KMS has to give the KEK before anything is written. */
  private void checkKms() {
    OutputFile none = table.io().newOutputFile(staging.folder() + "/none");
    KeyRegisteringManager.register(manager, manager.encrypt(none).keyMetadata());
  }

  /** Writes the copy's metadata file; returns the path that it is to have. */
  private String writeMetadata(List<StagedFile> newLists) {
    Map<String, StagedFile> bySource = new HashMap<>();
    newLists.forEach(list -> bySource.put(list.source(), list));
    Map<Long, CopyMetadata.ManifestList> lists = new HashMap<>();
    for (Snapshot snapshot : metadata.snapshots()) {
      StagedFile list = bySource.get(snapshot.manifestListLocation());
      lists.put(snapshot.snapshotId(), new CopyMetadata.ManifestList(list.target(), list.key()));
    }

    String file = metadataFile();
    TableMetadata copied = CopyMetadata.of(metadata, request.paths(), kek, lists);
    TableMetadataParser.write(
        catalog.context().signedFor(table, file, copied), staging.newFile(plan.staged(file)));
    return file;
  }

  /** Where the copy's metadata file is to be. */
  private String metadataFile() {
    String source = metadata.metadataFileLocation();
    return plan.target(source, CopyRequest.nameOfCopy(source, plan.run()));
  }

  // ---- jobs

  /** What a step finds, each file once. */
  private FileSet reached(FileSet files, String what, Division division, CopyTasks.Step step) {
    FileSet found = cache(on(files, "reads " + what, List.of(), division, step, CopyRow.SCHEMA));
    return checked(found).distinct();
  }

  private FileSet cache(FileSet files) {
    FileSet kept = files.persist();
    cached.add(kept);
    return kept;
  }

  /** Rows that stand for files that were written: they are asked for once. */
  private List<StagedFile> written(
      FileSet files, String what, List<StagedFile> staged, Division division, CopyTasks.Step step) {
    return on(files, "writes " + what, staged, division, step, StagedFile.SCHEMA)
        .rows()
        .collectAsList()
        .stream()
        .map(StagedFile::of)
        .toList();
  }

  /** How files are divided among tasks. */
  private interface Division {
    Dataset<Row> apply(Dataset<Row> files, FileSet.Size size);
  }

  private Division spread() {
    return jobs::spread;
  }

  private Division byList() {
    return (files, size) -> jobs.parts(files, size, functions.col("list"));
  }

  private Division byManifest() {
    return (files, size) ->
        jobs.parts(files, size, functions.col("list"), functions.col("manifest"));
  }

  private FileSet on(
      FileSet files,
      String what,
      List<StagedFile> staged,
      Division division,
      CopyTasks.Step step,
      StructType schema) {
    spark.sparkContext().setJobDescription("iceberg-crypto copies " + table.name() + ": " + what);
    FileSet.Size size = files.size();
    CopyTasks tasks = new CopyTasks(tree, plan, manager, staged);
    return jobs.check(
        files,
        size,
        rows -> step.apply(tasks, rows),
        () -> {
          Broadcast<CopyTasks> shared =
              JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(tasks);
          broadcasts.add(shared);
          MapPartitionsFunction<Row, Row> task = rows -> step.apply(shared.value(), rows);
          return division.apply(files.rows(), size).mapPartitions(task, Encoders.row(schema));
        },
        schema);
  }

  /** Refuses what cannot be copied. */
  private FileSet checked(FileSet files) {
    Column problem = functions.col("problem");
    FileSet wrong = files.where(problem.isNotNull());
    if (!wrong.isEmpty()) {
      Row worst = wrong.rows().orderBy(problem.desc(), functions.col("path")).first();
      throw CopyRow.problem(worst).refusal(table.name(), CopyRow.path(worst), request.paths());
    }

    return files;
  }
}
