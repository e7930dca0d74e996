package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
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
    } else if (plan instanceof View view && !view.isTempView()) {
      view.child().foreach(part -> checkView(view.desc(), part));
    }

    for (Object part : FromScala.parts(plan)) { // a stream's source
      if (part instanceof DataSource source && source.catalogTable().isDefined()) {
        check(source.catalogTable().get());
      }
    }
  }

  /** From Spark 4 on, the text of a view may have options. */
  private static BoxedUnit checkView(CatalogTable view, LogicalPlan part) {
    if (part instanceof LogicalRelation read
        && read.catalogTable().isEmpty()
        && read.relation() instanceof HadoopFsRelation files) {
      check(view, files.options());
    }

    return BoxedUnit.UNIT;
  }

  /**
   * Checks a table.
   *
   * @throws InvalidConfigurationException when its options name another KMS than the session
   */
  static void check(CatalogTable table) {
    check(table, table.storage().properties());
    check(table, table.properties());
  }

  private static void check(CatalogTable table, Map<String, String> options) {
    if (!options.keysIterator().exists(StoredOptions::isOfKms)) {
      return;
    }

    Configuration session = SparkSession.active().sessionState().newHadoopConf();
    Set<String> found = new TreeSet<>();
    FromScala.map(options)
        .forEach(
            (name, value) -> {
              if (isOfKms(name) && !value.equals(session.get(name))) {
                found.add(name);
              }
            });
    if (!found.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Table %s has options that say which KMS is used, unlike this session: %s",
              table.identifier().unquotedString(), String.join(", ", found)),
          "A KMS gets the credentials of whoever uses the table, so only the session says which it"
              + " is. Find out who created the table; create it without these options.");
    }
  }
}
