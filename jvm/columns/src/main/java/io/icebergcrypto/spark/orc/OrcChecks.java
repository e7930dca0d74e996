package io.icebergcrypto.spark.orc;

import io.icebergcrypto.orc.OrcColumnKeys;
import io.icebergcrypto.spark.columns.FormatChecks;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.StructType;

/** Checks writes and reads of ORC files before they begin. */
public final class OrcChecks extends FormatChecks {
  /** Spark makes one by this constructor. */
  public OrcChecks() {
    super("orc", List.of("orc.encrypt", "orc.mask", "orc.key.", "iceberg-crypto."));
  }

  @Override
  protected boolean isOf(Class<?> fileFormat) {
    return OrcFileFormat.class.isAssignableFrom(fileFormat);
  }

  @Override
  protected Set<String> keyed(Configuration hadoop, StructType columns) {
    return OrcColumnKeys.keyed(hadoop, OrcUtils.getOrcSchemaString(columns));
  }

  @Override
  protected boolean opensKeyed(Configuration hadoop) {
    return OrcColumnKeys.opens(hadoop);
  }

  @Override
  protected Configuration stricter(Configuration ofTable, Configuration session) {
    return OrcColumnKeys.stricter(ofTable, session);
  }

  @Override
  protected void checkWrite(
      InsertIntoHadoopFsRelationCommand write, Configuration hadoop, StructType columns) {
    OrcColumnKeys.checkWrite(
        hadoop, write.outputPath().toString(), OrcUtils.getOrcSchemaString(columns));
  }

  @Override
  protected void checkSession(String target, Configuration hadoop) {
    OrcColumnKeys.checkSession(hadoop);
  }

  @Override
  protected void checkRead(Configuration hadoop) {
    OrcColumnKeys.checkRead(hadoop);
  }

  @Override
  protected void checkHiveWrite(String target, Configuration hadoop) {
    OrcColumnKeys.checkHiveWrite(hadoop, target);
  }
}
