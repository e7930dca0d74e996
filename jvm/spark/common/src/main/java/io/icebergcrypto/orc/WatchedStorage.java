package io.icebergcrypto.orc;

import java.io.EOFException;
import java.io.IOException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A file system that keeps what reading from it threw: ORC's own errors about what a file says are
 * of the same classes.
 */
final class WatchedStorage extends FilterFileSystem {
  private volatile IOException failure;

  WatchedStorage(FileSystem storage) {
    super(storage);
  }

  /** Null: no read has failed. */
  IOException failure() {
    return failure;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Watched(watched(() -> super.open(path, bufferSize))));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return watched(() -> super.getFileStatus(path));
  }

  private interface Access<T> {
    T run() throws IOException;
  }

  /** An end that comes too early, or a wrong checksum, is of the file and not of the storage. */
  private <T> T watched(Access<T> access) throws IOException {
    try {
      return access.run();
    } catch (EOFException | ChecksumException e) {
      throw e;
    } catch (IOException e) {
      this.failure = e;
      throw e;
    }
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
