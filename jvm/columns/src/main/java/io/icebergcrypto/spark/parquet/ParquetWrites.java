package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.parquet.tables.ColumnChoices;
import io.icebergcrypto.parquet.tables.KeyFiles;
import io.icebergcrypto.parquet.tables.TableFormat;
import io.icebergcrypto.spark.columns.FormatChecks;
import io.icebergcrypto.spark.columns.LateSettings;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Checks writes of Parquet files, and of other programs' tables of them, before they begin. */
public final class ParquetWrites extends FormatChecks {
  /** Spark makes one by this constructor. */
  public ParquetWrites() {
    super("parquet", SessionProperties.OF_PARQUET);
  }

  @Override
  protected boolean isOf(Class<?> fileFormat) {
    return ParquetFileFormat.class.isAssignableFrom(fileFormat);
  }

  @Override
  protected Set<String> keyed(Configuration hadoop, StructType columns) {
    return ParquetCryptoFactory.isSet(hadoop)
        ? ParquetCryptoFactory.choices(hadoop).keyed(List.of(columns.fieldNames()))
        : Set.of();
  }

  @Override
  protected boolean opensKeyed(Configuration hadoop) {
    return ParquetCryptoFactory.isSet(hadoop);
  }

  @Override
  protected Configuration stricter(Configuration ofTable, Configuration session) {
    return ParquetCryptoFactory.stricter(ofTable, session);
  }

  /** The footer has it: plaintext, or under another key than the columns'. */
  @Override
  protected boolean showsSchema(Configuration hadoop) {
    if (!ParquetCryptoFactory.isSet(hadoop)) {
      return false;
    }

    ColumnChoices choices = ParquetCryptoFactory.choices(hadoop);
    return choices.namesKeys() && (choices.footerKey() == null || !choices.columnKeys().isEmpty());
  }

  @Override
  protected void checkWrite(
      InsertIntoHadoopFsRelationCommand write, Configuration hadoop, StructType columns) {
    if (ParquetCryptoFactory.isSet(hadoop)) {
      ColumnChoices chosen = ParquetCryptoFactory.choices(hadoop);
      if (chosen.keysBeside() && write.catalogTable().exists(table -> isElsewhere(write, table))) {
        KeyFiles.check(chosen, name(write.catalogTable().get()), KeyFiles.PARTITIONS_ELSEWHERE);
      }
    }

    ParquetCryptoFactory.check(
        hadoop,
        write.outputPath(),
        new SparkToParquetSchemaConverter(SparkSession.active().sessionState().conf())
            .convert(columns));
  }

  /** Whether a partition that may be written is not where Spark would put it. */
  private static boolean isElsewhere(InsertIntoHadoopFsRelationCommand write, CatalogTable table) {
    return table.tracksPartitionsInCatalog()
        && table.partitionColumnNames().nonEmpty() // of Hive's tables, all track partitions
        && SparkSession.active()
            .sessionState()
            .catalog()
            .listPartitions(table.identifier(), Option.apply(write.staticPartitions()))
            .exists(
                partition -> {
                  if (partition.storage().locationUri().isEmpty()) {
                    return false;
                  }

                  String name =
                      PartitioningUtils.getPathFragment(partition.spec(), table.partitionSchema());
                  Path usual = write.outputPath().suffix("/" + name);
                  Path own = new Path(partition.location());
                  return !own.makeQualified(usual.toUri(), usual)
                      .equals(usual.makeQualified(own.toUri(), own));
                });
  }

  @Override
  protected void checkSession(String target, Configuration hadoop) {
    ParquetCryptoFactory.checkSession(hadoop, target);
  }

  /**
   * The names, sorted, of those settings of keys that a session does not have, or has with other
   * values.
   *
   * @param settings by names in any case; others than of keys do not count
   */
  static List<String> unlike(Map<String, String> settings, Configuration session) {
    return LateSettings.unlike(
        settings,
        SessionProperties::isOfParquet,
        name -> session.get(name.toLowerCase(Locale.ROOT)));
  }

  /** Hive's writer has the session's settings. Those of a table or a write would do nothing. */
  @Override
  protected void checkHiveWrite(String target, Configuration hadoop) {
    Configuration session = SparkSession.active().sessionState().newHadoopConf();
    List<String> ignored =
        unlike(SessionProperties.below(hadoop, SessionProperties.OF_PARQUET), session);
    if (!ignored.isEmpty()) {
      throw new NotSupportedException(
          String.format(
              "%s of %s would do nothing: Hive's own writer, which writes the Parquet files, takes"
                  + " keys only from the session",
              String.join(", ", ignored), target),
          "Have Spark write them: with spark.sql.hive.convertMetastoreParquet=true, or into a"
              + " table created with USING parquet. Or leave these properties out, and name the"
              + " keys in the session. Nothing was written.");
    }

    if (ParquetCryptoFactory.isSet(session)) {
      KeyFiles.check(ParquetCryptoFactory.choices(session), target, TableFormat.HIVE.label());
    }
  }

  @Override
  protected void checkOther(LogicalPlan plan) {
    SparkSession spark = SparkSession.active();
    HudiWrites.check(spark, plan);
    DeltaProperties.checkWrite(plan);
    OtherWrites.check(spark, plan);
  }

  @Override
  protected void checkStored(HadoopFsRelation files) {
    DeltaProperties.checkRead(files);
  }
}
