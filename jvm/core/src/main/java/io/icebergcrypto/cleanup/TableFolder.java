package io.icebergcrypto.cleanup;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.Listing;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import java.io.FileNotFoundException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.apache.iceberg.util.Tasks;

/** The folder that is a table's location, before the table is dropped. */
final class TableFolder {
  private static final int LONGEST_LIST = 5;
  private static final long CLOCK_SKEW_MILLIS = 60_000;
  private static final Pattern METADATA = Pattern.compile("\\.metadata\\.json(\\.gz)?$");

  /** The logs of Delta and Hudi tables, wherever they are. */
  private static final Pattern OF_OTHER_FORMAT = Pattern.compile("/(_delta_log|\\.hoodie)/");

  private final TableMetadata metadata;
  private final SupportsPrefixOperations storage;
  private final String path;

  /** When the newest of the files that were counted was made, by the storage's clock. */
  private long newest = Long.MIN_VALUE;

  /** The files of that moment: some storage has seconds. */
  private final Set<String> ofThen = new HashSet<>();

  /** The first file that a deletion has left, or null; and the first that it was not to delete. */
  record Left(String counted, List<String> newer) {}

  /**
   * Takes the table's location.
   *
   * @throws InvalidConfigurationException when that cannot be a table's own folder
   */
  TableFolder(TableMetadata metadata, SupportsPrefixOperations storage) {
    this.metadata = metadata;
    this.storage = storage;
    this.path = withoutSlash(metadata.location());
    String comparable = comparable(path);
    if (comparable.chars().filter(c -> c == '/').count() < 2 || comparable.contains("/../")) {
      throw refused(
          String.format("'%s' cannot be a table's own folder", path),
          "Look at the table's location.");
    }
  }

  /** Its path, without a slash at the end. */
  String path() {
    return path;
  }

  /**
   * Counts the files.
   *
   * @throws InvalidConfigurationException when there is another table's metadata among them, newer
   *     metadata of this table, or a file that may be anything
   * @throws IcebergCryptoException when a file cannot be read that may be that
   */
  PurgeResult count() {
    long files = 0;
    long bytes = 0;
    Set<String> own = ownMetadata();
    List<String> folders = ownFolders();
    List<String> unknown = new ArrayList<>();
    List<String> strange = new ArrayList<>();
    long strangeFiles = 0;
    for (FileInfo file : files()) {
      String below = below(file.location());
      if (below == null) {
        throw refused(
            String.format("the storage lists %s as a file in %s", file.location(), path),
            "Use DROP TABLE without PURGE, and delete what belongs to this table with other"
                + " tools.");
      }

      files++;
      bytes += file.size();
      remember(file);
      if (METADATA.matcher(file.location()).find()) {
        if (!own.contains(file.location())) {
          unknown.add(file.location());
        }
      } else if (file.size() > 0 && !isKnown(below, folders)) { // an empty one marks a folder
        strangeFiles++;
        if (strange.size() < LONGEST_LIST) {
          strange.add(file.location());
        }
      }
    }

    checkMetadata(unknown);
    if (strangeFiles > 0) {
      throw refused(
          String.format(
              "its folder %s also holds files that may not be of this table (%,d), such as %s",
              path, strangeFiles, strange),
          String.format(
              "The table's own files are below %s in its folder. Move the others away, and call"
                  + " this again; or use DROP TABLE without PURGE, which needs no key, and delete"
                  + " what belongs to this table with the storage's own tools.",
              String.join(", ", folders)));
    }

    checkTimes();
    return new PurgeResult(files, bytes, elsewhere());
  }

  /** By their times, files that are made after the drop are told from those that go. */
  private void checkTimes() {
    if (newest > System.currentTimeMillis() + CLOCK_SKEW_MILLIS) {
      throw refused(
          String.format(
              "its folder %s has files from the future, such as %s of %s: new ones cannot be told"
                  + " from them",
              path, ofThen.iterator().next(), Instant.ofEpochMilli(newest)),
          "Check the clocks of the storage and of this machine, and correct the times of these"
              + " files, or wait until then.");
    }
  }

  /** The folders in the location that Iceberg writes to, each with slashes around it. */
  private List<String> ownFolders() {
    return Stream.concat(
            Stream.of("/data", "/metadata"),
            configured()
                .map(folder -> isTheLocation(folder) ? "" : below(folder))
                .filter(Objects::nonNull))
        .map(folder -> folder + "/")
        .distinct()
        .toList();
  }

  private static boolean isKnown(String file, List<String> folders) {
    return folders.stream().anyMatch(file::startsWith) && !OF_OTHER_FORMAT.matcher(file).find();
  }

  private void remember(FileInfo file) {
    if (file.createdAtMillis() > newest) {
      this.newest = file.createdAtMillis();
      ofThen.clear();
    }

    if (file.createdAtMillis() == newest) {
      ofThen.add(file.location());
    }
  }

  /** Whether a file was there when the files were counted, and not made since. */
  private boolean isCounted(FileInfo file) {
    return file.createdAtMillis() < newest
        || file.createdAtMillis() == newest && ofThen.contains(file.location());
  }

