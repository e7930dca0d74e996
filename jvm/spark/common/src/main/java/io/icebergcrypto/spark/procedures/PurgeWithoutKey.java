package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.cleanup.PurgedFiles;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL system.purge_without_key(table => ...)}: drops an encrypted table whose key is not
 * available, and deletes its location, which DROP TABLE ... PURGE refuses to do. Returns the number
 * of files, their bytes, and the folders elsewhere that it leaves because other tables may use
 * them.
 */
final class PurgeWithoutKey extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "purge_without_key";

  private static final StructType OUTPUT =
      new StructType()
          .add("deleted_files_count", DataTypes.LongType, false)
          .add("deleted_bytes", DataTypes.LongType, false)
          .add("folders_left", DataTypes.StringType, false);

  PurgeWithoutKey(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Drops an encrypted table whose key cannot be had, and deletes its location";
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    PurgedFiles purged = encrypted.purgeWithoutKey(table);
    String left = String.join(", ", purged.left());
    Object[] row = {purged.files(), purged.bytes(), UTF8String.fromString(left)};
    return List.<Object[]>of(row);
  }
}
