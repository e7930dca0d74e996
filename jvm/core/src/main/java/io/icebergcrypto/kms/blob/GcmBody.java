package io.icebergcrypto.kms.blob;

import io.icebergcrypto.BadWrappedKeyException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;

/**
 * The body of a {@link WrappedKey} that was wrapped with AES-GCM here (keystore, PKCS#11, and the
 * end of Hadoop KMS's): nonce (12 bytes) | ciphertext | tag (16).
 */
public final class GcmBody {
  private static final int NONCE_LENGTH = 12;
  private static final int TAG_LENGTH = 16;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Makes a cipher of one version of a master key, with the additional data given to it. */
  public interface Ciphers {
    /**
     * @param mode {@link Cipher#ENCRYPT_MODE} or {@link Cipher#DECRYPT_MODE}
     * @param parameters the nonce and the tag's length
     */
    Cipher with(int mode, GCMParameterSpec parameters) throws GeneralSecurityException;
  }

  private GcmBody() {}

  /** Encrypts a key under a random nonce. */
  public static byte[] seal(byte[] key, Ciphers ciphers) throws GeneralSecurityException {
    byte[] nonce = new byte[NONCE_LENGTH];
    RANDOM.nextBytes(nonce);
    byte[] sealed = ciphers.with(Cipher.ENCRYPT_MODE, parameters(nonce)).doFinal(key);
    byte[] body = Arrays.copyOf(nonce, NONCE_LENGTH + sealed.length);
    System.arraycopy(sealed, 0, body, NONCE_LENGTH, sealed.length);
    return body;
  }

  /**
   * Decrypts a body.
   *
   * @throws javax.crypto.AEADBadTagException when another key, other additional data or other bytes
   *     were encrypted
   */
  public static byte[] open(byte[] body, Ciphers ciphers) throws GeneralSecurityException {
    byte[] nonce = Arrays.copyOf(body, NONCE_LENGTH);
    return ciphers
        .with(Cipher.DECRYPT_MODE, parameters(nonce))
        .doFinal(body, NONCE_LENGTH, body.length - NONCE_LENGTH);
  }

  /**
   * Reads a wrapped key that must have such a body, and a version of the master key.
   *
   * @param wrapped the blob
   * @param kms the KMS's type
   * @param keyId the master key's id
   * @param where the keystore or token, for the error
   * @throws BadWrappedKeyException when it has none, or was not wrapped by this KMS
   */
  public static WrappedKey parse(ByteBuffer wrapped, String kms, String keyId, String where) {
    WrappedKey parsed = WrappedKey.parse(wrapped, kms, keyId);
    if (parsed.keyVersion() == 0 || !isLongEnough(parsed.body().length)) {
      throw new BadWrappedKeyException(
          String.format("A %s was not wrapped by %s under '%s'", parsed, where, keyId),
          "The table's metadata was changed or cut off: restore it.");
    }

    return parsed;
  }

  /** Whether a body of so many bytes can hold a key. */
  public static boolean isLongEnough(int length) {
    return length > NONCE_LENGTH + TAG_LENGTH;
  }

  private static GCMParameterSpec parameters(byte[] nonce) {
    return new GCMParameterSpec(TAG_LENGTH * 8, nonce);
  }
}
