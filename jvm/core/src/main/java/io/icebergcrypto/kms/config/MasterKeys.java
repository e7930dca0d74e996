package io.icebergcrypto.kms.config;

import java.nio.ByteBuffer;

/**
 * The master keys of one KMS as one JVM reaches them, with the login and the connections that this
 * takes. It does not travel: {@link KmsConfig} does. Many threads use it at once.
 */
public interface MasterKeys extends AutoCloseable {
  /** How the hint of a missing key ends, once it has told how to create one for a new table. */
  String IF_IN_USE =
      " If tables use it already, do not create it: use the KMS that they were written with, or"
          + " restore the key from a backup.";

  /**
   * Wraps a key.
   *
   * @param key the plaintext; the caller overwrites it afterwards
   * @param keyId the master key's id
   */
  ByteBuffer wrap(byte[] key, String keyId);

  /**
   * Unwraps a key.
   *
   * @param wrapped stays as it is
   * @param keyId the master key's id
   */
  ByteBuffer unwrap(ByteBuffer wrapped, String keyId);

  @Override
  default void close() {}
}
