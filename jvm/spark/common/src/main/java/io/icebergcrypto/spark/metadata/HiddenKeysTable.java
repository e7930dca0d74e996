package io.icebergcrypto.spark.metadata;

import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A metadata table as SQL users get it: with every row and column, but {@code key_metadata} is
 * null. That column has the data keys of files in the clear: with read access to the storage, they
 * are as good as the data.
 *
 * <p>Iceberg's own scan never reads the column, so no filter can reveal it. Iceberg's actions do
 * not get such tables: they make their metadata tables without the catalog.
 */
// Spark deprecates schema(), and columns() has no StructType to offer
@SuppressWarnings("deprecation")
public final class HiddenKeysTable extends DelegatingTable {
  private HiddenKeysTable(SparkTable delegate) {
    super(delegate);
  }

  /** Hides the keys of a metadata table that has a column for them; returns any other table. */
  public static Table hide(Table table) {
    return table instanceof SparkTable spark
            && spark.table() instanceof BaseMetadataTable
            && KeyColumn.in(spark.schema())
        ? new HiddenKeysTable(spark)
        : table;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(delegate.newScanBuilder(options), schema());
  }

  @Override
  public SparkTable copyWithBranch(String branch) {
    return new HiddenKeysTable(delegate.copyWithBranch(branch));
  }

  @Override
  public StructType schema() {
    return delegate.schema();
  }

  @Override
  public Column[] columns() {
    return delegate.columns();
  }

  @Override
  public Long snapshotId() {
    return delegate.snapshotId();
  }

  @Override
  public String branch() {
    return delegate.branch();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof HiddenKeysTable that && delegate.equals(that.delegate);
  }

  @Override
  public int hashCode() {
    return delegate.hashCode();
  }

  /** Prunes the column from Iceberg's scan, and adds nulls if Spark wants it. */
  private static final class Builder
      implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
    private final ScanBuilder delegate;
    private StructType required;

    private Builder(ScanBuilder delegate, StructType schema) {
      this.delegate = delegate;
      pruneColumns(schema);
    }

    @Override
    public void pruneColumns(StructType requiredSchema) {
      this.required = requiredSchema;
      ((SupportsPushDownRequiredColumns) delegate)
          .pruneColumns(KeyColumn.removeFrom(requiredSchema));
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
      // a predicate on the pruned column is left to Spark, which finds nulls
      return ((SupportsPushDownV2Filters) delegate).pushPredicates(predicates);
    }

    @Override
    public Predicate[] pushedPredicates() {
      return ((SupportsPushDownV2Filters) delegate).pushedPredicates();
    }

    @Override
    public Scan build() {
      Scan scan = delegate.build();
      return KeyColumn.in(required) ? new HiddenKeysScan(scan, required) : scan;
    }
  }
}
