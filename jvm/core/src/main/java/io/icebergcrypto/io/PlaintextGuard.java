package io.icebergcrypto.io;

import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.checked.StoredInput;
import io.icebergcrypto.metadata.forwarding.ForwardingFileIO;
import java.util.EnumSet;
import java.util.Set;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Refuses to read and to write plaintext files of an encrypted table. It stands on the table's
 * storage, below Iceberg's EncryptingFileIO, which passes a file without a key on and would read
 * plaintext. Such a file can be named, measured and deleted here, but not read, unless that is
 * allowed. Files with a key come by, too: {@link TableEncryptionManager} takes them out again.
 *
 * <p>Statistics files, which Iceberg opens by path as if they had no key, are encrypted and
 * decrypted here. On executors, where Iceberg opens none, they are refused.
 */
final class PlaintextGuard implements ForwardingFileIO {
  private static final long serialVersionUID = 1L;

  /** What a data file, a delete file or a manifest without a key may be: nothing. */
  private static final Set<FileMagic> NOTHING = EnumSet.noneOf(FileMagic.class);

  private final String tableName;
  private final FileIO storage;
  private final boolean plaintextFiles;
  private final boolean filesWithoutLength;
  private final StatisticsPolicy policy;
  // transient: the manager travels to executors with TableFileIO, and once is enough
  private final transient StatisticsFiles statistics;

  /**
   * Guards a table's storage.
   *
   * @param plaintextFiles whether all plaintext files may be read and written
   * @param filesWithoutLength whether encrypted files may be read of which only the storage tells
   *     how long they are
   * @param policy what becomes of statistics files
   * @param statistics the table's; null, as on executors: they are read as they are stored where
   *     plaintext may be read, and else refused
   */
  PlaintextGuard(
      String tableName,
      FileIO storage,
      boolean plaintextFiles,
      boolean filesWithoutLength,
      StatisticsPolicy policy,
      StatisticsFiles statistics) {
    this.tableName = tableName;
    this.storage = storage;
    this.plaintextFiles = plaintextFiles;
    this.filesWithoutLength = filesWithoutLength;
    this.policy = policy;
    this.statistics = statistics;
  }

  @Override
  public FileIO under() {
    return storage;
  }

  /** Manifest lists, which Iceberg opens by path, statistics, and what is not part of the data. */
  @Override
  public InputFile newInputFile(String path) {
    InputFile file = storage.newInputFile(path);
    if (!StatisticsFiles.isNamed(path)) {
      return guarded(path, file, null, unencrypted());
    }

    boolean plaintext = policy == StatisticsPolicy.PLAINTEXT;
    if (statistics == null && !plaintext && !plaintextFiles) {
      throw StatisticsFiles.onDriverOnly(tableName, path);
    }

    InputFile stored = guarded(path, file, null, plaintext ? unencrypted() : NOTHING);
    InputFile decrypted = statistics == null ? null : statistics.decrypted(path, stored);
    return decrypted == null ? stored : decrypted;
  }

  /** Manifests, data and delete files: their length is known. */
  @Override
  public InputFile newInputFile(String path, long length) {
    return guarded(path, storage.newInputFile(path, length), length, NOTHING);
  }

  private InputFile guarded(String path, InputFile file, Long listed, Set<FileMagic> readable) {
    if (plaintextFiles && FileFormat.fromFileName(path) == FileFormat.PARQUET) {
      return file; // Parquet reads Hadoop's own files faster, and asks them for their length
    }

    StoredInput stored =
        new StoredInput(
            file,
            () -> storage.newInputFile(path).getLength(),
            listed,
            !plaintextFiles,
            filesWithoutLength);
    return new GuardedInputFile(tableName, stored, readable);
  }

  /**
   * Files of all kinds. Iceberg hands them to the encryption manager before it writes to them,
   * except those that are not part of the data.
   */
  @Override
  public OutputFile newOutputFile(String path) {
    OutputFile stored = storage.newOutputFile(path);
    if (policy != StatisticsPolicy.PLAINTEXT && StatisticsFiles.isNamed(path)) {
      if (policy == StatisticsPolicy.REFUSE) {
        throw StatisticsFiles.refused(tableName, path);
      } else if (statistics == null) {
        throw StatisticsFiles.onDriverOnly(tableName, path);
      }

      return statistics.encrypted(stored);
    }

    return plaintextFiles ? stored : new GuardedOutputFile(tableName, stored, unencrypted());
  }

  /**
   * What a file that is opened by its path alone may be. A manifest list would be plaintext Avro;
   * metadata.json and the offsets of a stream are neither that nor Parquet.
   */
  private Set<FileMagic> unencrypted() {
    EnumSet<FileMagic> data =
        policy == StatisticsPolicy.PLAINTEXT
            ? EnumSet.of(FileMagic.AVRO, FileMagic.ORC, FileMagic.LATER)
            : EnumSet.of(
                FileMagic.AVRO, FileMagic.ORC, FileMagic.PAR1, FileMagic.PUFFIN, FileMagic.LATER);
    return EnumSet.complementOf(data);
  }
}
