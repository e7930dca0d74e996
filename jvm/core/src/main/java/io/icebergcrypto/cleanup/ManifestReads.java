package io.icebergcrypto.cleanup;

import io.icebergcrypto.IcebergCryptoException;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.Tasks;

/**
 * The files that snapshots reach, read with decryption. A file that cannot be read is an error, as
 * a caller that deletes must know them all: an {@link IcebergCryptoException} that names no table
 * yet, and of no subclass when the storage failed.
 *
 * @param io the table's FileIO, which decrypts
 * @param specs the table's partition specs by id
 * @param executor reads files side by side
 */
record ManifestReads(FileIO io, Map<Integer, PartitionSpec> specs, ExecutorService executor) {
  /**
   * Gives each snapshot with its manifests, and keeps none.
   *
   * @param action is called by many threads at once
   */
  void forEachList(
      Collection<Snapshot> snapshots, BiConsumer<Snapshot, List<ManifestFile>> action) {
    forEach(
        snapshots,
        snapshot -> {
          // a copy, for it keeps what it reads: with every snapshot that would be each list
          Snapshot copy = SnapshotParser.fromJson(SnapshotParser.toJson(snapshot));
          action.accept(snapshot, manifests(copy));
        });
  }

  /** Reads what snapshots keep: reading their lists after that needs no request to the storage. */
  void load(Collection<Snapshot> snapshots) {
    forEach(snapshots, this::manifests);
  }

  private List<ManifestFile> manifests(Snapshot snapshot) {
    try {
      return snapshot.allManifests(io);
    } catch (RuntimeException e) {
      throw unreadable("manifest list", snapshot.manifestListLocation(), e);
    }
  }

  /** All manifests of snapshots, by path. */
  Map<String, ManifestFile> manifests(Collection<Snapshot> snapshots) {
    Map<String, ManifestFile> byPath = new ConcurrentHashMap<>();
    forEachList(
        snapshots, (snapshot, manifests) -> manifests.forEach(m -> byPath.put(m.path(), m)));
    return byPath;
  }

  /**
   * Gives the paths of the data and delete files that are live in manifests, and keeps none.
   *
   * @param action is called by many threads at once, and perhaps more than once for a path
   */
  void forEachContentFile(Collection<ManifestFile> manifests, Consumer<String> action) {
    forEach(
        manifests,
        manifest -> {
          try (CloseableIterable<String> live = ManifestFiles.readPaths(manifest, io, specs)) {
            live.forEach(action);
          } catch (IOException | RuntimeException e) {
            throw unreadable("manifest", manifest.path(), e);
          }
        });
  }

  private <T> void forEach(Collection<T> all, Consumer<T> read) {
    Tasks.foreach(all).executeWith(executor).stopOnFailure().run(read::accept);
  }

  /** Errors of the storage say little; our own are left as they are. */
  private static IcebergCryptoException unreadable(String what, String path, Exception e) {
    return e instanceof IcebergCryptoException ours
        ? ours
        : new IcebergCryptoException(
            String.format("%s %s cannot be read: %s", what, path, e.getMessage()),
            "Check that it is there, and that this client may read it.",
            e);
  }
}
