package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileJobs.Size;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Progress;
import io.icebergcrypto.spark.verify.scan.RecordedFiles;
import io.icebergcrypto.spark.verify.scan.Storage;
import io.icebergcrypto.spark.verify.scan.TableLoader;
import io.icebergcrypto.spark.verify.scan.TableTree;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableProperties;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.storage.StorageLevel;

/**
 * Proves that the files a table reaches are encrypted: Spark jobs check each of them. The driver
 * holds what table metadata holds, and sums; all below manifest lists is read on the executors.
 */
public final class TableVerifier {
  private static final Column BELOW = functions.col("below");
  private static final String PATH = "path";
  private static final Column[] REACHED =
      Arrays.stream(FileRow.REACHED.fieldNames()).map(functions::col).toArray(Column[]::new);

  /** Where tables may write besides their location; the last two are names of earlier versions. */
  private static final List<String> FOLDERS =
      List.of(
          TableProperties.WRITE_DATA_LOCATION,
          TableProperties.WRITE_METADATA_LOCATION,
          "write.object-storage.path",
          "write.folder-storage.path");

  private final SparkSession spark;
  private final String name;
  private final BaseTable table;
  private final VerifyOptions options;
  private final Progress progress;
  private final FileJobs jobs;
  private final MetadataFiles metadataFiles;
  private final Broadcast<TableTree> tree;
  private final RecordedFiles recorded;
  private final List<ReachableFile> lists;
  private final List<Dataset<Row>> cached = new ArrayList<>();
  private final List<Dataset<Row>> checked = new ArrayList<>();
  private final Map<String, Object> notes = new LinkedHashMap<>();
  private final Tally tally = new Tally();

