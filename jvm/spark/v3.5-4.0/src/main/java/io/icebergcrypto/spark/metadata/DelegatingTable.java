package io.icebergcrypto.spark.metadata;

import org.apache.iceberg.spark.source.SparkTable;

/** What of a table that stands before another one differs between Spark versions. */
abstract class DelegatingTable extends SparkTable {
  final SparkTable delegate;

  DelegatingTable(SparkTable delegate) {
    super(delegate.table(), false);
    this.delegate = delegate;
  }
}
