/**
 * AES GCM streams (AES GCM Stream spec), written and counted: blocks and buffers here, the
 * cryptography of a block is Iceberg's. Its own streams have buffers of 2 MiB each, regardless of a
 * file's length.
 */
package io.icebergcrypto.io.stream;
