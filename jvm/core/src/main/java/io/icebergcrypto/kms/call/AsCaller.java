package io.icebergcrypto.kms.call;

import java.io.IOException;
import java.security.PrivilegedAction;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.iceberg.util.ThreadPools;

/**
 * Work on other threads as the user of the thread that asks for it, with its class loader. A thread
 * of a pool is any user's: one of a Thrift server that impersonates its users, say, would read
 * another's files, or ask the KMS with another's login.
 */
public final class AsCaller {
  private static final int MAX_THREADS = 16;

  private static final ThreadPoolExecutor AHEAD =
      new ThreadPoolExecutor(
          0,
          MAX_THREADS,
          10,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          new DaemonThreads("iceberg-crypto-kms-ahead"),
          new ThreadPoolExecutor.DiscardPolicy());

  private AsCaller() {}

  /**
   * Begins work before anyone needs it, on threads that are there for that, unless as much is under
   * way as there are threads: then nothing is done.
   */
  public static void ahead(Runnable work) {
    AHEAD.execute(bound(work));
  }

  /** Iceberg's pool of workers. It cannot be shut down by this. */
  public static ExecutorService workers() {
    return new Bound(ThreadPools.getWorkerPool(), false);
  }

  /** Threads for one piece of work, which shuts them down. */
  public static ExecutorService threads(String name, int count) {
    return new Bound(ThreadPools.newFixedThreadPool(name, count), true);
  }

  /** The work as this thread would do it. */
  public static Runnable bound(Runnable work) {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Runnable asUser = asUser(work);
    return () ->
        DaemonThreads.withLoader(
            loader,
            () -> {
              asUser.run();
              return null;
            });
  }

  private static Runnable asUser(Runnable work) {
    return user().map(user -> HadoopUser.bound(user, work)).orElse(work);
  }

  /** The user of this thread; empty without Hadoop, or a login: then there is one for all. */
  public static Optional<Object> user() {
    try {
      return Optional.of(HadoopUser.current());
    } catch (LinkageError | IOException e) {
      return Optional.empty();
    }
  }

  /** A class of its own, as Hadoop may be absent. */
  private static final class HadoopUser {
    static Object current() throws IOException {
      return UserGroupInformation.getCurrentUser();
    }

    static Runnable bound(Object user, Runnable work) {
      return () ->
          ((UserGroupInformation) user)
              .doAs(
                  (PrivilegedAction<Void>)
                      () -> {
                        work.run();
                        return null;
                      });
    }
  }

  /** The tasks of another pool, as the users of those who submit them. */
  private static final class Bound extends AbstractExecutorService {
    private final ExecutorService pool;
    private final boolean own;

    private Bound(ExecutorService pool, boolean own) {
      this.pool = pool;
      this.own = own;
    }

    @Override
    public void execute(Runnable work) {
      pool.execute(bound(work));
    }

    @Override
    public void shutdown() {
      if (own) { // others use Iceberg's
        pool.shutdown();
      }
    }

    @Override
    public List<Runnable> shutdownNow() {
      return List.of();
    }

    @Override
    public boolean isShutdown() {
      return pool.isShutdown();
    }

    @Override
    public boolean isTerminated() {
      return pool.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
      return pool.awaitTermination(timeout, unit);
    }
  }
}
