/** Azure Key Vault and Managed HSM, by their REST interface; Azure's library logs in. */
package io.icebergcrypto.kms.azure;
