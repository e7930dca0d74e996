package io.icebergcrypto.spark.verify;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.spark.columns.Protections;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.GroupIterator;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;

/**
 * What a task does with files that no metadata reaches, or in a folder without a table: what are
 * they, by their bytes? Without a key nobody can tell more.
 *
 * @param shared the storage
 * @param kind what the files are: strays of a table, or files of a folder
 * @param depth whether all pages of Parquet files with keys are read
 */
public record StrayTasks(
    Broadcast<Storage> shared, FileKind kind, Depth depth, Progress.Counter counter)
    implements Serializable {
  private static final String UNREACHED = ", and no metadata reaches it";
  private static final Pattern METADATA = Pattern.compile("\\.metadata\\.json(\\.gz)?$");
  private static final Pattern CHECKSUM = Pattern.compile("^\\..*\\.crc$");

  /** Where Parquet's key tools keep wrapped keys that are not in the files. */
  private static final Pattern KEY_MATERIAL = Pattern.compile("^_KEY_MATERIAL_FOR_.*\\.json$");

  private static final byte[] CHECKSUM_MAGIC = {'c', 'r', 'c', 0};

  private static final Pattern VERSION = Pattern.compile("\\d+\\s*");

  /** Where a Hadoop catalog keeps the number of the metadata file in force. */
  private static final String VERSION_HINT = "version-hint.text";

  private static final long LONGEST_METADATA = 1L << 28;
  private static final int LONGEST_VERSION = 20;

  /**
   * What is wrong with files that no metadata reaches, or in the way of looking at them.
   *
   * @param files path, length, problem, as {@link Folders#files} has them
   * @return path, length, problem, and the code of {@link ProblemCode} in the column code
   */
  public static Dataset<Row> problems(
      Broadcast<Storage> shared, Dataset<Row> files, Progress.Counter counter) {
    MapPartitionsFunction<Row, Row> check =
        new StrayTasks(shared, FileKind.STRAY, Depth.MAGIC, counter)::check;
    return files
        .mapPartitions(check, Encoders.row(FileRow.CHECKED))
        .where("problem IS NOT NULL")
        .select("path", "length", "problem", "code");
  }

  /** Checks rows of path, length, problem. */
  Iterator<Row> check(Iterator<Row> files) {
    return GroupIterator.each(files, this::check);
  }

  private Iterator<Row> check(Row file) {
    String path = file.getString(0);
    long length = file.getLong(1);
    if (isBookkeeping(path, length)) {
      return Collections.emptyIterator();
    }

    FileResult found =
        file.isNullAt(2)
            ? checked(path, length)
            : new FileResult(
                null, length, 0, new FileProblem(ProblemCode.UNREADABLE, file.getString(2)));
    if (found.code() == ProblemCode.MISSING) {
      return Collections.emptyIterator(); // it was deleted since it was listed
    }

    counter.add(length);
    String format = found.magic() == null ? "" : found.magic().format();
    ReachableFile unreached = new ReachableFile(kind(path), path, format, length, null, false);
    return List.of(FileRow.checked(FileRow.of(unreached, -1), found)).iterator();
  }

  private FileKind kind(String path) {
    return isStray() ? kind : FileKind.ofPath(path);
  }

  private FileResult checked(String path, long length) {
    try {
      InputFile stored = shared.value().io().newInputFile(path, length);
      FileMagic start = length == 0 ? FileMagic.EMPTY : FileInspector.magic(stored);
      FileProtection columns = isStray() ? null : columns(start, stored);
      Content content = columns == null ? content(start, stored) : Content.OTHER;
      FileMagic magic =
          start == FileMagic.OTHER && content != Content.OTHER ? FileMagic.JSON : start;
      FileProblem problem = columns == null ? problem(magic, content, path) : problem(columns);
      if (depth != Depth.DEEP || magic == FileMagic.EMPTY) {
        return new FileResult(magic, length, FileMagic.HEAD_LENGTH, problem);
      }

      FileProblem deep = columns == null ? withoutKey(magic) : pages(magic, stored, columns);
      return new FileResult(magic, length, length, both(problem, deep));
    } catch (RuntimeException e) {
      FileProblem problem = FailedCheck.problem("", e);
      boolean isOpen = ProblemCode.UNREAD.contains(problem.code());
      return new FileResult(null, length, 0, isOpen ? notRead(path, problem) : problem);
    }
  }

  /**
   * Some storages say that a file does not exist when access is denied, or fail if it does not
   * exist.
   */
  private FileProblem notRead(String path, FileProblem problem) {
    return FileProblem.isGone(() -> shared.value().io().newInputFile(path))
        ? FileProblem.MISSING
        : new FileProblem(ProblemCode.UNREADABLE, "it cannot be read: " + problem.words());
  }

  private static FileProblem both(FileProblem problem, FileProblem deep) {
    if (problem == null || deep == null) {
      return problem == null ? deep : problem;
    }

    return deep.code() == ProblemCode.TAMPERED
        ? deep
        : new FileProblem(problem.code(), problem.words() + "; " + deep.words());
  }

  private static FileProblem withoutKey(FileMagic magic) {
    return magic.encrypted()
        ? new FileProblem(
            ProblemCode.UNREADABLE,
            "its pages were not checked: only the metadata of its table has its key")
        : null;
  }

  /** Reads all pages, as far as there are keys. */
  private FileProblem pages(FileMagic magic, InputFile stored, FileProtection columns) {
    if (columns.unknown() != null) {
      return null; // that is a problem already
    }

    try {
      Set<String> left = Protections.readAll(magic, columns, stored, hadoop()).keySet();
      return left.isEmpty()
          ? null
          : new FileProblem(
              ProblemCode.UNREADABLE,
              "columns whose keys may not be used were not checked: " + String.join(", ", left));
    } catch (RuntimeException e) {
      return FailedCheck.problem("", e);
    }
  }

  private Configuration hadoop() {
    return ((ResolvingFileIO) shared.value().io()).getConf();
  }

  private FileProtection columns(FileMagic magic, InputFile file) {
    return Protections.of(magic, file, shared.value().io(), hadoop());
  }

  /** What a file is that does not start as an encrypted one. */
  private enum Content {
    /** Metadata of a table or a view, which Iceberg leaves in plaintext. */
    METADATA,
    /** Of a format that this version does not know. */
    LATER,
    OTHER
  }

  private FileProblem problem(FileMagic magic, Content content, String path) {
    if (magic.encrypted() || magic == FileMagic.EMPTY || content == Content.METADATA) {
      return null;
    } else if (content == Content.LATER) {
      return new FileProblem(
          ProblemCode.UNREADABLE,
          magic == FileMagic.LATER
              ? "it starts like a later version of encrypted files"
              : "it is metadata of a format version that this version does not know");
    }

    String word = word(kind(path), magic);
    return new FileProblem(
        ProblemCode.PLAINTEXT, "it is not encrypted: it is " + word + (isStray() ? UNREACHED : ""));
  }

  private static FileProblem problem(FileProtection columns) {
    String found = columns.problem();
    if (found != null) {
      boolean plaintext = !columns.encrypted();
      ProblemCode code = plaintext ? ProblemCode.PLAINTEXT : ProblemCode.UNAUTHENTICATED;
      return new FileProblem(code, "it is encrypted in part, or not authenticated: " + found);
    }

    return columns.unknown() == null
        ? null
        : new FileProblem(
            ProblemCode.UNREADABLE,
            "it is not known which of its columns are encrypted: " + columns.unknown());
  }

  private boolean isStray() {
    return kind == FileKind.STRAY;
  }

  private static String word(FileKind kind, FileMagic magic) {
    return switch (kind) {
      case HUDI_LOG -> "a log file of a Hudi table, with rows or keys of records";
      case HUDI_METADATA -> "of a Hudi table's metadata table";
      case HUDI_COLUMN_STATS, HUDI_PARTITION_STATS ->
          "of a Hudi table's metadata table, with the smallest and largest values of columns";
      case HUDI_BLOOM_FILTERS, HUDI_RECORD_INDEX ->
          "of a Hudi table's metadata table, with keys of records, or filters of them";
      case HUDI_SECONDARY_INDEX, HUDI_EXPRESSION_INDEX, HUDI_OTHER_INDEX ->
          "of a Hudi table's metadata table, with values of columns";
      case HUDI_TIMELINE -> "of a Hudi table's timeline";
      case DELTA_LOG -> "of a Delta table's log";
      default -> magic == FileMagic.OTHER ? "of an unknown format" : magic.name();
    };
  }

  /**
   * Whether it is a file in which Hadoop keeps a checksum, its catalog a number, or Parquet keys.
   */
  private boolean isBookkeeping(String path, long length) {
    String name = name(path);
    try {
      if (KEY_MATERIAL.matcher(name).matches()) {
        return FileMagic.of(head(path, FileMagic.HEAD_LENGTH)) == FileMagic.JSON;
      }

      return CHECKSUM.matcher(name).matches()
          ? Arrays.equals(head(path, CHECKSUM_MAGIC.length), CHECKSUM_MAGIC)
          : name.equals(VERSION_HINT)
              && length <= LONGEST_VERSION
              && VERSION.matcher(new String(head(path, LONGEST_VERSION), US_ASCII)).matches();
    } catch (RuntimeException e) {
      return false; // the check says why
    }
  }

  /** Metadata is what parses, and not what is only named so. */
  private Content content(FileMagic start, InputFile file) {
    if (start == FileMagic.LATER) {
      return Content.LATER;
    }

    boolean isNamedSo = METADATA.matcher(name(file.location())).find();
    boolean isOther = start.encrypted() || start == FileMagic.EMPTY || !isNamedSo;
    if (isOther || file.getLength() >= LONGEST_METADATA) {
      return Content.OTHER;
    }

    MetadataFile read = MetadataFile.read(shared.value().io(), file.location());
    Content asTable = content(read::metadata);
    return asTable == Content.OTHER ? content(read::viewMetadata) : asTable;
  }

  private static Content content(Supplier<?> parsed) {
    try {
      return parsed.get() != null ? Content.METADATA : Content.OTHER;
    } catch (RuntimeException e) { // of a parser: the bytes were read before
      return MetadataFile.isOfNewerFormat(e) ? Content.LATER : Content.OTHER;
    }
  }

  private static String name(String path) {
    return path.substring(path.lastIndexOf('/') + 1);
  }

  private byte[] head(String path, int length) {
    try (SeekableInputStream in = shared.value().io().newInputFile(path).newStream()) {
      return in.readNBytes(length);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
