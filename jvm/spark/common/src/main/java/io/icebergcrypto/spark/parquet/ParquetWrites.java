package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.spark.columns.FileChecks;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.types.StructType;

/** Checks writes of Parquet files, and of Hudi tables, before they begin. */
public final class ParquetWrites extends FileChecks {
  /** Spark makes one by this constructor. */
  public ParquetWrites() {
    super("parquet", List.of("parquet.encryption.", "parquet.crypto.", "iceberg-crypto."));
  }

  @Override
  protected boolean isOf(FileFormat format) {
    return format instanceof ParquetFileFormat;
  }

  @Override
  protected void checkWrite(Path folder, Configuration hadoop, StructType columns) {
    ParquetCryptoFactory.check(
        hadoop,
        folder,
        new SparkToParquetSchemaConverter(SparkSession.active().sessionState().conf())
            .convert(columns));
  }

  @Override
  protected void checkOther(LogicalPlan plan) {
    HudiWrites.check(SparkSession.active(), plan);
  }
}
