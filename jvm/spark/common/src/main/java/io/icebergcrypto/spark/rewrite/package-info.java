/** Encrypted tables whose files are written anew, by Iceberg's own actions. */
package io.icebergcrypto.spark.rewrite;
