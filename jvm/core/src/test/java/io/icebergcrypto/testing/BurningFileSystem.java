package io.icebergcrypto.testing;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Local files on a disk that catches fire: from then on no byte can be read. */
public final class BurningFileSystem extends RawLocalFileSystem {
  private static final String READS = "fs.burning.reads";

  private int left;

  /** Where a local file is on that disk, of which the next reads succeed, and no more. */
  public static String location(Path file, int reads, Configuration conf) {
    conf.setClass("fs.burning.impl", BurningFileSystem.class, FileSystem.class);
    conf.setBoolean("fs.burning.impl.disable.cache", true);
    conf.setInt(READS, reads);
    return "burning:" + file;
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    this.left = conf.getInt(READS, 0);
  }

  @Override
  public URI getUri() {
    return URI.create("burning:///");
  }

  @Override
  public FSDataInputStream open(org.apache.hadoop.fs.Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Burning(super.open(path, bufferSize)));
  }

  private final class Burning extends FSInputStream {
    private final FSDataInputStream in;

    private Burning(FSDataInputStream in) {
      this.in = in;
    }

    private void burn() throws IOException {
      if (left-- <= 0) {
        throw new IOException("the disk is on fire");
      }
    }

    @Override
    public int read() throws IOException {
      burn();
      return in.read();
    }

    @Override
    public int read(byte[] bytes, int offset, int count) throws IOException {
      burn();
      return in.read(bytes, offset, count);
    }

    @Override
    public void seek(long position) throws IOException {
      in.seek(position);
    }

    @Override
    public long getPos() throws IOException {
      return in.getPos();
    }

    @Override
    public boolean seekToNewSource(long position) throws IOException {
      return in.seekToNewSource(position);
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
