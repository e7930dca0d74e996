package io.icebergcrypto.spark.migrate.purge;

import static org.apache.spark.sql.functions.col;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.iceberg.BaseTable;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * That the folders of a table hold no plaintext.
 *
 * @param accepted the copy of the old metadata, if the user accepts that not all that it named is
 *     known: it is deleted next; else null
 */
record Proof(SparkSession spark, BaseTable table, String accepted, Progress progress) {
  private static final int NAMED = 10;

  private static final String CALL_AGAIN =
      "The purge keeps its record. The check failed, which says nothing about these files: fix the"
          + " storage or the KMS, and call purge_plaintext again, which continues.";

  private static final String LOOK =
      "verify_encryption with strays => true lists them. They belong to snapshots that expired, to"
          + " failed writes, or to others: look at them, delete those that are this table's, and"
          + " call purge_plaintext again, which ends when none is left.";

  private static final String CALL_AGAIN_OR_LOOK =
      CALL_AGAIN + " If they stay unread, a later version may have written them: " + LOOK;

  private static final String VERSIONS =
      " Until then write.metadata.previous-versions-max may be 1, so that the table keeps one older"
          + " metadata file: the purge restores its value when it finishes.";

  /**
   * Proves that old data files in the table's folders are gone, and that there is no plaintext
   * beside what the purge will delete, while manifests still say which plaintext is elsewhere.
   *
   * @param data old data files, which were deleted
   * @param delete deletes those that are left, and proves that they are gone
   * @throws IcebergCryptoException when there is, or when that is not known
   */
  void ofOthers(
      OldFiles files,
      Dataset<Row> data,
      Dataset<Row> inForce,
      Broadcast<Storage> storage,
      Consumer<Dataset<Row>> delete) {
    try (Folders folders = new Folders(spark, storage)) {
      Dataset<Row> listed = folders.files(files.own());
      Dataset<Row> left = Folders.among(data, listed);
      if (!left.isEmpty()) {
        delete.accept(left);
      }

      Dataset<Row> known = files.doomed().select("path").union(inForce);
      requireNone(FormerFolders.plaintext(spark, storage, listed, known, progress));
    }
  }

  private void requireNone(Dataset<Row> others) {
    List<String> unknown = words(others.where(col("state").equalTo(OldTree.UNKNOWN)));
    if (!unknown.isEmpty()) {
      throw notFinished(
          "its old data files were deleted, and others in its folders could not be checked",
          unknown,
          CALL_AGAIN_OR_LOOK);
    }

    List<String> plaintext = words(others);
    if (!plaintext.isEmpty()) {
      String what =
          String.format(
              "its old data files were deleted, and its folders hold others: %d", others.count());
      throw notFinished(what, plaintext, LOOK);
    }
  }

  private static List<String> words(Dataset<Row> files) {
    return files.orderBy("path").select("path", "problem").takeAsList(NAMED).stream()
        .map(file -> file.getString(0) + ": " + file.getString(1))
        .toList();
  }

  /**
   * Proves that there is no plaintext.
   *
   * @throws IcebergCryptoException when there is, or when that is not known
   */
  void ofAll() {
    VerifyOptions strays = VerifyOptions.of(Depth.MAGIC, true, true);
    table.refresh();
    try (VerifyResult result = TableVerifier.verify(spark, table, strays, progress)) {
      List<Problem> problems =
          result.problems().stream().filter(one -> !one.path().equals(accepted)).toList();
      if (!problems.isEmpty()) {
        throw notProved(problems, result.summary());
      }
    }
  }

  /** The table's own files first: what is wrong with them is no reason to delete anything. */
  private IcebergCryptoException notProved(List<Problem> problems, String summary) {
    Predicate<Problem> isOther = one -> one.isPlaintextFile() && isStray(one);
    List<Problem> own =
        problems.stream().filter(one -> !one.unchecked() && !isOther.test(one)).toList();
    if (!own.isEmpty()) {
      String what = "its old files were deleted, and it does not verify: " + summary;
      return notFinished(
          what, words(own), "The purge keeps its record. " + hint(own.get(0)) + VERSIONS);
    }

    List<Problem> unchecked = problems.stream().filter(Problem::unchecked).toList();
    return unchecked.isEmpty()
        ? notFinished(
            "its old files were deleted, and its folders hold others: " + summary,
            words(problems),
            LOOK + VERSIONS)
        : notFinished(
            "its old files were deleted, and some files could not be checked: " + summary,
            words(unchecked),
            (unchecked.stream().anyMatch(Proof::isStray) ? CALL_AGAIN_OR_LOOK : CALL_AGAIN)
                + VERSIONS);
  }

  private static boolean isStray(Problem problem) {
    return problem.kind().equals(FileKind.STRAY.label());
  }

  /** Not that of the plaintext from before, which another purge would delete. */
  private static String hint(Problem problem) {
    return problem.isPlaintextFile()
        ? FileProblem.hint(ProblemCode.PLAINTEXT, FileKind.ofLabel(problem.kind()))
        : problem.hint();
  }

  private static List<String> words(List<Problem> problems) {
    return problems.stream()
        .limit(NAMED)
        .map(one -> String.format("%s %s: %s", one.kind(), one.path(), one.problem()))
        .toList();
  }

  private IcebergCryptoException notFinished(String what, List<String> files, String hint) {
    return notFinished(table.name(), what, files, hint);
  }

  /** The error of a purge that another call continues. */
  static IcebergCryptoException notFinished(
      String table, String what, List<String> files, String hint) {
    return new IcebergCryptoException(
            String.format("not finished: %s, such as %s", what, String.join(", ", files)), hint)
        .inTable(table);
  }
}
