/** PKCS12 files. */
package io.icebergcrypto.kms.keystore;
