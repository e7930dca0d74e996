/**
 * SQL procedures: those of this project, and guards in front of those of Iceberg that would write
 * plaintext files.
 */
package io.icebergcrypto.spark.procedures;