  private TableVerifier(
      SparkSession spark, String name, BaseTable loaded, VerifyOptions options, Progress progress) {
    this.spark = spark;
    this.name = name;
    this.options = options;
    this.progress = progress;
    this.jobs = new FileJobs(spark);
    BaseTable audited = EncryptedTable.forAudit(loaded, List.of());
    this.metadataFiles =
        options.allSnapshots()
            ? MetadataFiles.ofLog(audited)
            : MetadataFiles.ofCurrentSnapshot(audited);
    this.table = EncryptedTable.forAudit(loaded, metadataFiles.olderKeys());
    this.recorded =
        options.resume() == null
            ? null
            : RecordedFiles.open(
                spark, options.resume(), name, table, options.depth().label(), FileRow.CHECKED);
    this.lists =
        metadataFiles.named().stream().filter(f -> f.kind() == FileKind.MANIFEST_LIST).toList();
    this.tree =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new TableTree(table, lists));
  }

  /**
   * Checks the files that a table reaches.
   *
   * @param tableName the table as in SQL: {@code lake.db.t}
   * @param progress is told how far it is
   * @return the result, which keeps its DataFrame of files until it is closed
   * @throws NotSupportedException when it is not an Iceberg table
   * @throws IcebergCryptoException when the check as a whole failed
   */
  public static VerifyResult verify(
      SparkSession spark, String tableName, VerifyOptions options, Progress progress) {
    Instant start = Instant.now();
    BaseTable loaded = TableLoader.load(spark, tableName);
    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    TableVerifier verifier = null;
    try {
      verifier = new TableVerifier(spark, tableName, loaded, options, progress);
      return verifier.verify(start);
    } catch (Exception e) { // Spark throws checked exceptions that it does not declare
      if (verifier != null) {
        verifier.release();
      }

      throw FailedCheck.error(tableName, "files", e);
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  private VerifyResult verify(Instant start) {
    Map<String, Object> subject = Subject.of(name, table, options);
    if (!isEncrypted()) {
      tally.add(Problem.notEncrypted(name, TableProperties.ENCRYPTION_TABLE_KEY));
    }

    addMetadataFiles();
    Dataset<Row> manifests = jobs.distinct(below(named()));
    Dataset<Row> reached = cache(jobs.distinct(below(manifests(manifests))));
    files(reached);
    if (options.strays()) {
      strays(reached);
    }

    uncache(reached);
    subject.putAll(notes);
    return new VerifyResult(
        subject,
        start,
        checked.stream().reduce(Dataset::union).orElseThrow(),
        tally,
        this::release);
  }

  private boolean isEncrypted() {
    return table.properties().containsKey(TableProperties.ENCRYPTION_TABLE_KEY)
        || !table.operations().current().encryptionKeys().isEmpty();
  }

  /** Metadata files were read on the driver, to find what they name. */
  private void addMetadataFiles() {
    List<Row> rows = metadataFiles.versions().stream().map(TableVerifier::metadataFile).toList();
    if (!rows.isEmpty()) {
      add(spark.createDataFrame(rows, FileRow.CHECKED));
    }
  }

  private static Row metadataFile(MetadataFiles.Version version) {
    FileMagic magic = version.length() < 0 ? null : FileMagic.JSON;
    FileProblem problem =
        version.failure() == null
            ? version.problem()
            : FailedCheck.problem("it cannot be read: ", version.failure());
    ReachableFile file =
        new ReachableFile(FileKind.METADATA_FILE, version.path(), "json", -1L, null, false);
    return FileRow.checked(
        FileRow.of(file, -1),
        new CheckedFile(magic, version.length(), Math.max(version.length(), 0), problem));
  }

  /** Manifest lists and statistics. */
  private Dataset<Row> named() {
    List<Row> rows = new ArrayList<>();
    int list = 0;
    for (ReachableFile file : metadataFiles.named()) {
      rows.add(FileRow.of(file, file.kind() == FileKind.MANIFEST_LIST ? list++ : -1));
    }

    begin("manifest lists", new Size(rows.size(), 0));
    CheckTasks tasks = tasks();
    return check(spark.createDataFrame(rows, FileRow.REACHED), tasks::named);
  }

  private Dataset<Row> manifests(Dataset<Row> manifests) {
    Dataset<Row> distinct = cache(manifests);
    Size size = Size.of(distinct);
    begin("manifests", size);
    CheckTasks tasks = tasks();
    Dataset<Row> found = check(jobs.parts(distinct, size, functions.col("list")), tasks::manifests);
    uncache(distinct);
    return found;
  }

  /** Data and delete files, or a sample of them. */
  private void files(Dataset<Row> reached) {
    Size all = Size.of(reached);
    Dataset<Row> files = sampled(reached);
    Size size = options.sample() < 1 ? Size.of(files) : all;
    notes.put("left_out_files", all.files() - size.files());
    notes.put("left_out_bytes", all.bytes() - size.bytes());
    if (recorded != null) {
      Dataset<Row> before = cache(recorded.right().join(files.select(PATH), PATH, "left_semi"));
      add(before);
      files = files.join(before.select(PATH), PATH, "left_anti");
      Size done = Size.of(before);
      size = size.minus(done);
      notes.put("resumed_files", done.files());
    }

    begin("data and delete files", size);
    CheckTasks tasks = tasks();
    Dataset<Row> divided =
        options.depth() == Depth.MAGIC
            ? jobs.spread(files, size)
            : jobs.parts(files, size, functions.col("list"), functions.col("manifest"));
    if (recorded == null) {
      check(divided, tasks::files);
    } else {
      add(cache(recorded.add(mapped(divided, tasks::files))));
    }
  }

  /** Files below the table's folders that no metadata reaches. */
  private void strays(Dataset<Row> reached) {
    begin("files that no metadata reaches", new Size(0, 0));
    Broadcast<Storage> storage =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new Storage(TableFileIO.listed(table.io())));
    StrayTasks tasks = new StrayTasks(storage, FileKind.STRAY, progress.counter());
    Dataset<Row> known =
        checked.stream()
            .reduce(Dataset::union)
            .orElseThrow()
            .select(PATH)
            .union(reached.select(PATH));
    try (Folders folders = new Folders(spark, storage)) {
      Dataset<Row> strays = Folders.without(folders.files(folders()), known);
      Size size = Size.of(strays);
      begin("files that no metadata reaches", size);
      check(jobs.spread(strays, size), tasks::check);
    }
  }

  private List<String> folders() {
    List<String> all = new ArrayList<>(List.of(table.location()));
    FOLDERS.stream().map(table.properties()::get).filter(Objects::nonNull).forEach(all::add);
    return Folders.outermost(all);
  }

  /** The same files for the same seed, whatever else the table has. */
  private Dataset<Row> sampled(Dataset<Row> files) {
    if (options.sample() == 1) {
      return files;
    }

    Column hash = functions.xxhash64(functions.col("path"), functions.lit(options.seed()));
    Column share = functions.shiftrightunsigned(hash, 1).cast("double").divide(0x1p63);
    return files.where(share.lt(options.sample()));
  }

  private CheckTasks tasks() {
    return new CheckTasks(tree, options.depth(), progress.counter());
  }

  private void begin(String step, Size size) {
    spark.sparkContext().setJobDescription("iceberg-crypto verifies " + name + ": " + step);
    progress.begin(step, size.files(), size.bytes());
  }

  /** Runs a check, and adds up what it found. */
  private Dataset<Row> check(Dataset<Row> files, MapPartitionsFunction<Row, Row> task) {
    Dataset<Row> found = cache(mapped(files, task));
    add(found.where(functions.not(BELOW)));
    return found;
  }

  private static Dataset<Row> mapped(Dataset<Row> files, MapPartitionsFunction<Row, Row> task) {
    return files.mapPartitions(task, Encoders.row(FileRow.CHECKED));
  }

  private void add(Dataset<Row> outcomes) {
    tally.merge(Tally.of(outcomes));
    checked.add(outcomes);
  }

  /** The files that were found below others. */
  private static Dataset<Row> below(Dataset<Row> found) {
    return found.where(BELOW).select(REACHED);
  }

  private Dataset<Row> cache(Dataset<Row> rows) {
    cached.add(rows.persist(StorageLevel.MEMORY_AND_DISK()));
    return rows;
  }

  private void uncache(Dataset<Row> rows) {
    cached.remove(rows);
    rows.unpersist();
  }

  private void release() {
    cached.forEach(Dataset::unpersist);
    cached.clear();
    tree.destroy();
  }
}
