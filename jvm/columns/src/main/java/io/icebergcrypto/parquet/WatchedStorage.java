package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import java.io.EOFException;
import java.io.IOException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A file system through which one file is read. What the storage throws is kept: a format's own
 * errors about what the file says are of the same classes.
 */
public final class WatchedStorage extends FilterFileSystem {
  private volatile IOException failure; // the last one
  private volatile boolean overcome; // the storage has answered since

  /** Watches the reads through a file system. */
  public WatchedStorage(FileSystem storage) {
    super(storage);
  }

  /** A read, or another use of the storage. */
  interface Access<T> {
    /** Makes it. */
    T run() throws IOException;
  }

  /** Makes a read. An end that comes too early, or a wrong checksum, is of the file. */
  <T> T watched(Access<T> access) throws IOException {
    try {
      T answer = access.run();
      this.overcome = true;
      return answer;
    } catch (EOFException | ChecksumException e) {
      throw e;
    } catch (IOException e) {
      this.failure = e;
      this.overcome = false;
      throw e;
    }
  }

  /**
   * The error of the code that made these reads. It is the storage's when the last read failed, or
   * when it was caused by one that did: a reader that tries again and succeeds has met no failure.
   *
   * @param error what the format's own reader threw
   * @param ofStorage makes one of what the storage threw
   * @param ofFile makes one when the error is not the storage's
   */
  public IcebergCryptoException typed(
      Exception error,
      Function<IOException, IcebergCryptoException> ofStorage,
      Supplier<IcebergCryptoException> ofFile) {
    IOException thrown = failure;
    boolean stands = thrown != null && (!overcome || Causes.any(error, e -> e == thrown));
    return Causes.typed(error).orElseGet(() -> stands ? ofStorage.apply(thrown) : ofFile.get());
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Watched(watched(() -> super.open(path, bufferSize))));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return watched(() -> super.getFileStatus(path));
  }

  private final class Watched extends FSInputStream {
    private final FSDataInputStream in;

    private Watched(FSDataInputStream in) {
      this.in = in;
    }

    @Override
    public int read() throws IOException {
      return watched(in::read);
    }

    @Override
    public int read(byte[] bytes, int offset, int count) throws IOException {
      return watched(() -> in.read(bytes, offset, count));
    }

    @Override
    public int read(long position, byte[] bytes, int offset, int count) throws IOException {
      return watched(() -> in.read(position, bytes, offset, count));
    }

    @Override
    public void seek(long position) throws IOException {
      watched(
          () -> {
            in.seek(position);
            return position;
          });
    }

    @Override
    public long getPos() throws IOException {
      return in.getPos();
    }

    @Override
    public boolean seekToNewSource(long position) throws IOException {
      return watched(() -> in.seekToNewSource(position));
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
