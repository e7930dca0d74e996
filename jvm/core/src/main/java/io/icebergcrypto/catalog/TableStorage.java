package io.icebergcrypto.catalog;

import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.io.StatisticsFileIO;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.FailFastFileIO;
import java.util.Collection;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.io.FileIO;

/**
 * Makes the FileIO of a table.
 *
 * @param settings which files without a key may be read and written
 * @param forAudit the keys of older metadata when an audit reads the table, which looks at the
 *     bytes of all files; else null
 */
record TableStorage(CatalogSettings settings, Collection<EncryptedKey> forAudit) {
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
    if (forAudit != null) {
      return TableFileIO.unguarded(storage, manager.forAudit(forAudit, settings.allowedKeyIds()));
    }

    FileIO guarded =
        StatisticsFileIO.guarded(
            storage,
            manager,
            settings.plaintextFiles(),
            settings.filesWithoutLength(),
            settings.statistics());
    return TableFileIO.combine(storage, guarded, manager);
  }
}
