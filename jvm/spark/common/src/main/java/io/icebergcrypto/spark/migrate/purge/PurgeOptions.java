package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.List;

/**
 * What the user says about a purge.
 *
 * @param dryRun true: only lists what there is
 * @param folders other folders than the table's own in which it deletes, too
 * @param keep folders of which it deletes nothing: the files there are another table's
 * @param acceptMissing true: it ends even if some of what named old files is missing or damaged
 */
public record PurgeOptions(
    boolean dryRun, List<String> folders, List<String> keep, boolean acceptMissing) {
  /**
   * Checks the folders.
   *
   * @throws InvalidConfigurationException when one is not a folder, or a whole storage
   */
  public PurgeOptions {
    folders = List.copyOf(folders);
    keep = List.copyOf(keep);
    folders.forEach(PurgeOptions::check);
    keep.forEach(PurgeOptions::check);
  }

  /** Two folders deep at least: a bucket, or the root of a file system, is more than a table's. */
  private static void check(String folder) {
    String place = Storage.comparable(folder);
    boolean whole = place.chars().filter(c -> c == '/').count() < 2;
    if (!place.startsWith("/") || whole || (place + "/").contains("/../")) {
      throw new InvalidConfigurationException(
          String.format("'%s' cannot be a folder of a table", folder),
          "Nothing was deleted. Give the whole location of a folder, such as"
              + " 's3://bucket/warehouse/t/data', and not that of a bucket.");
    }
  }
}
