package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.config.EncryptionProperties;
import java.util.Map;
import org.apache.iceberg.BaseMetastoreTableOperations;
import org.apache.iceberg.hive.HiveTableOperations;
import org.apache.iceberg.hive.RuntimeMetaException;
import org.apache.thrift.TException;

/**
 * The hash of an encrypted table's metadata in a Hive metastore. Iceberg compares it with each load
 * if it is there, and loads the table without a word if it is not.
 */
final class HiveHash {
  private HiveHash() {}

  /** Asks the metastore whether it has the hash of a table. */
  static boolean isKept(HiveTableOperations table) {
    try {
      Map<String, String> kept = table.loadHmsTable().getParameters();
      return kept.containsKey(EncryptionProperties.KEY_ID)
          && kept.containsKey(BaseMetastoreTableOperations.METADATA_HASH_PROP);
    } catch (TException e) {
      throw failed(table, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failed(table, e);
    }
  }

  private static RuntimeException failed(HiveTableOperations table, Exception e) {
    return new RuntimeMetaException(
        e, "Failed to get table info from metastore %s.%s", table.database(), table.table());
  }
}
