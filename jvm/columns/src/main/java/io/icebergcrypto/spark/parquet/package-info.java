/** Checks of what Spark is about to write into its own Parquet tables. */
package io.icebergcrypto.spark.parquet;
