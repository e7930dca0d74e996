package io.icebergcrypto.spark.migrate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.SparkWriteOptions;
import org.apache.iceberg.util.PropertyUtil;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Copies the rows of some files of a table into files of the table to be, with the row ids that
 * they have, and lists the new files in a manifest.
 *
 * @param source the table, with the schema that is read
 * @param target the table to be, with the same schema
 */
record GroupCopy(SparkSession spark, BaseTable source, BaseTable target) {
  private static final int FORMAT_VERSION = 3;

  /** Copies files of one partition spec; gives the manifest, which no snapshot has yet. */
  ManifestFile copy(int specId, FileFormat format, List<FileScanTask> files) {
    long size = fileSize();
    Set<DataFile> written =
        RewriteTables.read(
            spark,
            source,
            files,
            size,
            rows -> RewriteTables.named(target, id -> write(rows, id, specId, format, size)));
    return manifest(specId, written);
  }

  private long fileSize() {
    return PropertyUtil.propertyAsLong(
        source.properties(),
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT);
  }

  private Set<DataFile> write(
      Dataset<Row> rows, String id, int specId, FileFormat format, long fileSize) {
    FileRewriteCoordinator coordinator = FileRewriteCoordinator.get();
    try {
      withRowIds(rows)
          .write()
          .format("iceberg")
          .option(SparkWriteOptions.WRITE_FORMAT, CopyPlan.name(format))
          .option(SparkWriteOptions.TARGET_FILE_SIZE_BYTES, fileSize)
          .option(SparkWriteOptions.OUTPUT_SPEC_ID, specId)
          .option(SparkWriteOptions.DISTRIBUTION_MODE, "none")
          .option(SparkWriteOptions.USE_TABLE_DISTRIBUTION_AND_ORDERING, "false")
          .option(SparkWriteOptions.FANOUT_ENABLED, "true")
          .options(RewriteOptions.writing(id))
          .mode("append")
          .save(id);
      return coordinator.fetchNewFiles(target, id);
    } finally {
      coordinator.clearRewrite(target, id);
    }
  }

  /** A table of an older format has none: null lets rows have those of their file. */
  private Dataset<Row> withRowIds(Dataset<Row> rows) {
    return TableUtil.supportsRowLineage(source)
        ? rows
        : rows.withColumn(MetadataColumns.ROW_ID.name(), functions.lit(null).cast("bigint"))
            .withColumn(
                MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER.name(),
                functions.lit(null).cast("bigint"));
  }

  private ManifestFile manifest(int specId, Set<DataFile> files) {
    String path = target.operations().metadataFileLocation(UUID.randomUUID() + "-m0.avro");
    EncryptedOutputFile file = target.encryption().encrypt(target.io().newOutputFile(path));
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(FORMAT_VERSION, target.operations().current().spec(specId), file, null);
    try (writer) {
      files.forEach(writer::add);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }

    return writer.toManifestFile();
  }
}
