/** Metadata tables without the data keys that are in their columns. */
package io.icebergcrypto.spark.metadata;
