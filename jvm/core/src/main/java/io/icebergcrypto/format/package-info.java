/**
 * What a file on storage is, told from its bytes and without a key: magic numbers, the AES GCM
 * stream's block layout, the Parquet footer's encryption settings.
 *
 * <p>Every byte read here may have been written by an attacker. A parser of this package gives a
 * value or an {@link io.icebergcrypto.IcebergCryptoException}, in bounded time and from a few KiB.
 * It proves nothing about authenticity: only decryption with the right key and AAD does.
 */
package io.icebergcrypto.format;
