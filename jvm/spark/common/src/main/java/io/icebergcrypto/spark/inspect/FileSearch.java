package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.spark.verify.scan.TableTree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.util.Tasks;

/** Looks for one file of a table, with its key metadata. */
final class FileSearch {
  private final BaseTable table;
  private final String wanted;
  private final List<ReachableFile> lists;
  private final TableTree tree;

  /** What could not be read first, which may have the file. */
  private final AtomicReference<RuntimeException> unreadable = new AtomicReference<>();

  private FileSearch(BaseTable table, String wanted, List<ReachableFile> lists) {
    this.table = table;
    this.wanted = wanted;
    this.lists = lists;
    this.tree = new TableTree(table, lists);
  }

  /**
   * Looks for a file: in the metadata itself, then in what the current snapshot lists, then in what
   * older ones list.
   *
   * @param table a table of an encrypting catalog, whose FileIO decrypts
   * @param path the file's location; a local one may be without its scheme
   * @throws InvalidConfigurationException when no snapshot reaches it
   * @throws RuntimeException when it is not found, and a manifest or a manifest list could not be
   *     read: that error
   */
  static KnownFile find(BaseTable table, String path) {
    String wanted = bare(path);
    MetadataFiles metadata = MetadataFiles.ofSnapshots(table);
    for (ReachableFile file : metadata.named()) {
      if (bare(file.path()).equals(wanted)) {
        return new KnownFile(
            file.kind(),
            file.path(),
            file.format(),
            file.length(),
            new TableTree(table, List.of()).keyMetadata(file.path(), file.keyId()));
      }
    }

    List<ReachableFile> lists =
        metadata.named().stream().filter(f -> f.kind() == FileKind.MANIFEST_LIST).toList();
    return new FileSearch(table, wanted, lists).belowLists();
  }

  private static String bare(String path) {
    return path.replaceFirst("^file:/*", "/");
  }

  private KnownFile belowLists() {
    Snapshot snapshot = table.currentSnapshot();
    String current = snapshot == null ? null : snapshot.manifestListLocation();
    Predicate<ReachableFile> isCurrent = list -> list.path().equals(current);
    for (Predicate<ReachableFile> some : List.of(isCurrent, isCurrent.negate())) {
      KnownFile found = below(some);
      if (found != null) {
        return found;
      }
    }

    if (unreadable.get() != null) {
      throw unreadable.get();
    }

    throw new InvalidConfigurationException(
            String.format("no snapshot of it reaches the file %s", wanted),
            "Give the path as the table has it (SELECT file_path FROM <table>.all_files). The key"
                + " of a file goes with its last snapshot; --key-file takes one from elsewhere.")
        .inTable(table.name());
  }

  /** The file that some of the lists reach; null: none that could be read does. */
  private KnownFile below(Predicate<ReachableFile> some) {
    Map<String, ManifestFile> manifests = new LinkedHashMap<>();
    IntStream.range(0, lists.size())
        .filter(list -> some.test(lists.get(list)))
        .forEach(list -> reading(() -> addManifests(list, manifests)));
    AtomicReference<KnownFile> found = new AtomicReference<>();
    Tasks.foreach(manifests.values())
        .executeWith(AsCaller.workers())
        .run(
            manifest -> {
              if (found.get() == null) {
                reading(() -> found.compareAndSet(null, fileOrNull(manifest)));
              }
            });
    return found.get();
  }

  private void addManifests(int list, Map<String, ManifestFile> manifests) throws IOException {
    try (CloseableIterable<ManifestFile> all = tree.manifests(list)) {
      all.forEach(manifest -> manifests.putIfAbsent(manifest.path(), manifest));
    }
  }

  private KnownFile fileOrNull(ManifestFile manifest) throws IOException {
    if (bare(manifest.path()).equals(wanted)) {
      return new KnownFile(
          FileKind.MANIFEST,
          manifest.path(),
          FileKind.formatOfManifest(manifest.path()),
          manifest.length(),
          manifest.keyMetadata());
    }

    try (CloseableIterable<? extends ContentFile<?>> files = tree.files(manifest)) {
      for (ContentFile<?> file : files) {
        if (bare(file.location()).equals(wanted)) {
          String path = file.location();
          String format = file.format().name();
          return new KnownFile(
              FileKind.ofContent(file.content().id(), format),
              path,
              format,
              file.fileSizeInBytes(),
              tree.keyMetadata(manifest, Set.of(path)).get(path));
        }
      }
    }

    return null;
  }

  private interface Read {
    void run() throws IOException;
  }

  /** The file may be elsewhere. */
  private void reading(Read read) {
    try {
      read.run();
    } catch (IOException e) {
      unreadable.compareAndSet(null, new UncheckedIOException(e));
    } catch (RuntimeException e) {
      CancelledException.rethrow(e);
      unreadable.compareAndSet(null, e);
    }
  }
}
