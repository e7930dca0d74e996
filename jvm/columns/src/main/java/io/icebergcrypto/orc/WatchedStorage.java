package io.icebergcrypto.orc;

import io.icebergcrypto.parquet.WatchedReads;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/** A file system whose reads are watched. */
final class WatchedStorage extends FilterFileSystem {
  private final WatchedReads reads = new WatchedReads();

  WatchedStorage(FileSystem storage) {
    super(storage);
  }

  WatchedReads reads() {
    return reads;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Watched(reads.watched(() -> super.open(path, bufferSize))));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return reads.watched(() -> super.getFileStatus(path));
  }

  private final class Watched extends FSInputStream {
    private final FSDataInputStream in;

    private Watched(FSDataInputStream in) {
      this.in = in;
    }

    @Override
    public int read() throws IOException {
      return reads.watched(in::read);
    }

    @Override
    public int read(byte[] bytes, int offset, int count) throws IOException {
      return reads.watched(() -> in.read(bytes, offset, count));
    }

    @Override
    public int read(long position, byte[] bytes, int offset, int count) throws IOException {
      return reads.watched(() -> in.read(position, bytes, offset, count));
    }

    @Override
    public void seek(long position) throws IOException {
      reads.watched(
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
      return reads.watched(() -> in.seekToNewSource(position));
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
