/**
 * Keys for the footer and the columns of Spark's own Parquet files: Parquet's key tools over this
 * project's KMS clients, with checks in front of them.
 */
package io.icebergcrypto.parquet;
