package io.icebergcrypto.testing;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** A double of a KMS: it wraps without a secret, and fails or lies when it is told to. */
public class XorKms extends PlainKms {
  private static final long serialVersionUID = 1L;

  /** A key that nobody wrapped. */
  public static final byte[] WRONG_KEY = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  private static final Queue<byte[]> WRONG = new ConcurrentLinkedQueue<>();
  private static volatile RuntimeException failure;
  private static volatile RuntimeException refusal;

  /** What each call of all of them raises from now on; null: nothing. */
  public static void failWith(RuntimeException error) {
    failure = error;
  }

  /** What each call to unwrap raises from now on; null: nothing. */
  public static void refuseUnwraps(RuntimeException error) {
    refusal = error;
  }

  /** What the next answer to an unwrap call is instead, once for each. */
  public static void answer(byte[]... answers) {
    WRONG.clear();
    WRONG.addAll(List.of(answers));
  }

  /** How many of these are left. */
  public static int answersLeft() {
    return WRONG.size();
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    if (failure != null) {
      throw failure;
    }

    byte[] bytes = new byte[key.remaining()];
    key.duplicate().get(bytes);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] ^= 0x55;
    }

    return ByteBuffer.wrap(bytes);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    if (refusal != null) {
      throw refusal;
    }

    byte[] wrong = WRONG.poll();
    return wrong == null ? wrapKey(wrappedKey, wrappingKeyId) : ByteBuffer.wrap(wrong);
  }
}
