package io.icebergcrypto.audit;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.format.FileMagic;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.FileFormat;

/** The kinds of files that a table reaches, named as in the Iceberg specification. */
public enum FileKind {
  DATA,
  POSITION_DELETES,
  EQUALITY_DELETES,
  DELETION_VECTOR,
  MANIFEST,
  MANIFEST_LIST,
  STATISTICS,
  PARTITION_STATISTICS,
  /** A version of the table's metadata. Iceberg's format leaves it plaintext. */
  METADATA_FILE,
  /** A file below the table's location that no metadata reaches. */
  STRAY,
  /** A file of a folder that is looked at without a table. */
  FILE,
  /**
   * Of a Hudi table, as the next ones: rows that were changed since their base file was written.
   */
  HUDI_LOG,
  /** Its metadata table: names of files, and the table's own timeline. */
  HUDI_METADATA,
  /** Index of the metadata table: smallest and largest values of columns, of each file. */
  HUDI_COLUMN_STATS,
  /** The same, of each partition. */
  HUDI_PARTITION_STATS,
  /** Index: bloom filters of keys of records. */
  HUDI_BLOOM_FILTERS,
  /** Index: keys of records. */
  HUDI_RECORD_INDEX,
  /** Index: values of a column, and keys of records. */
  HUDI_SECONDARY_INDEX,
  /** Index: what an expression makes of the values of a column. */
  HUDI_EXPRESSION_INDEX,
  /** An index that this version does not know. */
  HUDI_OTHER_INDEX,
  /** Its properties, commits, and markers of partitions. */
  HUDI_TIMELINE,
  /** Of a Delta table: its log, with the names of files, the statistics of columns, and commits. */
  DELTA_LOG;

  private static final Pattern LOG = Pattern.compile("/\\.[^/]+\\.log\\.\\d+(_[\\d-]+)?(\\.cdc)?$");
  private static final Pattern OF_METADATA = Pattern.compile("/\\.hoodie/metadata/([^/]+)");
  private static final Pattern OF_DELTA = Pattern.compile("/_delta_log/");
  private static final Pattern TIMELINE =
      Pattern.compile("/\\.hoodie/|/\\.hoodie_partition_metadata[^/]*$");

  /** The name for people: {@code manifest list}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  /** The kind of this {@link #label()}. */
  public static FileKind ofLabel(String label) {
    return valueOf(label.toUpperCase(Locale.ROOT).replace(' ', '_'));
  }

  /**
   * What a file of a folder is, by its path: Hudi and Delta keep their own files in certain places.
   * That says nothing about its bytes.
   */
  public static FileKind ofPath(String path) {
    Matcher inMetadata = OF_METADATA.matcher(path);
    if (inMetadata.find()) {
      return ofPartition(inMetadata.group(1));
    } else if (OF_DELTA.matcher(path).find()) {
      return DELTA_LOG;
    } else if (TIMELINE.matcher(path).find()) {
      return HUDI_TIMELINE;
    }

    return LOG.matcher(path).find() ? HUDI_LOG : FILE;
  }

  /** By a partition of Hudi's metadata table; one that holds an index is named after it. */
  private static FileKind ofPartition(String name) {
    if (name.startsWith("secondary_index_")) {
      return HUDI_SECONDARY_INDEX;
    } else if (name.startsWith("expr_index_") || name.startsWith("func_index_")) {
      return HUDI_EXPRESSION_INDEX;
    }

    return switch (name) {
      case "files", ".hoodie" -> HUDI_METADATA;
      case "column_stats" -> HUDI_COLUMN_STATS;
      case "partition_stats" -> HUDI_PARTITION_STATS;
      case "bloom_filters" -> HUDI_BLOOM_FILTERS;
      case "record_index" -> HUDI_RECORD_INDEX;
      default -> HUDI_OTHER_INDEX;
    };
  }

  /** The kind of a content file: Iceberg's content code, and its format (a vector is Puffin). */
  public static FileKind ofContent(int content, String format) {
    return switch (content) {
      case 0 -> DATA;
      case 1 -> format.equalsIgnoreCase("puffin") ? DELETION_VECTOR : POSITION_DELETES;
      case 2 -> EQUALITY_DELETES;
      default -> throw new IllegalArgumentException("Unknown file content: " + content);
    };
  }

  /**
   * The format of a manifest or a manifest list: Avro, but in tables of format version 4, where
   * Iceberg writes Parquet.
   */
  public static String formatOfManifest(String path) {
    return FileFormat.fromFileName(path) == FileFormat.PARQUET ? "parquet" : "avro";
  }

  /**
   * What is wrong with a file of this kind in an encrypted table.
   *
   * @param format the file format that the table's metadata gives: parquet, avro, puffin
   * @param magic what the file's first bytes say
   * @return null when nothing is wrong
   */
  public FileProblem problem(String format, FileMagic magic) {
    if (magic == FileMagic.LATER) {
      return new FileProblem(
          ProblemCode.UNREADABLE, "it starts like a later version of encrypted files");
    } else if (!magic.encrypted()) {
      return magic == FileMagic.EMPTY
          ? new FileProblem(ProblemCode.TRUNCATED, "it is empty")
          : new FileProblem(
              ProblemCode.PLAINTEXT, "it is not encrypted: it starts with " + magic.name());
    }

    FileMagic expected =
        format.equalsIgnoreCase("parquet") && this != PARTITION_STATISTICS
            ? FileMagic.PARE
            : FileMagic.AGS1; // partition statistics are Parquet within an AES GCM stream
    return magic == expected
        ? null
        : new FileProblem(
            ProblemCode.WRONG_FORMAT,
            String.format("it starts with %s, expected %s for %s", magic, expected, format));
  }
}
