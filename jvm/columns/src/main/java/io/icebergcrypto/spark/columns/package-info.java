/** Checks of what Spark is about to write into, or read from, its own tables of files. */
package io.icebergcrypto.spark.columns;
