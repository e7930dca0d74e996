/**
 * Deletes what a table was before it was encrypted in place, from its data to its metadata, and
 * proves after each step that it is gone.
 */
package io.icebergcrypto.spark.migrate.purge;
