package io.icebergcrypto.spark.copy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.lifecycle.copy.CopiedMetadata;
import io.icebergcrypto.lifecycle.copy.MovedPaths;

/** Why a file, and so its table, cannot be copied. */
enum CopyProblem {
  /** It is not below the source prefix. */
  OUTSIDE {
    @Override
    IcebergCryptoException refusal(String table, String path, MovedPaths paths) {
      return CopiedMetadata.outside(table, path, paths);
    }
  },

  /** It has no key. */
  PLAINTEXT {
    @Override
    IcebergCryptoException refusal(String table, String path, MovedPaths paths) {
      return CopiedMetadata.plaintext(table, path);
    }
  },

  /** It holds paths, in another format than Iceberg writes for encrypted tables. */
  POSITION_DELETES {
    @Override
    IcebergCryptoException refusal(String table, String path, MovedPaths paths) {
      return new NotSupportedException(
              String.format(
                  "nothing was written: %s is a position delete file of format version 2", path),
              "Have rewrite_position_delete_files make deletion vectors of such files, and copy the"
                  + " table when the older snapshots that have them have expired.")
          .inTable(table);
    }
  };

  abstract IcebergCryptoException refusal(String table, String path, MovedPaths paths);
}
