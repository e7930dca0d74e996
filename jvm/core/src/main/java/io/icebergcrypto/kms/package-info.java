/**
 * Where master keys are. A client wraps and unwraps KEKs under a master key that never leaves its
 * KMS; {@link io.icebergcrypto.kms.KmsClients} makes the one that a catalog names, and puts it
 * behind {@link io.icebergcrypto.kms.CachingKmsClient}.
 *
 * <p>A layer uses only those after it: this package with the clients' public names; a package for
 * each KMS ({@code vault}, {@code aws}, {@code gcp}, {@code azure}, {@code pkcs11}, {@code hadoop},
 * {@code keystore}), of which none uses another; {@code http} and {@code blob}; {@code call};
 * {@code config}.
 */
package io.icebergcrypto.kms;
