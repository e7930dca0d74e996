package io.icebergcrypto.spark.verify;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.spark.columns.Protections;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Storage;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;

/**
 * Looks for plaintext in a folder, without a catalog: each file is recognized by its first bytes.
 * Table metadata is plaintext by Iceberg's design, and so no problem.
 */
public final class FolderVerifier {
  private FolderVerifier() {}

  /**
   * Checks all files below a folder.
   *
   * @param uri the folder, on any storage that Spark or Iceberg reads
   * @param deep whether all pages of Parquet files with keys are read, with the session's KMS; an
   *     encrypted file whose key is elsewhere then counts as not checked
   * @param progress is told how far it is
   * @return the result, which keeps its DataFrame of files until it is closed
   * @throws InvalidConfigurationException when there is no such folder, or no file in it
   */
  public static VerifyResult verify(
      SparkSession spark, String uri, boolean deep, Progress progress) {
    Configuration hadoop = Protections.guarded(spark.sessionState().newHadoopConf());
    Depth depth = deep ? Depth.DEEP : Depth.MAGIC;
    Instant start = Instant.now();
    String before = spark.sparkContext().getLocalProperty("spark.job.description");
    String step = "files in " + uri;
    spark.sparkContext().setJobDescription("iceberg-crypto verifies " + step);
    progress.begin(step, 0, 0);
    Broadcast<Storage> storage =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new Storage(Storage.any(hadoop)));
    Folders folders = new Folders(spark, storage);
    try {
      Dataset<Row> files = folders.files(List.of(uri));
      Size size = FileSet.of(files).size();
      if (size.files() == 0) {
        throw new InvalidConfigurationException(
            "There is no file in " + uri, "Check the URI. A folder without files proves nothing.");
      }

      progress.begin(step, size.files(), size.bytes());
      StrayTasks tasks = new StrayTasks(storage, FileKind.FILE, depth, progress.counter());
      MapPartitionsFunction<Row, Row> check = tasks::check;
      Dataset<Row> found =
          new FileJobs(spark)
              .spread(files, size)
              .mapPartitions(check, Encoders.row(FileRow.CHECKED))
              .persist(StorageLevel.MEMORY_AND_DISK());
      Tally tally;
      try {
        tally = Tally.of(FileSet.of(found));
      } catch (Exception e) {
        found.unpersist();
        throw e;
      }

      Map<String, Object> subject = new LinkedHashMap<>();
      subject.put("folder", uri);
      subject.put("deep", deep);
      subject.put("depth", depth.label());
      return new VerifyResult(subject, start, found, tally, null, found::unpersist);
    } catch (Exception e) { // Spark throws checked exceptions that it does not declare
      throw FailedCheck.error(uri, "files", e);
    } finally {
      folders.close();
      storage.unpersist();
      spark.sparkContext().setJobDescription(before);
    }
  }
}
