package io.icebergcrypto.io;

import io.icebergcrypto.config.StatisticsPolicy;
import java.util.Map;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * The storage of an encrypted table below Iceberg's EncryptingFileIO, which hands a file without a
 * key on to it and reads plaintext. Here such a file can be named, measured and deleted, but not
 * read, unless that is allowed. Files with a key come by here, too: {@link TableEncryptionManager}
 * takes them out again. Statistics files are encrypted and decrypted here, as Iceberg treats them
 * as files without a key; on executors, where it opens none, they are refused.
 */
public final class KeylessFileIO implements FileIO {
  private static final long serialVersionUID = 1L;

  private final String tableName;
  private final FileIO io;
  private final boolean plaintextFiles;
  private final StatisticsPolicy policy;
  // transient: it would take the keys along a second time
  private final transient StatisticsFiles statistics;

  /**
   * Guards an encrypted table's storage.
   *
   * @param io the table's storage
   * @param manager the table's, which has the keys of statistics files
   * @param plaintextFiles whether files without keys may be read
   * @param policy what becomes of statistics files
   */
  public KeylessFileIO(
      FileIO io, TableEncryptionManager manager, boolean plaintextFiles, StatisticsPolicy policy) {
    this.tableName = manager.tableName();
    this.io = io;
    this.plaintextFiles = plaintextFiles;
    this.policy = policy;
    this.statistics = new StatisticsFiles(manager);
  }

  /** A FileIO as it is below an encryption manager of Iceberg's. */
  public static FileIO storageBelow(FileIO io) {
    return io instanceof EncryptingFileIO
        ? EncryptingFileIO.combine(io, PlaintextEncryptionManager.instance())
        : io;
  }

  /**
   * Manifest lists and statistics, which Iceberg opens by path, and what is no part of the data.
   */
  @Override
  public InputFile newInputFile(String path) {
    InputFile stored = io.newInputFile(path);
    boolean named = StatisticsFiles.isNamed(path);
    InputFile decrypted = named && statistics != null ? statistics.decrypted(path, stored) : null;
    if (decrypted != null || plaintextFiles) {
      return decrypted != null ? decrypted : stored;
    }

    boolean plaintextStatistics = policy == StatisticsPolicy.PLAINTEXT;
    if (named && !plaintextStatistics) {
      if (statistics == null) {
        throw StatisticsFiles.onDriverOnly(tableName, path);
      }

      return new KeylessInputFile(tableName, stored, KeylessInputFile.NEVER);
    }

    return new KeylessInputFile(tableName, stored, KeylessInputFile.other(plaintextStatistics));
  }

  /** Manifests, data and delete files: their length is known. */
  @Override
  public InputFile newInputFile(String path, long length) {
    InputFile stored = io.newInputFile(path, length);
    return plaintextFiles
        ? stored
        : new KeylessInputFile(tableName, stored, KeylessInputFile.NEVER);
  }

  /**
   * Files of all kinds. Iceberg hands them to the encryption manager before it writes to them, but
   * for statistics and what is no part of the data.
   */
  @Override
  public OutputFile newOutputFile(String path) {
    boolean plaintextStatistics = policy == StatisticsPolicy.PLAINTEXT;
    if (plaintextStatistics || !StatisticsFiles.isNamed(path)) {
      OutputFile stored = io.newOutputFile(path);
      return plaintextFiles
          ? stored
          : new KeylessOutputFile(tableName, stored, KeylessInputFile.other(plaintextStatistics));
    }

    if (policy == StatisticsPolicy.REFUSE) {
      throw StatisticsFiles.refused(tableName, path);
    } else if (statistics == null) {
      throw StatisticsFiles.onDriverOnly(tableName, path);
    }

    return statistics.encrypted(io.newOutputFile(path));
  }

  @Override
  public void deleteFile(String path) {
    io.deleteFile(path);
  }

  @Override
  public Map<String, String> properties() {
    return io.properties();
  }

  @Override
  public void close() {
    io.close();
  }
}
