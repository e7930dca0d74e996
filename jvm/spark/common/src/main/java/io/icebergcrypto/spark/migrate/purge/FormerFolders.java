package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet;
import io.icebergcrypto.spark.verify.scan.Folders;
import io.icebergcrypto.spark.verify.scan.Grouped;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.iceberg.TableMetadata;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;

/**
 * Folders that were the table's at some time, by its logged metadata: it was moved, or wrote
 * elsewhere. Whoever can write to the storage can change that metadata, and other tables may have
 * such a folder since: plaintext is looked for in there, and told, but not deleted.
 */
final class FormerFolders implements Serializable {
  private static final long serialVersionUID = 1L;

  /** What Iceberg and Hadoop keep in plaintext beside a table's files. */
  private static final Pattern BOOKKEEPING =
      Pattern.compile("(?:\\.metadata\\.json(?:\\.gz)?|/version-hint\\.text|/\\.[^/]*\\.crc)$");

  private final List<String> folders;

  /**
   * Takes the folders.
   *
   * @param logged metadata of the table from any time
   * @param known folders that are not looked at: the table's own, and those that the user names
   */
  FormerFolders(Collection<TableMetadata> logged, List<String> known) {
    Set<String> all = new LinkedHashSet<>();
    logged.forEach(metadata -> all.addAll(TableVerifier.foldersOf(metadata)));
    all.removeIf(folder -> known.stream().anyMatch(one -> Folders.isIn(folder, one)));
    this.folders = Folders.outermost(all);
  }

  /** The former folder that a file is in; else the one that it is in, without its partitions. */
  String of(String path) {
    return folders.stream()
        .filter(folder -> Folders.isIn(path, folder))
        .findFirst()
        .orElseGet(() -> path.replaceFirst("(?:/[^/=]+=[^/]*)*/[^/]*$", ""));
  }

  /**
   * Looks for plaintext.
   *
   * @param known files that metadata names, by their column path
   * @return rows of {@link OldTree#FILES}; one with a problem is a folder that cannot be listed, or
   *     a file that cannot be read. It is kept by Spark
   */
  Dataset<Row> plaintext(SparkSession spark, Broadcast<Storage> storage, Dataset<Row> known) {
    if (folders.isEmpty()) {
      return spark.createDataFrame(new ArrayList<Row>(), OldTree.FILES);
    }

    Broadcast<Storage> shared = storage;
    MapPartitionsFunction<Row, Row> look =
        rows -> Grouped.each(rows, row -> List.of(look(shared.value(), row)).iterator());
    try (Folders listed = new Folders(spark, storage)) {
      Dataset<Row> unknown = Folders.without(listed.files(folders), known);
      return new FileJobs(spark)
          .spread(unknown, FileSet.of(unknown).size())
          .mapPartitions(look, Encoders.row(OldTree.FILES))
          .where("state IN ('" + OldTree.PLAINTEXT + "', '" + OldTree.UNKNOWN + "')")
          .localCheckpoint(true);
    }
  }

  private static Row look(Storage storage, Row file) {
    String path = file.getString(0);
    String kind = FileKind.STRAY.label();
    if (!file.isNullAt(2)) {
      return RowFactory.create(path, kind, 0L, null, file.getString(2), OldTree.UNKNOWN);
    }

    return BOOKKEEPING.matcher(path).find()
        ? RowFactory.create(path, kind, 0L, null, null, OldTree.ENCRYPTED) // as good as
        : OldTree.look(storage.io().newInputFile(path), kind, file.getLong(1), null, null);
  }
}
