/** Encrypted tables whose files are rewritten by Iceberg's own actions. */
package io.icebergcrypto.spark.rewrite;
