/** Checks of what Spark is about to write into, or read from, its own ORC tables. */
package io.icebergcrypto.spark.orc;
