package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.Map;
import scala.runtime.BoxedUnit;

/**
 * Options of tables in a metastore: whoever creates a table writes them there, and others read and
 * write with them, and with their own credentials. So no table has a KMS of its own.
 */
final class StoredOptions {
  private static final String PLAINTEXT_READS = ParquetCryptoFactory.PLAINTEXT_READS;

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

  /** Whether it is the name of the option that turns keys of Parquet files on. */
  private static boolean isFactory(String option) {
    return option.equalsIgnoreCase(EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME);
  }

  /**
   * Checks the table that a part of a statement reads or writes.
   *
   * @throws InvalidConfigurationException when its options name another KMS than the session
   */
  static void check(LogicalPlan plan) {
    if (plan instanceof LogicalRelation read && read.catalogTable().isDefined()) {
      CatalogTable table = read.catalogTable().get();
      if (read.relation() instanceof HadoopFsRelation files) {
        check(table, files.options());
        checkRead(table, files.options());
      } else {
        check(table);
      }
    } else if (plan instanceof HiveTableRelation read) {
      check(read.tableMeta());
      checkRead(read.tableMeta(), read.tableMeta().storage().properties());
    } else if (plan instanceof InsertIntoHadoopFsRelationCommand write
        && write.catalogTable().isDefined()) {
      check(write.catalogTable().get(), write.options());
    } else if (plan instanceof View view && !view.isTempView()) {
      view.child().foreach(part -> checkView(view.desc(), part));
    }

    for (Object part : FromScala.parts(plan)) { // a stream's source
      if (part instanceof DataSource source && source.catalogTable().isDefined()) {
        check(source.catalogTable().get());
        checkRead(source.catalogTable().get(), source.options());
      }
    }
  }

  /**
   * Checks a table as a session has cached it and, if the options in force are unlike the session's
   * settings, as it is now: versions of Spark differ in what they cache. Options that are in
   * neither are the statement's own.
   */
  private static void check(CatalogTable cached, Map<String, String> inForce) {
    check(cached);
    CatalogTable now =
        unlike(inForce).isEmpty() ? null : FormatChecks.tableOrNull(cached.identifier());
    if (now != null) {
      check(now);
    }
  }

  /** From Spark 4 on, the text of a view may have options, also for a table. */
  private static BoxedUnit checkView(CatalogTable view, LogicalPlan part) {
    if (part instanceof LogicalRelation read && read.relation() instanceof HadoopFsRelation files) {
      CatalogTable owner = view;
      if (read.catalogTable().isDefined()) {
        CatalogTable table = read.catalogTable().get();
        check(table, files.options());
        if (ignoringCase(table.storage().properties()).contains(PLAINTEXT_READS)) {
          owner = table;
        }
      }

      refuse(view, files.options());
      checkRead(owner, files.options());
    }

    return BoxedUnit.UNIT;
  }

  /**
   * Checks the options in force, whoever set them: a session may have cached a table's old ones.
   */
  private static void checkRead(CatalogTable table, Map<String, String> inForce) {
    SessionState session = SparkSession.active().sessionState();
    Map<String, String> options = ignoringCase(inForce);
    if (options.contains(PLAINTEXT_READS)
        && !ParquetCryptoFactory.readsPlaintext(session.newHadoopConf())
        && ParquetCryptoFactory.readsPlaintext(session.newHadoopConfWithOptions(options))) {
      String name = table.identifier().unquotedString();
      forget(table);
      throw new InvalidConfigurationException(
          String.format(
              "Table %s has the option %s=%s, and this session refuses plaintext",
              name, PLAINTEXT_READS, options.get(PLAINTEXT_READS).get()),
          table.viewText().isDefined()
              ? "It is a view: recreate it without this option."
              : String.format(
                  "ALTER TABLE %s SET SERDEPROPERTIES ('%s'='refuse'), and read it again. If it is"
                      + " an option of the read, leave it out.",
                  name, PLAINTEXT_READS));
    }
  }

  private static Map<String, String> ignoringCase(Map<String, String> options) {
    return CaseInsensitiveMap$.MODULE$.apply(options);
  }

  /**
   * Checks a table.
   *
   * @throws InvalidConfigurationException when its options name another KMS than the session
   */
  static void check(CatalogTable table) {
    refuse(table, table.storage().properties());
    refuse(table, table.properties());
  }

  /** The names of options that say which KMS is used, or whether one is, unlike the session. */
  private static List<String> unlike(Map<String, String> options) {
    if (!options.keysIterator().exists(name -> isOfKms(name) || isFactory(name))) {
      return List.of();
    }

    Configuration session = SparkSession.active().sessionState().newHadoopConf();
    boolean hasFactory = ParquetCryptoFactory.isSet(session);
    return LateSettings.unlike(
        FromScala.map(options),
        name -> isOfKms(name) || hasFactory && isFactory(name),
        session::get);
  }

  private static void refuse(CatalogTable table, Map<String, String> options) {
    List<String> found = unlike(options);
    if (!found.isEmpty()) {
      forget(table);
      throw new InvalidConfigurationException(
          String.format(
              "Table %s has options that say which KMS is used, or whether one is, unlike this"
                  + " session: %s",
              table.identifier().unquotedString(), String.join(", ", found)),
          "A KMS gets the credentials of whoever uses the table, so only the session says which it"
              + " is. Find out who created the table; create it without these options.");
    }
  }

  /** Drops what the session has cached of a table: it may be older than the table. */
  private static void forget(CatalogTable table) {
    SparkSession.active().sessionState().catalog().refreshTable(table.identifier());
  }
}
