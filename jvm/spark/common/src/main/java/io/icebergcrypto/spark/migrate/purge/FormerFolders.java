package io.icebergcrypto.spark.migrate.purge;

import static org.apache.spark.sql.functions.col;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.StrayTasks;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Folders that were the table's at some time, by its logged metadata: it was moved, or wrote
 * elsewhere. Anyone who can write to the storage can change that metadata, and other tables may
 * have such a folder since: plaintext is looked for in there, and reported, but not deleted.
 *
 * @param outermost none is below another
 */
record FormerFolders(List<String> outermost) implements Serializable {
  /**
   * Takes the folders.
   *
   * @param folders the table's at any time
   * @param known folders that are not looked at
   */
  static FormerFolders of(Collection<String> folders, List<String> known) {
    return new FormerFolders(
        Folders.outermost(
            folders.stream()
                .filter(folder -> known.stream().noneMatch(one -> Folders.isIn(folder, one)))
                .toList()));
  }

  /** The former folder that a file is in; else the one that it is in, without its partitions. */
  String of(String path) {
    return outermost.stream()
        .filter(folder -> Folders.isIn(path, folder))
        .findFirst()
        .orElseGet(() -> path.replaceFirst("(?:/[^/=]+=[^/]*)*/[^/]*$", ""));
  }

  /**
   * Looks for plaintext.
   *
   * @param folders none is below another
   * @param known files that metadata names, by their column path
   * @return rows of {@link OldTree#FILES}; an unknown one is a folder that cannot be listed, or a
   *     file that cannot be read. It is kept by Spark
   */
  static Dataset<Row> plaintext(
      SparkSession spark,
      Broadcast<Storage> storage,
      List<String> folders,
      Dataset<Row> known,
      Progress progress) {
    if (folders.isEmpty()) {
      return spark.createDataFrame(new ArrayList<Row>(), OldTree.FILES);
    }

    try (Folders listed = new Folders(spark, storage)) {
      return plaintext(spark, storage, listed.files(folders), known, progress);
    }
  }

  /**
   * Looks for plaintext among files that were listed: rows of {@link Folders#files}.
   *
   * @return as above
   */
  static Dataset<Row> plaintext(
      SparkSession spark,
      Broadcast<Storage> storage,
      Dataset<Row> listed,
      Dataset<Row> known,
      Progress progress) {
    Dataset<Row> unknown = Folders.without(listed, known);
    Dataset<Row> spread = new FileJobs(spark).spread(unknown, FileSet.of(unknown).size());
    return StrayTasks.problems(storage, spread, progress.counter())
        .select(
            col("path"),
            functions.lit(FileKind.STRAY.label()).as("kind"),
            functions.greatest(col("length"), functions.lit(0L)).as("length"),
            functions.lit(null).cast("string").as("gap"),
            col("problem"),
            functions
                .when(col("code").equalTo(ProblemCode.UNREADABLE.label()), OldTree.UNKNOWN)
                .otherwise(OldTree.PLAINTEXT)
                .as("state"))
        .localCheckpoint(true);
  }
}
