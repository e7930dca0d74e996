package io.icebergcrypto.spark.metadata;

import io.icebergcrypto.spark.call.ScalaLists;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of a metadata table that does not read {@code key_metadata}, with nulls in its place.
 *
 * @param delegate Iceberg's scan, without the column
 * @param required what Spark wants, with the column
 */
record HiddenKeysScan(Scan delegate, StructType required)
    implements Scan, SupportsReportStatistics {
  @Override
  public StructType readSchema() {
    return KeyColumn.addTo(required, delegate.readSchema());
  }

  @Override
  public String description() {
    return delegate.description();
  }

  @Override
  public Batch toBatch() {
    return new HiddenKeysBatch(delegate.toBatch(), required, delegate.readSchema());
  }

  @Override
  public Statistics estimateStatistics() {
    return ((SupportsReportStatistics) delegate).estimateStatistics(); // as all of Iceberg's
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return delegate.supportedCustomMetrics();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return delegate.reportDriverMetrics();
  }

  private record HiddenKeysBatch(Batch delegate, StructType required, StructType read)
      implements Batch {
    @Override
    public InputPartition[] planInputPartitions() {
      return delegate.planInputPartitions();
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Readers(delegate.createReaderFactory(), required, read);
    }
  }

  /** Rows only: a metadata table has no Parquet or ORC files to read in columns. */
  private record Readers(PartitionReaderFactory delegate, StructType required, StructType read)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      UnsafeProjection projection =
          UnsafeProjection.create(ScalaLists.of(KeyColumn.addNulls(required, read)));
      return new Reader(delegate.createReader(partition), projection);
    }
  }

  private record Reader(PartitionReader<InternalRow> delegate, UnsafeProjection projection)
      implements PartitionReader<InternalRow> {
    @Override
    public boolean next() throws IOException {
      return delegate.next();
    }

    @Override
    public InternalRow get() {
      return projection.apply(delegate.get());
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return delegate.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      delegate.close();
    }
  }
}
