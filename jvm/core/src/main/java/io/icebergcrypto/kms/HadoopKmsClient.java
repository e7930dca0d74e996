package io.icebergcrypto.kms;

/**
 * Master keys in Hadoop KMS, or Apache Ranger KMS, which has the same REST interface. The key id is
 * the name of a key.
 *
 * <p>This KMS encrypts no keys that it is given: it generates data keys, encrypts them under its
 * key (AES/CTR, without authentication), and decrypts them. So each KEK is encrypted here, with
 * AES-GCM (NIST SP 800-38D), under a data key of its own, which is stored encrypted beside it and
 * which only the KMS decrypts. Whatever is changed of the two, the KEK does not unwrap.
 *
 * <p>Configured by the {@code encryption.kms.hadoop.*} properties. The login is a user's name, or
 * that of the process (Hadoop's {@code UserGroupInformation}): a delegation token or Kerberos. Also
 * works as {@code encryption.kms-impl} under a stock catalog.
 */
public final class HadoopKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
