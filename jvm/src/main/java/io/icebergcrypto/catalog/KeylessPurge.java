package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.MetadataCode.Place;
import java.io.FileNotFoundException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * Drops a table whose key is lost, and deletes its files. Its manifests cannot be read, so nobody
 * can say which files are the table's: all that is in its folders goes, after a look for another
 * table in there.
 */
final class KeylessPurge {
  private static final int LONGEST_LIST = 5;

  private final String tableName;
  private final TableMetadata metadata;
  private final FileIO io;

  /**
   * Says what is to go.
   *
   * @param metadata the table's metadata, as the catalog behind has it
   * @param io the table's storage
   */
  KeylessPurge(String tableName, TableMetadata metadata, FileIO io) {
    this.tableName = tableName;
    this.metadata = metadata;
    this.io = io;
  }

  /**
   * Looks through the table's folders, drops the table, and deletes the folders.
   *
   * @param drop drops the table in the catalog, without its files; false when it was gone
   * @return what was in the folders
   * @throws NotSupportedException when the storage cannot be listed; nothing was dropped then
   * @throws InvalidConfigurationException when the folders hold another table, or are no table's
   *     own; nothing was dropped then
   * @throws IcebergCryptoException when the table was dropped and files remain
   */
  PurgedFiles run(BooleanSupplier drop) {
    if (!metadata.propertyAsBoolean(
        TableProperties.GC_ENABLED, TableProperties.GC_ENABLED_DEFAULT)) {
      throw refused(
          TableProperties.GC_ENABLED + "=false says that its files may be another table's",
          "Use DROP TABLE without PURGE, which needs no key.");
    }

    if (!(io instanceof SupportsPrefixOperations storage)) {
      throw new NotSupportedException(
              String.format(
                  "nothing was dropped: its FileIO (%s) cannot list the files in a folder",
                  io.getClass().getName()),
              "Use DROP TABLE without PURGE, which needs no key, and delete the folder "
                  + metadata.location()
                  + " with the tools of the storage.")
          .inTable(tableName);
    }

    Set<String> folders = folders();
    PurgedFiles found = new PurgedFiles(0, 0);
    for (String folder : folders) {
      found = found.plus(look(storage, folder));
    }

    if (!drop.getAsBoolean()) {
      throw refused("it is gone already", "Somebody else dropped it just now.");
    }

    for (String folder : folders) {
      try {
        storage.deletePrefix(folder + "/");
      } catch (RuntimeException e) {
        throw new IcebergCryptoException(
                String.format("it was dropped, but files remain in %s: %s", folder, e.getMessage()),
                "Delete these folders with the tools of the storage: " + folders + ".",
                e)
            .inTable(tableName);
      }
    }

    return found;
  }

  /** The folders that Iceberg writes a table's files into, none inside another. */
  private Set<String> folders() {
    List<String> all = new ArrayList<>(List.of(metadata.location()));
    Stream.of(
            TableProperties.WRITE_DATA_LOCATION,
            TableProperties.WRITE_METADATA_LOCATION,
            "write.object-storage.path", // names of earlier versions
            "write.folder-storage.path")
        .map(metadata.properties()::get)
        .filter(path -> path != null && !path.isBlank())
        .forEach(all::add);
    all.replaceAll(path -> path.replaceFirst("/+$", ""));
    Set<String> outermost = new TreeSet<>();
    for (String folder : all) {
      if (path(folder).chars().filter(c -> c == '/').count() < 2 || path(folder).contains("/../")) {
        throw refused(
            String.format("'%s' cannot be a table's own folder", folder),
            "Look at the table's location and at write.data.path and write.metadata.path.");
      }

      if (all.stream().noneMatch(other -> isBelow(folder, other))
          && outermost.stream().noneMatch(other -> path(other).equals(path(folder)))) {
        outermost.add(folder);
      }
    }

    return outermost;
  }

  /** Counts what is in a folder, and refuses one in which another table is. */
  private PurgedFiles look(SupportsPrefixOperations storage, String folder) {
    PurgedFiles found = new PurgedFiles(0, 0);
    List<String> foreign = new ArrayList<>();
    for (FileInfo file : files(storage, folder)) {
      if (!isBelow(file.location(), folder)) {
        throw refused(
            String.format("the storage lists %s as a file in %s", file.location(), folder),
            "Use DROP TABLE without PURGE, and delete the table's folder with other tools.");
      }

      found = found.plus(new PurgedFiles(1, file.size()));
      if (file.location().endsWith(".metadata.json") && !isOwn(file.location())) {
        foreign.add(file.location());
      }
    }

    if (!foreign.isEmpty()) {
      throw refused(
          String.format(
              "its folder %s also holds metadata that is not of this table (UUID %s): %s",
              folder, metadata.uuid(), foreign.subList(0, Math.min(LONGEST_LIST, foreign.size()))),
          "Use DROP TABLE without PURGE, which needs no key, and delete what is this table's with"
              + " the tools of the storage.");
    }

    return found;
  }

  private static Iterable<FileInfo> files(SupportsPrefixOperations storage, String folder) {
    return () -> {
      try {
        return storage.listPrefix(folder + "/").iterator();
      } catch (UncheckedIOException e) {
        if (e.getCause() instanceof FileNotFoundException) {
          return List.<FileInfo>of().iterator(); // a folder that nothing was written to
        }

        throw e;
      }
    };
  }

  private boolean isOwn(String metadataFile) {
    try {
      return metadata.uuid().equals(TableMetadataParser.read(io, metadataFile).uuid());
    } catch (RuntimeException e) {
      return false; // a view's, or nobody knows whose
    }
  }

  private static boolean isBelow(String file, String folder) {
    return path(file).startsWith(path(folder) + "/");
  }

  /** A path without scheme, which may be written in several ways. */
  private static String path(String location) {
    return Place.folderOf(location + "/");
  }

  private IcebergCryptoException refused(String problem, String hint) {
    return new InvalidConfigurationException("nothing was dropped: " + problem, hint)
        .inTable(tableName);
  }
}
