package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.parquet.ParquetCryptoFactory;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * An extension of Spark SQL ({@code spark.sql.extensions}): a write of Parquet files, or of a Hudi
 * table, is checked on the driver before it begins. The tasks check again; but by then an
 * overwriting statement has deleted what was there.
 */
public final class ParquetWrites extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** Spark makes one by this constructor. */
  public ParquetWrites() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectCheckRule(session -> ParquetWrites::check);
    return BoxedUnit.UNIT;
  }

  private static BoxedUnit check(LogicalPlan plan) {
    HudiWrites.check(SparkSession.active(), plan);
    if (plan instanceof InsertIntoHadoopFsRelationCommand write
        && write.fileFormat() instanceof ParquetFileFormat) {
      SparkSession spark = SparkSession.active();
      Configuration hadoop = spark.sessionState().newHadoopConfWithOptions(write.options());
      ParquetCryptoFactory.check(
          hadoop,
          write.outputPath(),
          new SparkToParquetSchemaConverter(spark.sessionState().conf()).convert(columns(write)));
    }

    return BoxedUnit.UNIT;
  }

  /** Without those that the table is partitioned by. */
  private static StructType columns(InsertIntoHadoopFsRelationCommand write) {
    Set<String> partitions = new HashSet<>();
    write
        .partitionColumns()
        .iterator()
        .foreach(column -> partitions.add(column.name())); // Scala 2.12 and 2.13 alike
    return new StructType(
        Stream.of(write.query().schema().fields())
            .filter(field -> !partitions.contains(field.name()))
            .toArray(StructField[]::new));
  }
}
