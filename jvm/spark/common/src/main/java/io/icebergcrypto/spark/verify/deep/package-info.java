/**
 * Checks one encrypted file as a whole: the authentication tag of every block of an AES GCM stream,
 * and of every module of an encrypted Parquet file. Iceberg and Parquet do the cryptography.
 *
 * <p>Every byte read here may have been written by an attacker. Memory is bounded by what is
 * authenticated: a length that is not is never believed.
 */
package io.icebergcrypto.spark.verify.deep;
