package io.icebergcrypto.cleanup;

import dev.failsafe.Failsafe;
import dev.failsafe.RetryPolicy;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.Causes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.apache.iceberg.util.Tasks;

/**
 * Deletes files, looks whether they are gone, and tries those again that are not: a FileIO may fail
 * for some files of many, or delete none without an error.
 */
public final class ProvenDeletion {
  /** How many files are deleted by one call of the storage, and looked at after that. */
  static final int AT_ONCE = 1000;

  private static final String SAYS_NOTHING =
      "the storage silently deletes nothing (s3.delete-enabled=false, for example)";

  /** Of what throws, or returns which files are left. */
  static final RetryPolicy<Object> RETRY =
      RetryPolicy.builder()
          .handle(RuntimeException.class)
          .handleResultIf(left -> left instanceof Map<?, ?> files && !files.isEmpty())
          .withMaxAttempts(4)
          .withBackoff(Duration.ofMillis(200), Duration.ofSeconds(5))
          .withJitter(0.25)
          .build();

  private final FileIO io;
  private final boolean looks;

  /**
   * Deletes with up to four attempts.
   *
   * @param io deletes, many at once if it can
   */
  public ProvenDeletion(FileIO io) {
    this(io, true);
  }

  private ProvenDeletion(FileIO io, boolean looks) {
    this.io = io;
    this.looks = looks;
  }

  /**
   * Deletes files in folders that the caller lists afterwards, which shows those that are left. So
   * this looks at one of a thousand that the storage deleted without an error, and at each of them
   * only if that one is left, or if there was an error.
   *
   * @param io deletes, many at once if it can
   */
  public static ProvenDeletion beforeListing(FileIO io) {
    return new ProvenDeletion(io, false);
  }

  /**
   * Deletes files. Those that are gone already count as deleted. When of a thousand not one could
   * be deleted, the others are not tried.
   *
   * @return those that are not known to be gone, and why
   */
  public Map<String, String> delete(Iterator<String> paths) {
    Map<String, String> left = new ConcurrentHashMap<>();
    boolean tried = true;
    while (paths.hasNext()) {
      List<String> some = new ArrayList<>();
      while (paths.hasNext() && some.size() < AT_ONCE) {
        some.add(paths.next());
      }

      Map<String, String> failed = tried ? deleted(some) : Map.of();
      left.putAll(failed);
      if (!tried) {
        some.forEach(path -> left.put(path, "it was not tried, because all before it failed"));
      }

      tried = tried && failed.size() < some.size();
    }

    return left;
  }

  private Map<String, String> deleted(Collection<String> paths) {
    Map<String, String> left = new ConcurrentHashMap<>();
    paths.forEach(path -> left.put(path, SAYS_NOTHING));
    boolean[] again = {false};
    Failsafe.with(RETRY)
        .get(
            () -> {
              boolean isProven = false;
              if (io instanceof SupportsBulkOperations bulk && !again[0] && left.size() > 1) {
                String one = paths.iterator().next();
                isProven = deleteAtOnce(bulk, left) && !looks && isGone(left, one);
              } else { // its errors tell which file and why
                each(left, this::deleteOne);
              }

              again[0] = true;
              if (isProven) {
                left.clear();
              }

              each(left, this::isGone);
              return left;
            });
    return left;
  }

  private interface Step {
    void run(Map<String, String> left, String path);
  }

  private static void each(Map<String, String> left, Step step) {
    Tasks.foreach(List.copyOf(left.keySet()))
        .executeWith(AsCaller.workers())
        .run(path -> step.run(left, path));
  }

  /** False when there was an error. */
  private static boolean deleteAtOnce(SupportsBulkOperations bulk, Map<String, String> left) {
    try {
      bulk.deleteFiles(List.copyOf(left.keySet()));
      return true;
    } catch (RuntimeException e) {
      left.replaceAll((path, why) -> Causes.innermostMessage(e));
      return false;
    }
  }

  private void deleteOne(Map<String, String> left, String path) {
    try {
      left.put(path, SAYS_NOTHING);
      io.deleteFile(path);
    } catch (NotFoundException e) {
      // isGone tells
    } catch (RuntimeException e) {
      left.put(path, Causes.innermostMessage(e));
    }
  }

  private boolean isGone(Map<String, String> left, String path) {
    try {
      if (!io.newInputFile(path).exists()) {
        left.remove(path);
        return true;
      }
    } catch (RuntimeException e) {
      left.put(path, "it is not known whether it is gone: " + Causes.innermostMessage(e));
    }

    return false;
  }
}
