/**
 * Other programs' tables whose Parquet files have keys, and what these programs keep beside them.
 */
package io.icebergcrypto.parquet.tables;
