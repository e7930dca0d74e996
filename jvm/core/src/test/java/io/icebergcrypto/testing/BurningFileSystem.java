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
  private static final String OPENED = "fs.burning.opened";

  private int left;

  /** Where a file is; the next {@code opened} files that are opened can be read. */
  public static String location(Path file, int opened, Configuration conf) {
    conf.setClass("fs.burning.impl", BurningFileSystem.class, FileSystem.class);
    conf.setBoolean("fs.burning.impl.disable.cache", true);
    conf.setInt(OPENED, opened);
    return "burning:" + file;
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    this.left = conf.getInt(OPENED, 0);
  }

  @Override
  public URI getUri() {
    return URI.create("burning:///");
  }

  @Override
  public FSDataInputStream open(org.apache.hadoop.fs.Path path, int bufferSize)
      throws IOException {
    return left-- > 0 ? super.open(path, bufferSize) : new FSDataInputStream(new OnFire());
  }

  private static final class OnFire extends FSInputStream {
    @Override
    public int read() throws IOException {
      throw new IOException("the disk is on fire");
    }

    @Override
    public void seek(long position) {
      // wherever it is
    }

    @Override
    public long getPos() {
      return 0;
    }

    @Override
    public boolean seekToNewSource(long position) {
      return false;
    }
  }
}
