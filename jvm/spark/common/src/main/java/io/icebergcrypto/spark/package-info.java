/**
 * Spark's catalogs: Iceberg's classes with encryption. They translate for Spark; what protects a
 * table is in core.
 */
package io.icebergcrypto.spark;
