package io.icebergcrypto.benchmarks;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * A double of a KMS that answers after a time, and counts. Its one master key, which every key id
 * names, lives as long as this JVM, so all its clients are of one KMS.
 */
public final class SlowKms implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;
  private static final int NONCE = 12;
  private static final int TAG_BITS = 128;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final SecretKey MASTER_KEY = masterKey();

  private static long latencyMillis;
  private static int wraps;
  private static int unwraps;
  private static int underWay;
  private static int waits;

  /** Made by Iceberg. */
  public SlowKms() {}

  /** What each call takes from now on. */
  public static synchronized void setLatencyMillis(long millis) {
    latencyMillis = millis;
  }

  /**
   * What was called since this was last asked: wraps, unwraps, and how often a caller had to wait.
   * Calls that overlap are one wait.
   */
  public static synchronized int[] take() {
    int[] counted = {wraps, unwraps, waits};
    wraps = 0;
    unwraps = 0;
    waits = 0;
    return counted;
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    answer(true);
    byte[] nonce = new byte[NONCE];
    RANDOM.nextBytes(nonce);
    byte[] wrapped = crypt(Cipher.ENCRYPT_MODE, key.duplicate(), nonce, wrappingKeyId);
    return ByteBuffer.allocate(NONCE + wrapped.length).put(nonce).put(wrapped).flip();
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    answer(false);
    ByteBuffer rest = wrappedKey.duplicate();
    byte[] nonce = new byte[NONCE];
    rest.get(nonce);
    return ByteBuffer.wrap(crypt(Cipher.DECRYPT_MODE, rest, nonce, wrappingKeyId));
  }

  private static byte[] crypt(int mode, ByteBuffer input, byte[] nonce, String keyId) {
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, MASTER_KEY, new GCMParameterSpec(TAG_BITS, nonce));
      cipher.updateAAD(keyId.getBytes(java.nio.charset.StandardCharsets.UTF_8));
      byte[] bytes = new byte[input.remaining()];
      input.get(bytes);
      return cipher.doFinal(bytes);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void answer(boolean wrap) {
    long millis = begin(wrap);
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UncheckedIOException(new java.io.InterruptedIOException("a call to the KMS"));
    } finally {
      end();
    }
  }

  private static synchronized long begin(boolean wrap) {
    if (wrap) {
      wraps++;
    } else {
      unwraps++;
    }
    if (underWay++ == 0) {
      waits++;
    }
    return latencyMillis;
  }

  private static synchronized void end() {
    underWay--;
  }

  private static SecretKey masterKey() {
    try {
      KeyGenerator generator = KeyGenerator.getInstance("AES");
      generator.init(256);
      return generator.generateKey();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
