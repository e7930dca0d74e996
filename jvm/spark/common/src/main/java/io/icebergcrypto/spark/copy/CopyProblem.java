package io.icebergcrypto.spark.copy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.lifecycle.CopyMetadata;
import io.icebergcrypto.lifecycle.PathMapping;

/** Why a file, and so its table, cannot be copied. */
enum CopyProblem {
  /** It is not below the source prefix. */
  OUTSIDE,
  /** It has no key. */
  PLAINTEXT,
  /** It holds paths, in another format than Iceberg writes for encrypted tables. */
  POSITION_DELETES;

  IcebergCryptoException refusal(String table, String path, PathMapping paths) {
    return switch (this) {
      case OUTSIDE -> CopyMetadata.outside(table, path, paths);
      case PLAINTEXT -> CopyMetadata.plaintext(table, path);
      case POSITION_DELETES ->
          new NotSupportedException(
                  String.format(
                      "nothing was written: %s is a position delete file of format version 2",
                      path),
                  "Have rewrite_position_delete_files make deletion vectors of such files, and"
                      + " copy the table when the older snapshots that have them have expired.")
              .inTable(table);
    };
  }
}