  /**
   * Deletes the files that were counted. Those that are newer stay: once the table is dropped,
   * another one of its name may be made at any time, and most often in the same folder. When of a
   * thousand not one could be deleted, the others are not tried.
   *
   * @return the first files that could not be deleted, and why
   */
  Map<String, String> delete() {
    Iterable<FileInfo> counted = Iterables.filter(files(), this::isCounted);
    ProvenDeletion deletion = ProvenDeletion.beforeListing(storage);
    Map<String, String> left = new HashMap<>();
    for (List<String> some :
        Iterables.partition(
            Iterables.transform(counted, FileInfo::location), ProvenDeletion.AT_ONCE)) {
      Map<String, String> failed = deletion.delete(some.iterator());
      some.stream()
          .filter(failed::containsKey)
          .limit(LONGEST_LIST - left.size())
          .forEach(file -> left.put(file, failed.get(file)));
      if (failed.size() == some.size()) {
        break;
      }
    }

    return left;
  }

  /** Looks for files after the deletion. */
  Left left() {
    List<String> newer = new ArrayList<>();
    for (FileInfo file : files()) {
      if (isCounted(file)) {
        return new Left(file.location(), newer);
      }

      if (newer.size() < LONGEST_LIST) {
        newer.add(file.location());
      }
    }

    return new Left(null, newer);
  }

  /** The folders elsewhere that Iceberg may have written to. Other tables may write there, too. */
  private List<String> elsewhere() {
    return configured()
        .filter(folder -> below(folder) == null && !isTheLocation(folder))
        .distinct()
        .toList();
  }

  private boolean isTheLocation(String folder) {
    return comparable(folder).equals(comparable(path));
  }

  private Stream<String> configured() {
    return Stream.of(
            TableProperties.WRITE_DATA_LOCATION,
            TableProperties.WRITE_METADATA_LOCATION,
            "write.object-storage.path", // names of earlier versions
            "write.folder-storage.path")
        .map(metadata.properties()::get)
        .filter(folder -> folder != null && !folder.isBlank())
        .map(TableFolder::withoutSlash);
  }

  private Iterable<FileInfo> files() {
    return () -> {
      try {
        return Listing.below(storage, path).iterator();
      } catch (UncheckedIOException e) {
        if (e.getCause() instanceof FileNotFoundException) {
          return List.<FileInfo>of().iterator(); // a folder that nothing was written to
        }

        throw e;
      }
    };
  }

  /** The metadata files that the table's metadata names. */
  private Set<String> ownMetadata() {
    Set<String> own = new HashSet<>();
    own.add(metadata.metadataFileLocation());
    metadata.previousFiles().forEach(entry -> own.add(entry.file()));
    return own;
  }

  /** Looks into the metadata files that the table's metadata does not name. */
  private void checkMetadata(List<String> metadataFiles) {
    Set<String> foreign = ConcurrentHashMap.newKeySet();
    Set<String> newer = ConcurrentHashMap.newKeySet();
    Tasks.foreach(metadataFiles)
        .executeWith(AsCaller.workers())
        .stopOnFailure()
        .run(
            file -> {
              MetadataFile read = read(file);
              if (!isOwn(read)) {
                foreign.add(file);
              } else if (isNewer(read.metadata())) {
                newer.add(file);
              }
            });
    if (!foreign.isEmpty()) {
      throw refused(
          String.format(
              "its folder %s also holds metadata that is not of this table (UUID %s): %s",
              path, metadata.uuid(), first(metadataFiles, foreign)),
          "Use DROP TABLE without PURGE, which needs no key, and delete what belongs to this table"
              + " with the storage's own tools.");
    }

    if (!newer.isEmpty()) {
      throw refused(
          String.format(
              "its folder %s also holds newer metadata of this table than this catalog has: %s",
              path, first(metadataFiles, newer)),
          "Look for the table in other catalogs, and under other names: it may have been registered"
              + " there, and its rows would be deleted. Use DROP TABLE without PURGE, which needs"
              + " no key.");
    }
  }

  private static List<String> first(List<String> files, Set<String> chosen) {
    return files.stream().filter(chosen::contains).limit(LONGEST_LIST).toList();
  }

  /** Whether another entry of a catalog, or another catalog, has committed to the same files. */
  private boolean isNewer(TableMetadata other) {
    return other.lastUpdatedMillis() > metadata.lastUpdatedMillis()
        || other.lastSequenceNumber() > metadata.lastSequenceNumber();
  }

  private MetadataFile read(String metadataFile) {
    try {
      return MetadataFile.read(storage, metadataFile);
    } catch (RuntimeException e) {
      throw new IcebergCryptoException(
          String.format(
              "nothing was dropped: metadata file %s in its folder, which may be another table's,"
                  + " cannot be read: %s",
              metadataFile, Causes.innermostMessage(e)),
          "Check that the storage is up and that this client may read the file, and try again. DROP"
              + " TABLE without PURGE does not look at it.",
          e);
    }
  }

  private boolean isOwn(MetadataFile file) {
    try {
      return metadata.uuid().equals(file.metadata().uuid());
    } catch (RuntimeException e) {
      return false; // a view's, or of an unknown table
    }
  }

  /** The path of a file from this folder on, with a slash before it; null: it is elsewhere. */
  private String below(String file) {
    // a location without scheme and host is listed with those of the default file system
    String listed = path.startsWith("/") ? Listing.ROOT.matcher(file).replaceFirst("") : file;
    String whole = comparable(listed);
    String folder = comparable(path);
    return whole.startsWith(folder + "/") ? whole.substring(folder.length()) : null;
  }

  private static String withoutSlash(String folder) {
    return folder.replaceFirst("/+$", "");
  }

  /** A path without scheme, which may be written in several ways. */
  private static String comparable(String location) {
    return MetadataPlace.folderOf(location + "/");
  }

  private static IcebergCryptoException refused(String problem, String hint) {
    return new InvalidConfigurationException("nothing was dropped: " + problem, hint);
  }
}
