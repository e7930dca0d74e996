package io.icebergcrypto.metadata;

import io.icebergcrypto.NotSupportedException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;

/**
 * Lists folders by locations that the same storage opens. ADLSFileIO lists the names that files
 * have in their container, without scheme and container.
 */
public final class Listing {
  /** What a location has before its path: scheme and, where there is one, host or container. */
  public static final Pattern ROOT = Pattern.compile("^[A-Za-z][A-Za-z0-9+.-]*://[^/]*");

  private static final Pattern SCHEME = Pattern.compile("^[A-Za-z][A-Za-z0-9+.-]*:/");

  private Listing() {}

  /**
   * All files below a folder, each by its location.
   *
   * @param folder its location, with or without a slash at the end
   */
  public static Iterable<FileInfo> below(SupportsPrefixOperations storage, String folder) {
    Matcher root = ROOT.matcher(folder);
    String start = root.find() ? root.group() + "/" : "";
    return Iterables.transform(
        storage.listPrefix(folder.replaceFirst("/*$", "/")),
        file ->
            isLocation(file, start)
                ? file
                : new FileInfo(start + file.location(), file.size(), file.createdAtMillis()));
  }

  /**
   * What a storage lists, for Iceberg, which compares it with a table's files and deletes what is
   * not one of them.
   *
   * @throws NotSupportedException when it lists names that cannot be compared
   */
  public static Iterable<FileInfo> ofLocations(SupportsPrefixOperations storage, String prefix) {
    return Iterables.transform(
        storage.listPrefix(prefix),
        file -> {
          if (!isLocation(file, ROOT.matcher(prefix).find() ? prefix : "")) {
            throw new NotSupportedException(
                String.format(
                    "%s lists the files in %s by names in their container (%s), which Iceberg takes"
                        + " for files of no table; nothing was deleted",
                    storage.getClass().getName(), prefix, file.location()),
                "Call remove_orphan_files without prefix_listing: it then lists by Hadoop's file"
                    + " system for abfss, from hadoop-azure, which needs a login of its own."
                    + " verify_table(strays=True) lists files that no metadata reaches.");
          }

          return file;
        });
  }

  private static boolean isLocation(FileInfo file, String start) {
    return start.isEmpty() || SCHEME.matcher(file.location()).find();
  }
}
