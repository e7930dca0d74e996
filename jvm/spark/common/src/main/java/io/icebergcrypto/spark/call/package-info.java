/** Procedures, apart from how versions of Spark find and call them. */
package io.icebergcrypto.spark.call;
