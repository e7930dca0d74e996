/** The form of wrapped keys where this project chooses it, and the versions of master keys. */
package io.icebergcrypto.kms.blob;
