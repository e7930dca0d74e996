/** A table's copy at another location: Spark jobs write anew what holds paths, under new keys. */
package io.icebergcrypto.spark.copy;
