package io.icebergcrypto.catalog;

import io.icebergcrypto.TamperedException;
import java.util.function.Supplier;

/**
 * The hash of metadata.json that Iceberg keeps in the Hive metastore, for encrypted tables: its
 * error names no table, and is given one.
 */
final class MetadataHash {
  private static final String OF_ICEBERG = "might have been modified"; // HMSTablePropertyHelper's

  private MetadataHash() {}

  /**
   * Loads a table or its metadata.
   *
   * @throws TamperedException when the metadata is not what the metastore has the hash of
   */
  static <T> T checked(String tableName, Supplier<T> load) {
    try {
      return load.get();
    } catch (RuntimeException e) {
      boolean differs =
          e.getClass() == RuntimeException.class
              && e.getMessage() != null
              && e.getMessage().contains(OF_ICEBERG);
      if (!differs) {
        throw e;
      }

      throw new TamperedException(
              "its metadata is refused: " + e.getMessage(),
              "Somebody who can write to the storage changed that file, or put another in its"
                  + " place; nothing was read or written. Restore it from a backup or an object"
                  + " version.",
              e)
          .inTable(tableName);
    }
  }
}
