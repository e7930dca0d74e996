package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.EarlierReport;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.table.TableLoader;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.RecordedFiles;
import io.icebergcrypto.spark.verify.scan.Storage;
import io.icebergcrypto.spark.verify.scan.TableTree;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Proves that the files a table reaches are encrypted: Spark jobs check each of them. The driver
 * holds what table metadata holds, and sums; all below manifest lists is read on the executors,
 * unless it is so little that the driver is done sooner.
 */
public final class TableVerifier {
  private static final Column BELOW = functions.col("below");
  private static final String PATH = "path";

  /** How often it begins when what it checks expires before it can be read. */
  private static final int ATTEMPTS = 3;

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

  /** As it was at the start: commits of this session move the operations that it came from. */
  private final TableMetadata metadata;

  private final VerifyOptions options;
  private final Progress progress;
  private final FileJobs jobs;
  private final MetadataFiles metadataFiles;
  private final TableTree.Shared tree;
  private final RecordedFiles recorded;
  private final List<ReachableFile> lists;
  private final List<FileSet> cached = new ArrayList<>();
  private final List<FileSet> checked = new ArrayList<>();
  private final Map<String, Object> notes = new LinkedHashMap<>();
  private Tally tally = new Tally();
  private FileSet vouched;

  /**
   * Reads the table's metadata, and checks nothing yet.
   *
   * @param metadata the loaded table's, at one time; its operations may have newer
   */
  TableVerifier(
      SparkSession spark,
      String name,
      BaseTable loaded,
      TableMetadata metadata,
      VerifyOptions options,
      boolean committed,
      Progress progress) {
    this.spark = spark;
    this.name = name;
    this.options = options;
    this.progress = progress;
    this.jobs = new FileJobs(spark);
    this.metadata = metadata;
    BaseTable audited = EncryptedTable.forAudit(loaded, List.of());
    this.metadataFiles = metadataFiles(audited.io(), metadata, options, committed);
    this.table = EncryptedTable.forAudit(loaded, metadataFiles.olderKeys());
    this.recorded = recordedOrNull();
    this.lists =
        metadataFiles.named().stream().filter(f -> f.kind() == FileKind.MANIFEST_LIST).toList();
    this.tree = new TableTree.Shared(spark, new TableTree(table, lists));
  }

  private RecordedFiles recordedOrNull() {
    EarlierReport since = options.since();
    String depth = options.depth().label();
    EarlierReport.Recorded signed =
        since == null ? null : since.recordOf(name, metadata.uuid(), depth);
    String folder =
        since == null ? options.resume() : since.folderOf(name, signed, options.resume());
    return folder == null
        ? null
        : RecordedFiles.open(spark, folder, name, metadata, depth, FileRow.CHECKED, signed);
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
    return verify(spark, tableName, TableLoader.load(spark, tableName), options, true, progress);
  }

  /** The same for a table that is at hand, as it is there. */
  public static VerifyResult verify(
      SparkSession spark, BaseTable table, VerifyOptions options, Progress progress) {
    return verify(spark, table.name(), table, options, true, progress);
  }

  /**
   * The same for a table that no catalog has, as it is to be committed: all of its snapshots, and
   * no metadata file.
   */
  public static VerifyResult verifyUncommitted(
      SparkSession spark,
      String tableName,
      BaseTable table,
      VerifyOptions options,
      Progress progress) {
    return verify(spark, tableName, table, options, false, progress);
  }

