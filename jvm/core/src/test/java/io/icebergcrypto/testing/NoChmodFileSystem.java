package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;

/**
 * Hadoop's local files, with permissions that Java sets: without its native library Hadoop starts a
 * process, chmod, for each file and folder that it makes, which takes a third of a test's time.
 */
public final class NoChmodFileSystem extends LocalFileSystem {
  /** System property: the names of files that cannot be read, as root can read all. */
  public static final String DENIED = "io.icebergcrypto.testing.denied";

  private static volatile Meeting meeting = new Meeting("/", 0); // no name ends so

  /** Made by Hadoop. */
  public NoChmodFileSystem() {
    super(new Raw());
  }

  /** Makes it the one of local paths. */
  public static void setIn(Configuration conf) {
    conf.setClass("fs.file.impl", NoChmodFileSystem.class, FileSystem.class);
  }

  /** Opens nothing whose name ends so, from now on, until as many are to be opened at a time. */
  public static void meet(String suffix, int count) {
    meeting = new Meeting(suffix, count);
  }

  /** How many such files were opened since then. */
  public static int met() {
    return meeting.opened.get();
  }

  private record Meeting(String suffix, CountDownLatch all, AtomicInteger opened) {
    private Meeting(String suffix, int count) {
      this(suffix, new CountDownLatch(count), new AtomicInteger());
    }

    private void join(Path path) throws IOException {
      if (!path.getName().endsWith(suffix)) {
        return;
      }

      opened.incrementAndGet();
      all.countDown();
      try {
        if (!all.await(20, TimeUnit.SECONDS)) {
          throw new IOException("the others did not come");
        }
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
    }
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
      if (List.of(System.getProperty(DENIED, "").split(",")).contains(path.getName())) {
        throw new AccessControlException("Permission denied: " + path);
      }

      meeting.join(path);
      return super.open(path, bufferSize);
    }

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      String symbols =
          permission.getUserAction().SYMBOL
              + permission.getGroupAction().SYMBOL
              + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(symbols));
    }
  }
}
