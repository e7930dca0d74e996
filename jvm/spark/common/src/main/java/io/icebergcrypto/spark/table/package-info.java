/** Tables as SQL names them, which of them there are, what is done to each, and how far that is. */
package io.icebergcrypto.spark.table;
