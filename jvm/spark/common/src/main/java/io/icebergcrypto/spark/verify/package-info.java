/** Verification: Spark jobs that read the first bytes of every file that a table reaches. */
package io.icebergcrypto.spark.verify;
