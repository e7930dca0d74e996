package io.icebergcrypto.manager;

import java.util.Map;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.io.DelegateFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * The storage of an encrypted table below Iceberg's EncryptingFileIO, which hands a file without a
 * key on to it and reads plaintext. Here such a file can be named, measured and deleted, but not
 * read. Files with a key come by here, too: {@link TableEncryptionManager} takes them out again.
 */
public class KeylessFileIO implements FileIO {
  private static final long serialVersionUID = 1L;

  private final String tableName;
  private final FileIO io;
  private final boolean plaintextStatistics;

  private KeylessFileIO(String tableName, FileIO io, boolean plaintextStatistics) {
    this.tableName = tableName;
    this.io = io;
    this.plaintextStatistics = plaintextStatistics;
  }

  /**
   * Guards an encrypted table's storage.
   *
   * @param tableName the table's full name, for errors
   * @param io the table's storage, or a FileIO of another encryption manager over it
   * @param plaintextStatistics whether statistics files, which have no keys, may be read
   */
  public static FileIO guard(String tableName, FileIO io, boolean plaintextStatistics) {
    FileIO storage =
        io instanceof EncryptingFileIO
            ? EncryptingFileIO.combine(io, PlaintextEncryptionManager.instance())
            : io;
    if (storage instanceof DelegateFileIO delegate) {
      return new WithDelegate(tableName, delegate, plaintextStatistics);
    }

    return storage instanceof SupportsPrefixOperations prefix
        ? new WithPrefix(tableName, prefix, plaintextStatistics)
        : new KeylessFileIO(tableName, storage, plaintextStatistics);
  }

  /** Manifest lists, which Iceberg opens by path alone, and files that are no part of the data. */
  @Override
  public InputFile newInputFile(String path) {
    return new KeylessInputFile(
        tableName, io.newInputFile(path), KeylessInputFile.other(plaintextStatistics));
  }

  /** Manifests, data and delete files: their length is known. */
  @Override
  public InputFile newInputFile(String path, long length) {
    return new KeylessInputFile(tableName, io.newInputFile(path, length), KeylessInputFile.NEVER);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return io.newOutputFile(path);
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

  private static class WithPrefix extends KeylessFileIO implements SupportsPrefixOperations {
    private static final long serialVersionUID = 1L;

    private final SupportsPrefixOperations io;

    private WithPrefix(String tableName, SupportsPrefixOperations io, boolean plaintextStatistics) {
      super(tableName, io, plaintextStatistics);
      this.io = io;
    }

    @Override
    public Iterable<FileInfo> listPrefix(String prefix) {
      return io.listPrefix(prefix);
    }

    @Override
    public void deletePrefix(String prefix) {
      io.deletePrefix(prefix);
    }
  }

  private static final class WithDelegate extends WithPrefix implements DelegateFileIO {
    private static final long serialVersionUID = 1L;

    private final DelegateFileIO io;

    private WithDelegate(String tableName, DelegateFileIO io, boolean plaintextStatistics) {
      super(tableName, io, plaintextStatistics);
      this.io = io;
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      io.deleteFiles(paths);
    }
  }
}
