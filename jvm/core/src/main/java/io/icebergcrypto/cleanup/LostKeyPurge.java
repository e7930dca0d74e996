package io.icebergcrypto.cleanup;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.metadata.MetadataPlace;
import java.io.FileNotFoundException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * Drops a table whose key is lost, and deletes its files. Its manifests cannot be read, so nobody
 * can say which files are the table's: all that is in its location goes, after a look for another
 * table in there.
 */
public final class LostKeyPurge {
  private static final int LONGEST_LIST = 5;
  private static final Pattern AUTHORITY = Pattern.compile("^[A-Za-z][A-Za-z0-9+.-]*://[^/]*");
  private static final Pattern METADATA = Pattern.compile("\\.metadata\\.json(\\.gz)?$");

  private final String tableName;
  private final TableMetadata metadata;
  private final FileIO io;

  /**
   * Says what is to go.
   *
   * @param metadata the table's metadata, as the catalog behind has it
   * @param io the table's storage
   */
  LostKeyPurge(String tableName, TableMetadata metadata, FileIO io) {
    this.tableName = tableName;
    this.metadata = metadata;
    this.io = io;
  }

  /**
   * Looks through the table's location, drops the table, and deletes the location.
   *
   * @param drop drops the table in the catalog, without its files; false when it was gone
   * @return what was in there
   * @throws NotSupportedException when the storage cannot be listed; nothing was dropped then
   * @throws InvalidConfigurationException when the location holds another table, or is no table's
   *     own; nothing was dropped then
   * @throws IcebergCryptoException when the table was dropped and files remain, or when its
   *     location cannot be listed; nothing was dropped then
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

    String folder = folder();
    PurgedFiles found;
    try {
      found = look(storage, folder);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw unlisted(folder, e);
    }

    if (!drop.getAsBoolean()) {
      throw refused("it is gone already", "Somebody else dropped it just now.");
    }

    try {
      storage.deletePrefix(folder + "/");
    } catch (RuntimeException e) {
      throw remains(folder, e.getMessage(), e);
    }

    if (files(storage, folder).iterator().hasNext()) { // a FileIO may be told to delete nothing
      throw remains(folder, "its FileIO deletes none, or somebody has written to it since", null);
    }

    return found;
  }

  private IcebergCryptoException unlisted(String folder, RuntimeException e) {
    return new IcebergCryptoException(
            String.format(
                "nothing was dropped: its folder %s cannot be listed: %s", folder, e.getMessage()),
            "Check that this client may list the folder. DROP TABLE without PURGE needs no list,"
                + " and leaves the files.",
            e)
        .inTable(tableName);
  }

  private IcebergCryptoException remains(String folder, String why, RuntimeException e) {
    return new IcebergCryptoException(
            String.format("it was dropped, but files remain in %s: %s", folder, why),
            "Delete this folder with the tools of the storage.",
            e)
        .inTable(tableName);
  }

  /** The table's location. */
  private String folder() {
    String folder = withoutSlash(metadata.location());
    if (path(folder).chars().filter(c -> c == '/').count() < 2 || path(folder).contains("/../")) {
      throw refused(
          String.format("'%s' cannot be a table's own folder", folder),
          "Look at the table's location.");
    }

    return folder;
  }

  /** The folders elsewhere that Iceberg may have written to. Other tables may write there, too. */
  private List<String> elsewhere(String folder) {
    return Stream.of(
            TableProperties.WRITE_DATA_LOCATION,
            TableProperties.WRITE_METADATA_LOCATION,
            "write.object-storage.path", // names of earlier versions
            "write.folder-storage.path")
        .map(metadata.properties()::get)
        .filter(path -> path != null && !path.isBlank())
        .map(LostKeyPurge::withoutSlash)
        .filter(path -> !isBelow(path, folder))
        .distinct()
        .toList();
  }

  private static String withoutSlash(String folder) {
    return folder.replaceFirst("/+$", "");
  }

  /** Counts what is in a folder, and refuses one in which another table is. */
  private PurgedFiles look(SupportsPrefixOperations storage, String folder) {
    long files = 0;
    long bytes = 0;
    List<String> foreign = new ArrayList<>();
    for (FileInfo file : files(storage, folder)) {
      if (!isBelow(file.location(), folder)) {
        throw refused(
            String.format("the storage lists %s as a file in %s", file.location(), folder),
            "Use DROP TABLE without PURGE, and delete the table's folder with other tools.");
      }

      files++;
      bytes += file.size();
      if (METADATA.matcher(file.location()).find() && !isOwn(file.location())) {
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

    return new PurgedFiles(files, bytes, elsewhere(folder));
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
    boolean logged =
        metadata.previousFiles().stream().anyMatch(entry -> entry.file().equals(metadataFile));
    if (logged || metadataFile.equals(metadata.metadataFileLocation())) {
      return true;
    }

    try {
      return metadata.uuid().equals(TableMetadataParser.read(io, metadataFile).uuid());
    } catch (RuntimeException e) {
      return false; // a view's, or nobody knows whose
    }
  }

  private static boolean isBelow(String file, String folder) {
    // a location without scheme and host is listed with those of the default file system
    String comparable = folder.startsWith("/") ? AUTHORITY.matcher(file).replaceFirst("") : file;
    return path(comparable).startsWith(path(folder) + "/");
  }

  /** A path without scheme, which may be written in several ways. */
  private static String path(String location) {
    return MetadataPlace.folderOf(location + "/");
  }

  private IcebergCryptoException refused(String problem, String hint) {
    return new InvalidConfigurationException("nothing was dropped: " + problem, hint)
        .inTable(tableName);
  }
}
