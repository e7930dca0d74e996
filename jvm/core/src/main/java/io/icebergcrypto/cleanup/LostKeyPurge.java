package io.icebergcrypto.cleanup;

import dev.failsafe.Failsafe;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * Drops a table whose master key is lost, and deletes its files. Its manifests cannot be read, so
 * nothing tells which files are the table's: all that is in its location before the drop goes,
 * after a look for another table in there.
 *
 * @param metadata the table's metadata, as the catalog behind has it
 * @param io the table's storage
 */
record LostKeyPurge(String tableName, TableMetadata metadata, FileIO io) {
  /**
   * Looks through the table's location, drops the table, and deletes the location.
   *
   * @param drop drops the table in the catalog, without its files; false when it was gone
   * @return what was in there
   * @throws NotSupportedException when the storage cannot be listed; nothing was dropped then
   * @throws InvalidConfigurationException when the location holds another table, or is not that of
   *     a table own; nothing was dropped then
   * @throws IcebergCryptoException when the table was dropped and files remain, or when its
   *     location cannot be listed or metadata in it cannot be read; nothing was dropped then
   */
  PurgeResult run(BooleanSupplier drop) {
    try {
      return purge(drop);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  private PurgeResult purge(BooleanSupplier drop) {
    if (!(io instanceof SupportsPrefixOperations storage)) {
      throw new NotSupportedException(
          String.format(
              "nothing was dropped: its FileIO (%s) cannot list the files in a folder",
              io.getClass().getName()),
          "Use DROP TABLE without PURGE, which needs no key. Its files are in "
              + metadata.location()
              + ".");
    }

    TableFolder folder = new TableFolder(metadata, storage);
    PurgeResult found;
    try {
      found = folder.count();
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new IcebergCryptoException(
          String.format(
              "nothing was dropped: its folder %s cannot be listed: %s",
              folder.path(), e.getMessage()),
          "Check that this client may list the folder. DROP TABLE without PURGE needs no"
              + " list.",
          e);
    }

    if (!drop.getAsBoolean()) {
      throw new InvalidConfigurationException(
          "nothing was dropped: it no longer exists", "Another client just dropped it.");
    }

    delete(folder);
    return found;
  }

  private static void delete(TableFolder folder) {
    Map<String, String> failed = new HashMap<>();
    TableFolder.Left left;
    try {
      // of errors, only a listing's are tried again here
      Failsafe.with(ProvenDeletion.RETRY).run(() -> failed.putAll(folder.delete()));
      left = folder.left();
    } catch (RuntimeException e) {
      throw remains(folder, e.getMessage(), "", e);
    }

    if (left.counted() != null) { // a FileIO may be told to delete nothing
      String why = failed.getOrDefault(left.counted(), "its FileIO has not deleted it");
      throw remains(folder, left.counted() + ": " + why, "", null);
    }

    if (!left.newer().isEmpty()) {
      throw remains(
          folder,
          "they are newer, so another client has written them since: " + left.newer(),
          "If a new table was made there, they are its files, and nothing is to be done. Otherwise:"
              + " ",
          null);
    }
  }

  private static IcebergCryptoException remains(
      TableFolder folder, String why, String otherwise, RuntimeException e) {
    return new IcebergCryptoException(
        String.format("it was dropped, but files remain in %s: %s", folder.path(), why),
        otherwise
            + "Look at what is left: what belongs to no other table can be deleted with the"
            + " storage's own tools.",
        e);
  }
}
