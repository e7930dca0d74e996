package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Procedure;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;

/**
 * {@code expire_snapshots}: unless the caller says otherwise, the driver takes the files to delete
 * from one partition after another, and does not hold all of them at once.
 */
final class ExpireSnapshots extends IcebergProcedure {
  static final String NAME = "expire_snapshots";

  ExpireSnapshots(Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    super(procedure, catalog, encrypted);
  }

  @Override
  Iterator<Scan> call(Procedure icebergs, InternalRow input) {
    int streams = indexOf("stream_results");
    return icebergs.call(input.isNullAt(streams) ? with(input, streams, true) : input);
  }
}
