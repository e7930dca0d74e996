package io.icebergcrypto.spark.copy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.lifecycle.PathMapping;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;

/**
 * What is asked of a copy: the arguments of {@code rewrite_table_path}.
 *
 * @param startVersion the metadata file, by name or path, of the version that an earlier copy had:
 *     data files that it has are not listed again; null for all
 * @param endVersion the metadata file of the version to be copied: the newest; null is the same
 * @param stagingLocation the folder for files that are rewritten; null for one in the table's
 *     metadata folder
 * @param createFileList whether to list the files to be copied
 */
public record CopyRequest(
    PathMapping paths,
    String startVersion,
    String endVersion,
    String stagingLocation,
    boolean createFileList) {
  private static final Pattern COPIED =
      Pattern.compile("-copy-[0-9a-f-]{36}((\\.gz)?\\.metadata\\.json)$");

  /**
   * What the copy has from an earlier one.
   *
   * @param sequenceNumber the last one of that version; -1 if it has none
   * @param statistics the paths of the statistics files that it has
   */
  record Start(long sequenceNumber, Set<String> statistics) {
    private static final Start NONE = new Start(-1, Set.of());
  }

  /**
   * Checks that it fits a table.
   *
   * @throws InvalidConfigurationException when it does not
   * @throws NotSupportedException when an older version is to be copied
   */
  void check(String table, TableMetadata metadata) {
    if (paths.source().isEmpty() || paths.target().isEmpty()) {
      throw invalid(
          table,
          "source_prefix or target_prefix is empty",
          "Give the folder that the table is in, and the one for the copy.");
    } else if (paths.source().equals(paths.target())) {
      throw invalid(
          table,
          "target_prefix is the same as source_prefix: " + paths.source(),
          "Give another folder for the copy.");
    } else if (PathMapping.isWithin(
        paths.target(), PathMapping.withoutSlash(metadata.location()))) {
      throw invalid(
          table,
          String.format(
              "target_prefix %s is in the table's own location %s",
              paths.target(), metadata.location()),
          "Give a folder outside of it: what cleans the table up would delete the copy.");
    }

    String newest = metadata.metadataFileLocation();
    if (newest == null) {
      throw invalid(
          table,
          "its catalog does not say which metadata file it has",
          "Copy the rows with CREATE TABLE ... AS SELECT.");
    } else if (endVersion != null && !isNamed(newest, endVersion)) {
      throw new NotSupportedException(
              String.format(
                  "nothing was written: end_version is %s, and only the newest version of an"
                      + " encrypted table is copied: %s",
                  endVersion, newest),
              "Leave end_version out. The copy has all snapshots: roll it back to an older one.")
          .inTable(table);
    }
  }

  /**
   * Reads the version that an earlier copy had.
   *
   * @throws InvalidConfigurationException when the table has no such version, or its file is gone
   */
  Start start(BaseTable table, TableMetadata metadata) {
    if (startVersion == null) {
      return Start.NONE;
    }

    if (isNamed(metadata.metadataFileLocation(), startVersion)) {
      return startOf(metadata);
    }

    String path =
        metadata.previousFiles().stream()
            .map(MetadataLogEntry::file)
            .filter(file -> isNamed(file, startVersion))
            .reduce((first, last) -> last)
            .orElseThrow(
                () ->
                    invalid(
                        table.name(),
                        "start_version " + startVersion + " is not in its metadata log",
                        "SELECT file FROM the table's metadata_log_entries shows what is. Without"
                            + " start_version all files are listed."));
    TableMetadata start;
    try {
      start = MetadataFile.read(TableFileIO.storageBelow(table.io()), path).metadata();
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw invalid(
          table.name(),
          String.format("start_version %s cannot be read: %s", path, e.getMessage()),
          "Leave start_version out, and all files are listed.");
    }

    if (!metadata.uuid().equals(start.uuid())
        || start.lastSequenceNumber() > metadata.lastSequenceNumber()) {
      throw invalid(
          table.name(),
          "start_version " + path + " is not an earlier version of this table",
          "Leave start_version out, and all files are listed.");
    }

    return startOf(start);
  }

  private static Start startOf(TableMetadata metadata) {
    return new Start(metadata.lastSequenceNumber(), StatisticsPaths.of(metadata));
  }

  /** Whether a version is that of a metadata file: its name or path, or the name of its copy. */
  private static boolean isNamed(String path, String version) {
    String original = COPIED.matcher(version).replaceFirst("$1");
    return path.equals(version) || path.endsWith("/" + original);
  }

  /**
   * The name of a metadata file's copy: with the id of the run, as each run's has other content. In
   * a Hadoop catalog's folder names tell versions, and no more.
   */
  static String nameOfCopy(String path, String run) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    boolean isHadoops =
        MetadataPlace.metastoreVersion(path) < 0 && MetadataPlace.of(path).version() >= 0;
    return isHadoops
        ? name
        : name.replaceFirst("((\\.gz)?\\.metadata\\.json)?$", "-copy-" + run + "$1");
  }

  static IcebergCryptoException invalid(String table, String problem, String hint) {
    return new InvalidConfigurationException("nothing was written: " + problem, hint)
        .inTable(table);
  }
}
