package io.icebergcrypto.kms.call;

/**
 * A KMS client that can bind wrapped keys to the UUID of the table they are for, as AWS's
 * encryption context and Google's additional authenticated data do: the KMS then unwraps them for
 * that table alone.
 */
public interface TableBinding {
  /** Whether the user chose so. Such a key is lost to a table whose UUID becomes another. */
  boolean bindsTable();
}
