/** Encrypts plaintext tables in place: Spark jobs copy their rows, and compare them. */
package io.icebergcrypto.spark.migrate;
