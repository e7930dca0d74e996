package io.icebergcrypto.audit;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.Tasks;

/**
 * What the metadata files of a table name: manifest lists and statistics. There are about as many
 * as snapshots; what lies below is left to an engine.
 */
public final class MetadataFiles {
  /**
   * One of the metadata files.
   *
   * @param path its location
   * @param length its length in bytes; -1 when it could not be read
   * @param problem what is wrong with it, null when nothing is or when it could not be read
   * @param failure why it could not be read; null when it could
   */
  public record Version(String path, long length, FileProblem problem, RuntimeException failure) {}

  /** How many metadata files are in memory at the same time. */
  private static final int AT_ONCE = 8;

  private static final FileProblem EMBEDDED =
      new FileProblem(
          ProblemCode.UNREADABLE,
          "it has snapshots without a manifest list, as clients of format version 1 could write"
              + " them: the manifests that it lists itself were not checked");

  private static final Comparator<Snapshot> NEWEST_FIRST =
      Comparator.comparingLong(Snapshot::sequenceNumber).reversed();

  private final List<Version> versions = new ArrayList<>();
  private final Map<String, ReachableFile> named = new LinkedHashMap<>();
  private final Map<String, EncryptedKey> olderKeys = new HashMap<>();

  private MetadataFiles() {}

  /** What the current snapshot, branches and tags have. No metadata file is read. */
  public static MetadataFiles ofRefs(TableMetadata metadata) {
    List<Snapshot> snapshots = snapshotsOfRefs(metadata);
    Set<Long> ids = snapshots.stream().map(Snapshot::snapshotId).collect(Collectors.toSet());
    return inForce(metadata, snapshots, ids::contains);
  }

  /** The snapshots that a reader can name without an id: that of main, of other branches, tags. */
  public static List<Snapshot> snapshotsOfRefs(TableMetadata metadata) {
    return Stream.concat(
            Stream.ofNullable(metadata.currentSnapshot()),
            metadata.refs().values().stream().map(ref -> metadata.snapshot(ref.snapshotId())))
        .distinct()
        .sorted(NEWEST_FIRST)
        .toList();
  }

  /** What any snapshot of the metadata in force has. No metadata file is read. */
  public static MetadataFiles ofSnapshots(BaseTable table) {
    return ofSnapshots(table.operations().current());
  }

  /** The same of metadata that is at hand. */
  public static MetadataFiles ofSnapshots(TableMetadata metadata) {
    return inForce(metadata, newestFirst(metadata), id -> true);
  }

  /** The metadata in force is a version only when it is known to have what is not checked. */
  private static MetadataFiles inForce(
      TableMetadata metadata, List<Snapshot> snapshots, LongPredicate ids) {
    MetadataFiles files = new MetadataFiles();
    FileProblem problem = files.add(metadata, snapshots, ids, false);
    if (problem != null) {
      String location = metadata.metadataFileLocation();
      String path = location == null ? metadata.location() : location;
      files.versions.add(new Version(path, -1, problem, null));
    }

    return files;
  }

  private static List<Snapshot> newestFirst(TableMetadata metadata) {
    return metadata.snapshots().stream().sorted(NEWEST_FIRST).toList();
  }

  /**
   * What any snapshot has that the metadata in force, or a metadata file of its log, has: those of
   * branches, of tags, staged ones and, as long as their files are there, expired ones. So does the
   * metadata that a table had before it was encrypted in place, until its plaintext is purged.
   *
   * @param io the table's, which reads the log
   */
  public static MetadataFiles ofLog(FileIO io, TableMetadata metadata) {
    MetadataFiles files = new MetadataFiles();
    FileProblem problem = files.add(metadata, newestFirst(metadata), id -> true, false);
    String current = metadata.metadataFileLocation();
    String plaintext = metadata.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    Set<String> logged =
        Stream.concat(
                Stream.ofNullable(current),
                metadata.previousFiles().stream().map(TableMetadata.MetadataLogEntry::file))
            .collect(Collectors.toCollection(LinkedHashSet::new));
    List<String> paths =
        Stream.concat(logged.stream(), Stream.ofNullable(plaintext)).distinct().toList();
    for (int start = 0; start < paths.size(); start += AT_ONCE) {
      List<String> some = paths.subList(start, Math.min(start + AT_ONCE, paths.size()));
      for (Read read : readAll(io, some)) {
        String path = read.version().path();
        Read found = path.equals(plaintext) ? read.ofTable(metadata) : read;
        boolean isPurged =
            !logged.contains(path) && found.version().problem() == FileProblem.MISSING;
        if (found.metadata() != null) {
          boolean older = !path.equals(current);
          found = found.with(older ? files.addOlder(found.metadata()) : problem);
        }

        if (!isPurged) {
          files.versions.add(found.version());
        }
      }
    }

    return files;
  }

