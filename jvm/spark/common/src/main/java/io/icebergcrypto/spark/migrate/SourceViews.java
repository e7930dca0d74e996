package io.icebergcrypto.spark.migrate;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;

/** A table as it was at a time, whatever is committed since. */
interface SourceViews {
  /** The table with one of its schemas as the current one. */
  BaseTable of(TableMetadata metadata, int schemaId);
}
