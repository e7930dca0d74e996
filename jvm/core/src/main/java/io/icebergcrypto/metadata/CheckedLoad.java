package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import java.util.function.Supplier;

/**
 * A load of a table, its metadata or a view from the catalog behind, with typed errors: metadata
 * that cannot be read, and what does not match its hash, which is loaded again before.
 *
 * <p>For encrypted tables Iceberg keeps the hash of metadata.json in the Hive metastore, beside the
 * file's name, and compares them on each load.
 *
 * <p>Name and hash are two rows of the metastore's database. One call reads both, but a commit may
 * change them in between: under load, sessions were seen to get those of two commits. So the error
 * of a mismatch is a reason to load again. What does not match is never handed out, and the errors
 * that remain name the table.
 */
public final class CheckedLoad {
  private static final String OF_ICEBERG = "might have been modified"; // HMSTablePropertyHelper's

  /** How long to wait before each further load, in milliseconds. */
  private static final int[] LOOK_AGAIN_MS = {10, 20, 40, 80, 160};

  private CheckedLoad() {}

  /** Loads a table, again when name and hash are of two commits. */
  public static <T> T checked(String tableName, Supplier<T> load) {
    return checked(tableName, load, load);
  }

  /**
   * Loads a table or its metadata.
   *
   * @param again reads both name and hash again
   * @throws TamperedException when the metadata still does not match the metastore's hash after the
   *     last load, or cannot be parsed
   */
  public static <T> T checked(String tableName, Supplier<T> load, Supplier<T> again) {
    for (int loads = 0; ; loads++) {
      try {
        return FailFastFileIO.loading(loads == 0 ? load : again);
      } catch (RuntimeException e) {
        if (!differs(e)) {
          throw typed(tableName, e);
        } else if (loads == LOOK_AGAIN_MS.length) {
          throw tampered(tableName, e);
        }

        pause(LOOK_AGAIN_MS[loads], e);
      }
    }
  }

  private static RuntimeException typed(String tableName, RuntimeException e) {
    IcebergCryptoException unreadable = UnreadableMetadata.in(e);
    return unreadable == null ? e : unreadable.inTable(tableName);
  }

  private static boolean differs(RuntimeException e) {
    return e.getClass() == RuntimeException.class
        && e.getMessage() != null
        && e.getMessage().contains(OF_ICEBERG);
  }

  private static void pause(int ms, RuntimeException reason) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(
          "Interrupted before a second look at metadata whose hash differs", reason);
    }
  }

  private static IcebergCryptoException tampered(String tableName, RuntimeException e) {
    return new TamperedException(
            "its metadata is refused: " + e.getMessage(),
            "Nothing was read or written. Either a client of an Iceberg before 1.11 committed,"
                + " which leaves the hash of the former file; or someone who can write to the"
                + " storage changed this file, or put another in its place. Compare it with the"
                + " file that the metastore's previous_metadata_location names. If they differ by a"
                + " commit that you know, keep it, and remove the table's parameter metadata_hash"
                + " in the metastore: the next commit writes it again. Otherwise restore the file"
                + " from a backup or an object version.",
            e)
        .inTable(tableName);
  }
}