  private FileProblem addOlder(TableMetadata metadata) {
    metadata.encryptionKeys().forEach(key -> olderKeys.put(key.keyId(), key));
    return add(metadata, metadata.snapshots(), id -> true, true);
  }

  /** The metadata files that were read, or not all of which is checked: see {@link #ofLog}. */
  public List<Version> versions() {
    return versions;
  }

  /** Manifest lists, those of newer snapshots first, and statistics; each path once. */
  public Collection<ReachableFile> named() {
    return named.values();
  }

  /** Key entries of older metadata files. */
  public Collection<EncryptedKey> olderKeys() {
    return olderKeys.values();
  }

  /** A metadata file, and what it has; null when it could not be read. */
  private record Read(Version version, TableMetadata metadata) {
    static Read of(FileIO io, String path) {
      MetadataFile file;
      try {
        file = MetadataFile.read(io, path);
      } catch (NotFoundException e) {
        return new Read(
            FileProblem.isGone(() -> io.newInputFile(path))
                ? new Version(path, -1, FileProblem.MISSING, null)
                : new Version(path, -1, null, e),
            null);
      } catch (RuntimeException e) {
        return new Read(new Version(path, -1, null, e), null);
      }

      try {
        TableMetadata metadata = file.metadata();
        return new Read(new Version(path, file.length(), null, null), metadata);
      } catch (RuntimeException e) {
        String words = "it is not table metadata: " + e.getMessage();
        ProblemCode code =
            MetadataFile.isOfNewerFormat(e) ? ProblemCode.UNREADABLE : ProblemCode.TAMPERED;
        FileProblem problem = new FileProblem(code, words);
        return new Read(new Version(path, file.length(), problem, null), null);
      }
    }

    /** The same file with a problem of its metadata; null: none. */
    Read with(FileProblem problem) {
      return new Read(new Version(version.path(), version.length(), problem, null), metadata);
    }

    /** The same, or a problem: a property can name another table's metadata, which leads astray. */
    Read ofTable(TableMetadata table) {
      if (metadata == null || metadata.uuid() != null && metadata.uuid().equals(table.uuid())) {
        return this;
      }

      String words =
          String.format(
              "it is metadata of another table, and nothing it names was checked: the property"
                  + " %s or that file was changed",
              EncryptionProperties.PLAINTEXT_METADATA);
      FileProblem problem = new FileProblem(ProblemCode.UNREADABLE, words);
      return new Read(new Version(version.path(), version.length(), problem, null), null);
    }
  }

  /** Reads some metadata files at the same time; in the same order. */
  private static List<Read> readAll(FileIO io, List<String> paths) {
    Read[] read = new Read[paths.size()];
    Tasks.range(read.length)
        .executeWith(AsCaller.workers())
        .run(i -> read[i] = Read.of(io, paths.get(i)));
    return List.of(read);
  }

  /**
   * Adds what a version names.
   *
   * @param ids of snapshots whose statistics are added; entries can outlast their snapshot
   * @return what keeps a part of it from being checked; null: nothing
   */
  private FileProblem add(
      TableMetadata metadata, Collection<Snapshot> snapshots, LongPredicate ids, boolean older) {
    FileProblem problem = null;
    for (Snapshot snapshot : snapshots) {
      if (snapshot.manifestListLocation() == null) {
        problem = EMBEDDED;
        continue;
      }

      add(
          new ReachableFile(
              FileKind.MANIFEST_LIST,
              snapshot.manifestListLocation(),
              FileKind.formatOfManifest(snapshot.manifestListLocation()),
              -1L,
              snapshot.keyId(),
              older));
    }

    Map<String, String> keyIds = statisticsKeyIds(metadata);
    for (StatisticsFile file : metadata.statisticsFiles()) {
      if (ids.test(file.snapshotId())) {
        String keyId = keyIds.get(file.path());
        add(
            new ReachableFile(
                FileKind.STATISTICS, file.path(), "puffin", file.fileSizeInBytes(), keyId, older));
      }
    }

    for (PartitionStatisticsFile file : metadata.partitionStatisticsFiles()) {
      if (ids.test(file.snapshotId())) {
        add(
            new ReachableFile(
                FileKind.PARTITION_STATISTICS,
                file.path(),
                "parquet",
                file.fileSizeInBytes(),
                keyIds.get(file.path()),
                older));
      }
    }

    return problem;
  }

  private void add(ReachableFile file) {
    named.putIfAbsent(file.path(), file);
  }

  private static Map<String, String> statisticsKeyIds(TableMetadata metadata) {
    return metadata.encryptionKeys().stream()
        .filter(key -> TableEncryptionManager.statisticsPath(key) != null)
        .collect(
            Collectors.toMap(
                TableEncryptionManager::statisticsPath, EncryptedKey::keyId, (old, next) -> next));
  }
}
