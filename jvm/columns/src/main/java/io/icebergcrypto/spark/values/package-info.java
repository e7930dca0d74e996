/** SQL functions that encrypt, decrypt and mask values, and procedures for their keys. */
package io.icebergcrypto.spark.values;
