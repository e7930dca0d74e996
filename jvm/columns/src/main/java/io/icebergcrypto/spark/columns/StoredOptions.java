package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Map;
import scala.runtime.BoxedUnit;

/**
 * Options of tables in a metastore: whoever creates a table writes them there, and others read and
 * write with them, and with their own credentials. So no table has a KMS of its own.
 */
final class StoredOptions {
  private StoredOptions() {}

  /** Whether the name of an option says which KMS is used, or with which keys. */
  static boolean isOfKms(String option) {
    if (!PropertyReader.isBelow(option, KmsProperties.HADOOP_PREFIX)) {
      return false;
    }

    String name = option.substring(KmsProperties.HADOOP_PREFIX.length());
    return KmsProperties.isOfKms(name)
        || name.equalsIgnoreCase(EncryptionProperties.ALLOWED_KEY_IDS);
  }

  /**
   * Checks the table that a part of a statement reads or writes.
   *
   * @throws InvalidConfigurationException when its options name another KMS than the session
   */
  static void check(LogicalPlan plan) {
    if (plan instanceof LogicalRelation read && read.catalogTable().isDefined()) {
      check(read.catalogTable().get());
    } else if (plan instanceof HiveTableRelation read) {
      check(read.tableMeta());
    } else if (plan instanceof InsertIntoHadoopFsRelationCommand write
        && write.catalogTable().isDefined()) {
      check(write.catalogTable().get());
    }
  }

  /**
   * Checks a table.
   *
   * @throws InvalidConfigurationException when its options name another KMS than the session
   */
  static void check(CatalogTable table) {
    TreeSet<String> found = new TreeSet<>();
    Configuration session = SparkSession.active().sessionState().newHadoopConf();
    addUnlike(table.storage().properties(), session, found);
    addUnlike(table.properties(), session, found);
    if (!found.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Table %s has options that say which KMS is used, unlike this session: %s",
              table.identifier().unquotedString(), String.join(", ", found)),
          "A KMS gets the credentials of whoever uses the table, so only the session says which it"
              + " is. Find out who created the table; create it without these options.");
    }
  }

  private static void addUnlike(
      Map<String, String> options, Configuration session, TreeSet<String> found) {
    options
        .iterator()
        .foreach(
            option -> {
              if (isOfKms(option._1()) && !option._2().equals(session.get(option._1()))) {
                found.add(option._1());
              }

              return BoxedUnit.UNIT;
            });
  }
}
