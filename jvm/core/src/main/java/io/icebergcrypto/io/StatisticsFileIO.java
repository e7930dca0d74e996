package io.icebergcrypto.io;

import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.metadata.forwarding.ForwardingFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Encrypts and decrypts statistics files, which Iceberg opens by path as if they had no key, and
 * leaves all others to the {@link PlaintextGuard} below. On executors, where Iceberg opens no
 * statistics, they are refused.
 */
public final class StatisticsFileIO implements ForwardingFileIO {
  private static final long serialVersionUID = 1L;

  private final PlaintextGuard guard;
  private final StatisticsPolicy policy;
  // transient: the manager travels to executors with TableFileIO, and once is enough
  private final transient StatisticsFiles statistics;

  private StatisticsFileIO(
      PlaintextGuard guard, TableEncryptionManager manager, StatisticsPolicy policy) {
    this.guard = guard;
    this.policy = policy;
    this.statistics = new StatisticsFiles(manager);
  }

  /**
   * An encrypted table's storage, guarded against plaintext files and with encrypted statistics.
   *
   * @param storage the table's storage
   * @param manager the table's, which has the keys of statistics files
   * @param plaintextFiles whether plaintext files may be read and written
   * @param filesWithoutLength whether encrypted files may be read of which only the storage tells
   *     how long they are
   * @param policy what becomes of statistics files
   */
  public static FileIO guarded(
      FileIO storage,
      TableEncryptionManager manager,
      boolean plaintextFiles,
      boolean filesWithoutLength,
      StatisticsPolicy policy) {
    boolean plaintextStatistics = policy == StatisticsPolicy.PLAINTEXT;
    PlaintextGuard guard =
        new PlaintextGuard(
            manager.tableName(), storage, plaintextFiles, plaintextStatistics, filesWithoutLength);
    return new StatisticsFileIO(guard, manager, policy);
  }

  @Override
  public FileIO under() {
    return guard;
  }

  @Override
  public InputFile newInputFile(String path) {
    if (!StatisticsFiles.isNamed(path)) {
      return guard.newInputFile(path);
    }

    InputFile stored =
        policy == StatisticsPolicy.PLAINTEXT
            ? guard.newInputFile(path)
            : guard.newEncryptedInputFile(path);
    InputFile decrypted = statistics == null ? null : statistics.decrypted(path, stored);
    boolean plaintext = policy == StatisticsPolicy.PLAINTEXT || guard.plaintextFiles();
    if (statistics == null && !plaintext) {
      throw StatisticsFiles.onDriverOnly(guard.tableName(), path);
    }

    return decrypted == null ? stored : decrypted;
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return guard.newInputFile(path, length);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    if (policy == StatisticsPolicy.PLAINTEXT || !StatisticsFiles.isNamed(path)) {
      return guard.newOutputFile(path);
    } else if (policy == StatisticsPolicy.REFUSE) {
      throw StatisticsFiles.refused(guard.tableName(), path);
    } else if (statistics == null) {
      throw StatisticsFiles.onDriverOnly(guard.tableName(), path);
    }

    return statistics.encrypted(guard.newOutputFile(path));
  }
}
