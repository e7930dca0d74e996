package io.icebergcrypto.testing;

import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * Hadoop's local files, with permissions that Java sets: without its native library Hadoop starts a
 * process, chmod, for each file and folder that it makes, which takes a third of a test's time.
 */
public final class NoChmodFileSystem extends LocalFileSystem {
  /** System property: the names of files that cannot be read, as root can read all. */
  public static final String DENIED = "io.icebergcrypto.testing.denied";

  private static final String NO_SPACE = "No space left on device";

  private static final Set<String> KEPT = ConcurrentHashMap.newKeySet();

  private static volatile FailingDeletes fails = new FailingDeletes("", new AtomicInteger());
  private static volatile Meeting meeting = new Meeting("/", 0); // no name ends so
  private static volatile Held held = new Held(Kind.CREATE, "/", "/", 0);

  /** Made by Hadoop. */
  public NoChmodFileSystem() {
    super(new Raw());
  }

  /** Makes it the one of local paths, whatever file system another test has left in the cache. */
  public static void setIn(Configuration conf) {
    conf.setClass("fs.file.impl", NoChmodFileSystem.class, FileSystem.class);
    conf.setBoolean("fs.file.impl.disable.cache", true);
  }

  /** Opens nothing whose name ends so, from now on, until as many are to be opened at a time. */
  public static void meet(String suffix, int count) {
    meeting = new Meeting(suffix, count);
  }

  /** How many such files were opened since then. */
  public static int met() {
    return meeting.opened.get();
  }

  /**
   * Holds one of the files that are created below a folder from now on.
   *
   * @param suffix how the names end of those that are counted
   * @param number which of them, from 1
   */
  public static void hold(String folder, String suffix, int number) {
    held = new Held(Kind.CREATE, folder, suffix, number);
  }

  /** The same once that file is whole, no matter what interrupts its writer. */
  public static void holdWhole(String folder, String suffix, int number) {
    held = new Held(Kind.CLOSE, folder, suffix, number);
  }

  /** Holds one that is opened, which can be read even if it is deleted by then. */
  public static void holdOpened(String folder, String suffix, int number) {
    held = new Held(Kind.OPEN, folder, suffix, number);
  }

  /** Waits for that file; false: it does not come. */
  public static boolean awaitHeld() throws InterruptedException {
    Held awaited = held;
    return awaited.come.await(60, TimeUnit.SECONDS) && awaited.counted.get() >= awaited.number;
  }

  /** The file that is held goes on, and those that come later are counted, too. */
  public static void release() {
    Held released = held;
    released.come.countDown();
    released.released.countDown();
  }

  /** How many such files there were since the hold began. */
  public static int counted() {
    return held.counted.get();
  }

  /** From now on some deletes below a folder fail, each of which may be tried again. */
  public static void failDeletes(String folder, int times) {
    fails = new FailingDeletes(folder, new AtomicInteger(times));
  }

  /** Says once of each of these files that it was deleted, and keeps it. */
  public static void keepOnce(List<String> names) {
    KEPT.addAll(names);
  }

  /** How many of them are yet to be deleted for the first time. */
  public static int keeps() {
    return KEPT.size();
  }

  /** The storage is well again. */
  public static void heal() {
    fails = new FailingDeletes("", new AtomicInteger());
    KEPT.clear();
  }

  private record FailingDeletes(String folder, AtomicInteger left) {
    private boolean meet(Path path) {
      return path.toUri().getPath().startsWith(folder)
          && !path.getName().startsWith(".") // bookkeeping, which Hadoop's catalog deletes, too
          && !path.getName().startsWith("version-hint")
          && left.getAndDecrement() > 0;
    }
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

  /**
   * One of the files that are created, closed or opened; come: it is there; released: it need not
   * wait.
   */
  private record Held(
      Kind kind,
      String folder,
      String suffix,
      int number,
      AtomicInteger counted,
      CountDownLatch come,
      CountDownLatch released) {
    private Held(Kind kind, String folder, String suffix, int number) {
      this(
          kind,
          folder,
          suffix,
          number,
          new AtomicInteger(),
          new CountDownLatch(1),
          new CountDownLatch(1));
    }

    private void pass(Kind now, Path path) throws IOException {
      if (now != kind
          || !path.getName().endsWith(suffix)
          || !path.toUri().getPath().startsWith(folder)
          || counted.incrementAndGet() != number) {
        return;
      }

      come.countDown();
      try {
        await();
      } catch (InterruptedException e) {
        if (kind == Kind.CREATE) {
          throw new IOException(e);
        }

        awaitInterrupted();
      }
    }

    private void await() throws IOException, InterruptedException {
      if (!released.await(90, TimeUnit.SECONDS)) {
        throw new IOException("nobody released it");
      }
    }

    private void awaitInterrupted() throws IOException {
      try {
        await();
      } catch (InterruptedException e) {
        throw new IOException(e);
      } finally {
        Thread.currentThread().interrupt();
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
      FSDataInputStream opened = call(Kind.OPEN, path, () -> super.open(path, bufferSize));
      held.pass(Kind.OPEN, path);
      return opened;
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
      if (fails.meet(path)) {
        throw new IOException("503 Slow Down");
      } else if (KEPT.remove(path.getName())) {
        return true;
      }

      return call(Kind.DELETE, path, () -> super.delete(path, recursive));
    }

    /** What all files are created by: {@link LocalFileSystem} gives each its permission. */
    @Override
    public FSDataOutputStream create(
        Path path,
        FsPermission permission,
        boolean overwrite,
        int bufferSize,
        short replication,
        long blockSize,
        Progressable progress)
        throws IOException {
      held.pass(Kind.CREATE, path);
      return call(
          Kind.CREATE,
          path,
          () ->
              new Created(
                  path,
                  super.create(
                      path, permission, overwrite, bufferSize, replication, blockSize, progress)));
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
      return call(Kind.RENAME, to, () -> !isCommitted(to) && super.rename(from, to));
    }

    /** As on HDFS, and other than on local files, a commit replaces no other. */
    private boolean isCommitted(Path path) {
      return path.getName().endsWith(".metadata.json") && pathToFile(path).exists();
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      return call(Kind.LIST, path, () -> super.listStatus(path));
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

  private static <T> T call(Kind kind, Path path, NumberedCalls.Call<T, IOException> call)
      throws IOException {
    return NumberedCalls.ofFile(
        kind,
        path.toUri().getPath(),
        call,
        (fault, text) ->
            switch (fault) {
              case EXPIRED -> new AccessControlException("the token has expired");
              case FULL -> new IOException(NO_SPACE);
              default -> new IOException(text);
            });
  }

  /** A file is whole once it is closed. */
  private static final class Created extends FSDataOutputStream {
    private final Path path;

    private Created(Path path, FSDataOutputStream file) throws IOException {
      super(file, null);
      this.path = path;
    }

    @Override
    public void write(int b) throws IOException {
      checkRoom();
      super.write(b);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      checkRoom();
      super.write(bytes, offset, length);
    }

    private void checkRoom() throws IOException {
      if (!NumberedCalls.hasRoom()) {
        throw new IOException(NO_SPACE);
      }
    }

    @Override
    public void close() throws IOException {
      call(
          Kind.CLOSE,
          path,
          () -> {
            super.close();
            return null;
          });
      held.pass(Kind.CLOSE, path);
    }
  }
}
