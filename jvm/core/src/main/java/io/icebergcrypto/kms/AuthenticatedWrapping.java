package io.icebergcrypto.kms;

import io.icebergcrypto.kms.config.KmsProperties;

/**
 * A KMS client that knows whether the keys it wraps are authenticated. Iceberg's contract does not
 * say so: a KMS with an asymmetric master key unwraps what anyone wrapped with its public half.
 *
 * <p>Metadata of tables is authenticated with keys that the KMS unwraps, and so only under master
 * keys for which this says yes. A client of the user's own may implement it; for one that does not,
 * the property {@link KmsProperties#AUTHENTICATED_WRAPPING} says it.
 */
public interface AuthenticatedWrapping {
  /**
   * Whether a wrapped key that {@code unwrapKey} takes can be made only by those who may use the
   * master key. Answered from the configuration, without a call of the KMS: yes promises that
   * {@code unwrapKey} refuses a master key of another kind.
   *
   * @param wrappingKeyId the master key's id
   */
  boolean authenticatesWrapping(String wrappingKeyId);
}
