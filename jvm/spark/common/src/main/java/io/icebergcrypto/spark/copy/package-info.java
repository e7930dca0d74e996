/** A table's copy at another location: Spark jobs rewrite what holds paths, under new keys. */
package io.icebergcrypto.spark.copy;
