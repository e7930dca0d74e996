/**
 * AES GCM streams (AES GCM Stream spec): blocks and buffers here, the cryptography of a block is
 * Iceberg's. Its own streams have buffers of 2 MiB each, regardless of a file's length, and read no
 * ranges.
 */
package io.icebergcrypto.io.stream;
