package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.SqlNames;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hive.common.util.HiveVersionInfo;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.hadoop.ConfigProperties;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.hive.HiveTableOperations;

/**
 * Whether commits to a Hive metastore take locks. Without them the metastore itself must compare
 * the location of the metadata that a commit is based on (HIVE-26882, in Hive since 2.3.10); an
 * older one takes every commit, and those of other writers are lost without an error.
 */
final class HiveLocks {
  private HiveLocks() {}

  /**
   * Checks that no commit gets lost in the metastore inside this process, which is as old as the
   * Hive on the class path. What a metastore elsewhere does is not known here.
   *
   * @param metadata what is to be committed. Not its base, on which Iceberg decides: a commit has
   *     to be able to switch the locks on again.
   * @throws InvalidConfigurationException locks are switched off, and this metastore needs them
   */
  static void check(HiveCatalog catalog, HiveTableOperations table, TableMetadata metadata) {
    Configuration conf = catalog.getConf();
    boolean byDefault =
        conf.getBoolean(
            ConfigProperties.LOCK_HIVE_ENABLED, TableProperties.HIVE_LOCK_ENABLED_DEFAULT);
    if (metadata.propertyAsBoolean(TableProperties.HIVE_LOCK_ENABLED, byDefault)) {
      return;
    }

    String hive = HiveVersionInfo.getVersion();
    if (comparesLocations(hive) || !isEmbedded(conf)) {
      return;
    }

    throw new InvalidConfigurationException(
            String.format(
                "commits take no locks (%s or the table's %s is false), and the embedded metastore,"
                    + " of Hive %s, then loses concurrent commits",
                ConfigProperties.LOCK_HIVE_ENABLED, TableProperties.HIVE_LOCK_ENABLED, hive),
            "Leave these properties out, with a metastore that has lock tables; or use another"
                + " catalog, or Spark 4.0 or later, whose Hive 2.3.10 needs no locks.")
        .inTable(SqlNames.full(catalog.name(), new String[] {table.database()}, table.table()));
  }

  /** Whether a metastore of this version compares locations when it is asked to. */
  static boolean comparesLocations(String hive) {
    String[] parts = hive.split("[^0-9]+");
    int major = number(parts, 0);
    boolean is23 = major == 2 && number(parts, 1) == 3;
    return major > 3 || is23 && number(parts, 2) >= 10;
  }

  private static int number(String[] parts, int index) {
    return index < parts.length && !parts[index].isEmpty() ? Integer.parseInt(parts[index]) : 0;
  }

  private static boolean isEmbedded(Configuration conf) {
    return new HiveConf(conf, HiveLocks.class).getVar(HiveConf.ConfVars.METASTOREURIS).isBlank();
  }
}
