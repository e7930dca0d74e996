package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import io.icebergcrypto.lifecycle.encrypt.WritableSpec;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.SparkWriteOptions;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Copies the rows of some files of a table into files of the table to be, with the row ids that
 * they have, and lists the new files in a manifest. A new file has rows of one file only.
 *
 * @param target the table to be, with the schema that the group is read with
 * @param form the metadata of the table to be
 */
record GroupCopy(SparkSession spark, CopyPlan.Group group, BaseTable target, TableMetadata form) {
  /** The start of Iceberg's names of data files: that of Spark's partition, of its task, a UUID. */
  private static final Pattern NAME = Pattern.compile("(\\d+)-\\d+-[0-9a-f]{8}(-[0-9a-f]{4}){4}");

  private static final String ANY_NAME = "00000-0-0.parquet";

  /**
   * Copies the files.
   *
   * @param manifest where to write the manifest, which no snapshot has yet
   */
  LoggedGroup copy(String manifest) {
    Schema schema = group.source().schema();
    int specId = WritableSpec.of(form, schema, group.specId());
    List<List<DataFile>> copied = new ArrayList<>();
    if (target.locationProvider().newDataLocation(ANY_NAME).endsWith(ANY_NAME)) {
      copied.addAll(write(specId, group.files()));
    } else { // a location provider of the user's, whose names do not say what a file is made of
      group.files().forEach(file -> copied.addAll(write(specId, List.of(file))));
    }

    List<DataFile> all = new ArrayList<>();
    List<UnitCopy> copies = new ArrayList<>();
    for (int i = 0; i < copied.size(); i++) {
      List<DataFile> own = copied.get(i);
      long rows = own.stream().mapToLong(DataFile::recordCount).sum();
      copies.add(new UnitCopy(group.units().get(i), all.size(), own.size(), rows));
      all.addAll(own);
    }

    return new LoggedGroup(
        schema.schemaId(),
        form.lastColumnId(),
        PartitionSpecParser.toJson(form.spec(specId)),
        LoggedGroup.nameMapping(form),
        copies,
        List.of(CopyManifests.write(target, manifest, specId, all)));
  }

  /** Writes files together; returns the new ones of each. */
  private List<List<DataFile>> write(int specId, List<FileScanTask> files) {
    long size = GroupSize.fileSize(group.source());
    Set<DataFile> written =
        RewriteTables.read(
            spark,
            group.source(),
            files,
            size,
            size,
            rows -> RewriteTables.named(target, id -> write(rows, id, specId, size)));
    List<List<DataFile>> byFile = new ArrayList<>();
    Map<DataFile, List<DataFile>> bySource = new IdentityHashMap<>();
    for (FileScanTask file : files) {
      List<DataFile> own = new ArrayList<>();
      byFile.add(own);
      bySource.put(file.file(), own);
    }

    if (files.size() == 1) {
      byFile.get(0).addAll(written);
      return byFile;
    }

    List<ScanTaskGroup<FileScanTask>> partitions = RewriteTables.partitions(files, size, size);
    written.stream()
        .sorted(Comparator.comparing(DataFile::location))
        .forEach(file -> bySource.get(source(partitions, file)).add(file));
    return byFile;
  }

  /** The file that a new one has the rows of: that which the partition has read that wrote it. */
  private static DataFile source(List<ScanTaskGroup<FileScanTask>> partitions, DataFile written) {
    Matcher name = NAME.matcher(written.location());
    int partition = -1;
    while (name.find()) {
      partition = Integer.parseInt(name.group(1)); // the last: folders may look like it
    }

    if (partition < 0 || partition >= partitions.size()) {
      throw new IllegalStateException("No partition has written " + written.location());
    }

    return partitions.get(partition).tasks().iterator().next().file();
  }

  private Set<DataFile> write(Dataset<Row> rows, String id, int specId, long fileSize) {
    FileRewriteCoordinator coordinator = FileRewriteCoordinator.get();
    try {
      withRowIds(rows)
          .write()
          .format("iceberg")
          .option(SparkWriteOptions.WRITE_FORMAT, CopyPlan.name(group.format()))
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
    return TableUtil.supportsRowLineage(group.source())
        ? rows
        : rows.withColumn(MetadataColumns.ROW_ID.name(), functions.lit(null).cast("bigint"))
            .withColumn(
                MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER.name(),
                functions.lit(null).cast("bigint"));
  }
}
