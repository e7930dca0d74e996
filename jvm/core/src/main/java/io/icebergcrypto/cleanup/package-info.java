/**
 * Deletes the files of encrypted tables that are dropped or whose snapshots expire, which Iceberg
 * cannot: it takes the key to find them. Where the key is lost, the table's folder is deleted.
 */
package io.icebergcrypto.cleanup;
