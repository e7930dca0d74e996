package io.icebergcrypto.catalog;

import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.io.StatisticsFileIO;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.FailFastFileIO;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.FileIO;

/**
 * Makes the FileIO of a table.
 *
 * @param plaintextFiles whether data and delete files without a key may be read
 * @param statistics what becomes of statistics files
 * @param asStored whether an audit reads the table, which looks at the bytes of all files
 */
record TableStorage(boolean plaintextFiles, StatisticsPolicy statistics, boolean asStored) {
  TableStorage forAudit() {
    return new TableStorage(true, statistics, true);
  }

  /**
   * Opens a table's storage.
   *
   * @param behind the table's operations in the catalog behind
   * @param manager the manager of its keys, null for a table that is not encrypted
   */
  FileIO open(TableOperations behind, TableEncryptionManager manager) {
    FileIO plain = FailFastFileIO.below(behind.io());
    if (manager == null) {
      return plain;
    }

    FileIO storage = TableFileIO.storageBelow(plain);
    FileIO guarded =
        asStored ? storage : StatisticsFileIO.guarded(storage, manager, plaintextFiles, statistics);
    return TableFileIO.combine(storage, guarded, manager);
  }
}
