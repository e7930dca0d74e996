package io.icebergcrypto.spark.rewrite;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.FileIO;

/**
 * Delete files that apply to no data file of their snapshot. Which ones they apply to depends on
 * data sequence numbers: an equality delete applies to older data, a position delete also to data
 * of its own commit. When a file was added says nothing: a compaction that began long ago adds a
 * file today, with the data from then.
 */
final class DanglingDeletes {
  /** Each begins with what another commit has changed meanwhile. */
  private static final int ROUNDS = 5;

  private DanglingDeletes() {}

  /**
   * Removes those of the main branch that were added up to a sequence number. What a commit that
   * comes between makes apply again stays.
   *
   * @param table one of {@link DeleteGuard#in}: its commits are checked
   */
  static void remove(Table table, long addedUpTo) {
    for (int round = 0; round < ROUNDS; round++) {
      table.refresh();
      List<DeleteFile> found = find(table, addedUpTo);
      if (found.isEmpty()) {
        return;
      }

      try {
        RewriteFiles removal = table.newRewrite();
        found.forEach(removal::deleteFile);
        removal.commit();
        return;
      } catch (ValidationException e) {
        // another commit has added older data, or removed some of them
      }
    }
  }

  /** Looks for them in the snapshot that the table has in memory. */
  static List<DeleteFile> find(Table table, long addedUpTo) {
    Snapshot current = table.currentSnapshot();
    long oldest = oldestData(current, table.io());
    List<DeleteFile> found = new ArrayList<>();
    for (ManifestFile manifest : current.deleteManifests(table.io())) {
      try (ManifestReader<DeleteFile> files =
          ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())) {
        for (DeleteFile file : files) {
          Long added = file.fileSequenceNumber();
          if ((added == null || added <= addedUpTo) && !mayApply(file, oldest)) {
            found.add(file.copy());
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    return found;
  }

  /**
   * Whether a delete file would apply to data of a sequence number, if that were in its partition.
   */
  static boolean mayApply(DeleteFile file, long oldest) {
    Long deleted = file.dataSequenceNumber();
    if (deleted == null) {
      return true;
    }

    return file.content() == FileContent.EQUALITY_DELETES ? oldest < deleted : oldest <= deleted;
  }

  /**
   * The lowest data sequence number of the live data files of a snapshot: its manifest list has
   * that of each manifest. Without data it is higher than any.
   */
  static long oldestData(Snapshot snapshot, FileIO io) {
    return snapshot.dataManifests(io).stream()
        .filter(manifest -> manifest.hasAddedFiles() || manifest.hasExistingFiles())
        .mapToLong(ManifestFile::minSequenceNumber)
        .min()
        .orElse(Long.MAX_VALUE);
  }
}
