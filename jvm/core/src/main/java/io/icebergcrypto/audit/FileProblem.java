package io.icebergcrypto.audit;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.format.FileInspector;
import java.util.function.Supplier;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.InputFile;

/**
 * What is wrong with a file, or kept it from being checked.
 *
 * @param code for programs
 * @param words for people: one line, without a hint
 */
public record FileProblem(ProblemCode code, String words) {
  /** A file that is not there. */
  public static final FileProblem MISSING =
      new FileProblem(ProblemCode.MISSING, "it does not exist");

  private static final String RESTORE_KEY =
      "What names this file (the table's metadata or a manifest) has lost its key: restore that"
          + " from a backup or an object version. Until then, expire and rewrite nothing: with its"
          + " key the file can be read.";

  private static final String CHECK_AGAIN =
      "The check failed, which says nothing about the file. Fix what failed (KMS, storage,"
          + " permission, library), and verify again.";

  private static final String RECORD_LENGTH =
      "iceberg-rust wrote it, or another client that records no length; nothing indicates that it"
          + " was changed. CALL <catalog>.system.repair_table(table => ..., confirm => true) gives"
          + " all manifest lists, and the files of the current snapshot, their lengths; with the"
          + " catalog property encryption.files-without-length=accept it is not a problem.";

  private static final String FIND_OUT_WHOSE =
      "Find out whose it is: other tables may share this folder, a write or a copy may be under"
          + " way, or a failed write, add_files, or someone with access to the storage left it.";

  /**
   * Whether the storage says that the file does not exist, when it is asked again: one answer
   * accuses nobody, and a failure says nothing.
   */
  public static boolean isGone(Supplier<InputFile> file) {
    try {
      return !file.get().exists();
    } catch (NotFoundException e) {
      return true;
    } catch (RuntimeException e) {
      return false;
    }
  }

  /**
   * What to do about a problem with a file. An operator may follow it at three in the morning, so
   * it must not cost data: the code decides before the kind, as no kind of file that was lost or
   * changed is repaired by giving up what is left. docs/verification.md has all of them.
   *
   * @param kind what the file is to the table
   */
  public static String hint(ProblemCode code, FileKind kind) {
    if (code == ProblemCode.UNREADABLE) {
      return CHECK_AGAIN;
    } else if (kind == FileKind.STRAY) {
      return ofStray(code);
    }

    return switch (code) {
      case PLAINTEXT -> ofPlaintext(kind);
      case UNAUTHENTICATED ->
          "Compare its rows with their source: nothing shows whether they were changed. Have its"
              + " writer use AES_GCM_V1.";
      case NO_KEY -> RESTORE_KEY;
      case NO_LENGTH -> RECORD_LENGTH;
      default ->
          kind == FileKind.STATISTICS || kind == FileKind.PARTITION_STATISTICS
              ? "Restore this file from a backup or an object version, or compute the statistics"
                  + " again: no row depends on them."
              : FileInspector.RESTORE;
    };
  }

  /** What no metadata of this table reaches may be all that another table has. */
  private static String ofStray(ProblemCode code) {
    return code == ProblemCode.PLAINTEXT
        ? FIND_OUT_WHOSE
            + " Delete it only if no table, no write under way and no other program needs it. Where"
            + " tables share a folder, do not use remove_orphan_files: it deletes the other tables'"
            + " files, too."
        : FIND_OUT_WHOSE
            + " If it belongs to a table, restore it from a backup or an object"
            + " version.";
  }

  private static String ofPlaintext(FileKind kind) {
    return switch (kind) {
      case STATISTICS, PARTITION_STATISTICS ->
          "It holds column values, and was written by a client without encryption, or with"
              + " encryption.statistics=plaintext. Compute the statistics again with"
              + " encryption.statistics=encrypt, and remove this entry from the table"
              + " (docs/statistics.md).";
      case METADATA_FILE, FILE ->
          "Without a table nobody can tell whether it should be encrypted. Find out whose it is,"
              + " and verify that table.";
      case HUDI_LOG ->
          "Hudi encrypts no log file. Compact the table, and leave it to Hudi's cleaner to remove"
              + " the log; copy-on-write tables have none, unless they record changes (CDC).";
      case HUDI_METADATA ->
          "Hudi does not encrypt it: names and sizes of files, and names of partitions. With"
              + " hoodie.metadata.enable=false a table has none (docs/hudi.md).";
      case HUDI_COLUMN_STATS,
          HUDI_PARTITION_STATS,
          HUDI_BLOOM_FILTERS,
          HUDI_RECORD_INDEX,
          HUDI_SECONDARY_INDEX,
          HUDI_EXPRESSION_INDEX,
          HUDI_OTHER_INDEX ->
          "Hudi does not encrypt it, and it holds values of columns, or keys of records: anyone"
              + " who could read it knows them. With hoodie.metadata.enable=false for all"
              + " writers, CALL delete_metadata_table(table => ...) removes it; it has nothing but"
              + " repeats (docs/hudi.md).";
      case HUDI_TIMELINE ->
          "Hudi does not encrypt it: schema, names and sizes of files and names of partitions can"
              + " be read, and statistics of columns that are recorded for its metadata table.";
      case DELTA_LOG ->
          "Delta does not encrypt it: schema, names of files, values of partition columns,"
              + " predicates of DELETE, UPDATE and MERGE, and, unless they are off, the smallest"
              + " and largest values of columns can be read (docs/parquet-columns.md, \"Delta\").";
      default ->
          "Find out how it got there. If it stands in the place of an encrypted file, restore that"
              + " one from a backup or an object version. If a client without encryption or"
              + " add_files brought it, its rows are the table's: write them again through this"
              + " catalog (docs/guide.md, \"Repair changes made by stock clients\"), and compare"
              + " them, before any snapshot that reaches it expires.";
    };
  }
}