  private static VerifyResult verify(
      SparkSession spark,
      String tableName,
      BaseTable loaded,
      VerifyOptions options,
      boolean committed,
      Progress progress) {
    Instant start = Instant.now();
    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    TableVerifier verifier = null;
    try {
      BaseTable table = loaded;
      for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        TableMetadata metadata = table.operations().current();
        verifier =
            new TableVerifier(spark, tableName, table, metadata, options, committed, progress);
        Map<String, Object> subject = Subject.of(tableName, verifier.table, metadata, options);
        verifier.checkAll();
        if (!committed || verifier.dropWhatIsGone()) {
          return verifier.result(subject, start);
        }

        verifier.release();
        table = TableLoader.load(spark, tableName);
      }

      throw SecondLook.tooFast(tableName);
    } catch (Exception e) { // Spark throws checked exceptions that it does not declare
      if (verifier != null) {
        verifier.release();
      }

      throw FailedCheck.error(tableName, "files", e);
    } finally {
      spark.sparkContext().setJobDescription(before);
    }
  }

  private static MetadataFiles metadataFiles(
      FileIO io, TableMetadata metadata, VerifyOptions options, boolean committed) {
    if (!committed) {
      return MetadataFiles.ofSnapshots(metadata);
    }

    return options.allSnapshots()
        ? MetadataFiles.ofLog(io, metadata)
        : MetadataFiles.ofRefs(metadata);
  }

  private void checkAll() {
    FileSet reached = reached();
    files(reached);
    if (options.strays()) {
      strays(reached.rows());
    }

    release(reached);
  }

  /** Checks all that leads to data and delete files, and returns these. */
  private FileSet reached() {
    addMetadataFiles();
    FileSet manifests = below(named()).distinct();
    return cache(below(manifests(manifests)).distinct());
  }

  /**
   * Leaves out what was found about files that are no longer reached.
   *
   * @return whether that is all: false when there was more to check below such a file
   */
  private boolean dropWhatIsGone() {
    if (tally.problemCount() == 0) {
      return true;
    }

    FileSet found = FileSet.all(checked).where(functions.col("problem").isNotNull());
    SecondLook second = new SecondLook(spark, name, metadata, lists, options);
    SecondLook.Result look = second.of(found, progress);
    if (look == null || !look.isWhole()) {
      return look == null;
    }

    checked.replaceAll(files -> files.among(look.looked(), false));
    checked.add(look.now());
    this.tally = new Tally();
    checked.forEach(files -> tally.merge(Tally.of(files)));
    return true;
  }

  /** Checks all that leads to files, and some of these, as far as they are reached. */
  FileSet outcomesOf(FileSet some) {
    FileSet files = reached().among(some, true);
    Size size = files.size();
    check(files, size, CheckTasks::files, rows -> divided(rows, size));
    return FileSet.all(checked);
  }

  private VerifyResult result(Map<String, Object> subject, Instant start) {
    if (!isEncrypted()) {
      tally.add(Problem.notEncrypted(name, table.name(), TableProperties.ENCRYPTION_TABLE_KEY));
    }

    if (recorded != null) {
      notes.put("resume", recorded.folder());
    }

    if (vouched != null) {
      Object signed = options.since().toMap().get("signed_at");
      tally.tellBefore(
          recorded.rightAt(vouched, tally.paths()),
          at ->
              String.format(
                  "The report signed at %s vouches for it: it was right at %s. ", signed, at));
    }

    subject.putAll(notes);
    Finding left = Finding.ofPlaintextLeft(table.name(), metadata);
    return new VerifyResult(
        subject, start, FileSet.all(checked).rows(), tally, left, this::release);
  }

  private boolean isEncrypted() {
    return metadata.properties().containsKey(TableProperties.ENCRYPTION_TABLE_KEY)
        || !metadata.encryptionKeys().isEmpty();
  }

  /** Metadata files were read on the driver, to find what they name. */
  private void addMetadataFiles() {
    List<Row> rows = metadataFiles.versions().stream().map(FileRow::of).toList();
    if (!rows.isEmpty()) {
      add(FileSet.few(spark, rows, FileRow.CHECKED));
    }
  }

  /** Manifest lists and statistics. */
  private FileSet named() {
    List<Row> rows = new ArrayList<>();
    int list = 0;
    for (ReachableFile file : metadataFiles.named()) {
      rows.add(FileRow.of(file, file.kind() == FileKind.MANIFEST_LIST ? list++ : -1));
    }

    Size size = new Size(rows.size(), 0);
    begin("manifest lists", size);
    FileSet files = FileSet.few(spark, rows, FileRow.REACHED);
    return check(files, size, CheckTasks::named, divided -> divided);
  }

  private FileSet manifests(FileSet manifests) {
    FileSet distinct = cache(manifests);
    Size size = distinct.size();
    begin("manifests", size);
    FileSet found =
        check(
            distinct,
            size,
            CheckTasks::manifests,
            rows -> jobs.parts(rows, size, functions.col("list")));
    release(distinct);
    return found;
  }

  /** Data and delete files, or a sample of them. */
  private void files(FileSet reached) {
    Size all = reached.size();
    FileSet files = sampled(reached);
    Size size = options.sample() < 1 ? files.size() : all;
    notes.put("left_out_files", all.files() - size.files());
    notes.put("left_out_bytes", all.bytes() - size.bytes());
    if (recorded == null) {
      begin("data and delete files", size);
      check(files, read(size), CheckTasks::files, rows -> divided(rows, size));
    } else {
      resume(files, size);
    }
  }

  /**
   * Takes over what is recorded, but a share of it and what was ever found wrong, checks the
   * others, and records them.
   */
  private void resume(FileSet files, Size all) {
    FileSet known = cache(recorded.right().alike(files, FileRow.ENTRY));
    Column again = RecordedFiles.SUSPECT;
    if (options.since() != null) {
      again = again.or(share(options.since().seed()).lt(options.since().recheck()));
    }

    this.vouched = options.since() == null ? null : known;
    FileSet before = known.where(functions.not(again));
    add(before.select(FileRow.CHECKED.fieldNames()));
    Size done = before.size();
    notes.put("resumed_files", done.files());
    if (options.since() != null) {
      Map<String, Object> since = options.since().toMap();
      since.put("rechecked_files", known.size().files() - done.files());
      since.put("unsigned_files", recorded.unsigned(before));
      notes.put("since", since);
    }

    FileSet left = files.among(before, false);
    FileSet now = cache(checkedAndRecorded(left, all.minus(done)));
    recorded.requireAll( // the others may be gone by now
        left.where(functions.not(functions.col("older"))), now);
    add(now.select(FileRow.CHECKED.fieldNames()));
    notes.put("record", recorded.seal(before, now));
  }

  /** Checks files on the driver if they are few, or in tasks that record what they find. */
  private FileSet checkedAndRecorded(FileSet files, Size size) {
    begin("data and delete files", size);
    CheckTasks here = tasks(tree.here());
    FileSet few = jobs.checkOrNull(files, read(size), here::files, FileRow.CHECKED);
    return few != null
        ? recorded.add(few)
        : recorded
            .add(byJobs(divided(files.rows(), size), CheckTasks::files))
            .alike(files, FileRow.ENTRY); // anyone may have added others
  }

  /** How much of files is read. */
  private Size read(Size size) {
    return options.depth() == Depth.MAGIC ? new Size(size.files(), 0) : size;
  }

  private Dataset<Row> divided(Dataset<Row> files, Size size) {
    return options.depth() == Depth.MAGIC
        ? jobs.spread(files, size)
        : jobs.parts(files, size, functions.col("list"), functions.col("manifest"));
  }

  /** Files below the table's folders that no metadata reaches. */
  private void strays(Dataset<Row> reached) {
    begin("files that no metadata reaches", new Size(0, 0));
    Broadcast<Storage> storage =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new Storage(TableFileIO.listed(table.io())));
    StrayTasks tasks = new StrayTasks(storage, FileKind.STRAY, Depth.MAGIC, progress.counter());
    Dataset<Row> known = FileSet.all(checked).rows().select(PATH).union(reached.select(PATH));
    try (Folders folders = new Folders(spark, storage)) {
      Dataset<Row> strays = Folders.without(folders.files(foldersOf(metadata)), known);
      Size size = FileSet.of(strays).size();
      begin("files that no metadata reaches", size);
      MapPartitionsFunction<Row, Row> check = tasks::check;
      Dataset<Row> spread = jobs.spread(strays, size);
      found(FileSet.of(spread.mapPartitions(check, Encoders.row(FileRow.CHECKED))));
    }
  }

  /** Where the files of a table are: its location, and what its properties name beside that. */
  public static List<String> foldersOf(TableMetadata metadata) {
    List<String> all = new ArrayList<>(List.of(metadata.location()));
    FOLDERS.stream().map(metadata.properties()::get).filter(Objects::nonNull).forEach(all::add);
    return Folders.outermost(all);
  }

  /** The same files for the same seed, regardless of the table's other files. */
  private FileSet sampled(FileSet files) {
    return options.sample() == 1 ? files : files.where(share(options.seed()).lt(options.sample()));
  }

  /** A number from 0 to 1 for each file, evenly distributed. */
  private static Column share(long seed) {
    Column hash = functions.xxhash64(functions.col(PATH), functions.lit(seed));
    return functions.shiftrightunsigned(hash, 1).cast("double").divide(0x1p63);
  }

  private void begin(String step, Size size) {
    spark.sparkContext().setJobDescription("iceberg-crypto verifies " + name + ": " + step);
    progress.begin(step, size.files(), size.bytes());
  }

  /** Runs a check, and adds up what it found. */
  private FileSet check(
      FileSet files, Size read, CheckTasks.Check check, UnaryOperator<Dataset<Row>> divided) {
    CheckTasks here = tasks(tree.here());
    return found(
        jobs.check(
            files,
            read,
            rows -> check.apply(here, rows),
            () -> byJobs(divided.apply(files.rows()), check),
            FileRow.CHECKED));
  }

  private Dataset<Row> byJobs(Dataset<Row> files, CheckTasks.Check check) {
    CheckTasks tasks = tasks(tree.there());
    MapPartitionsFunction<Row, Row> checked = rows -> check.apply(tasks, rows);
    return files.mapPartitions(checked, Encoders.row(FileRow.CHECKED));
  }

  private CheckTasks tasks(TableTree.Source shared) {
    return new CheckTasks(
        shared,
        new FileCheck(options.depth(), EncryptedTable.acceptsFilesWithoutLength(table)),
        recorded != null,
        progress.counter());
  }

  private FileSet found(FileSet outcomes) {
    FileSet found = cache(outcomes);
    add(found.where(functions.not(BELOW), row -> !FileRow.isBelow(row)));
    return found;
  }

  private void add(FileSet outcomes) {
    tally.merge(Tally.of(outcomes));
    checked.add(outcomes);
  }

  /** The files that were found below others. */
  private static FileSet below(FileSet found) {
    return found.where(BELOW, FileRow::isBelow).select(FileRow.REACHED.fieldNames());
  }

  private FileSet cache(FileSet files) {
    FileSet kept = files.persist();
    cached.add(kept);
    return kept;
  }

  private void release(FileSet files) {
    cached.remove(files);
    files.release();
  }

  void release() {
    cached.forEach(FileSet::release);
    cached.clear();
    tree.close();
  }
}
