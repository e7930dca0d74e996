package io.icebergcrypto.testing;

import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.testing.NumberedCalls.Call;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicReference;

/** The keystore's client, whose calls are numbered, and which may lie. */
public final class NumberedKms extends KeystoreDouble {
  private static final long serialVersionUID = 1L;

  private static final byte[] ANOTHER_KEY = XorKms.WRONG_KEY;

  private static final ConcurrentMap<Kind, ByteBuffer> FIRST = new ConcurrentHashMap<>();
  private static final AtomicReference<Answers> SWAPPED = new AtomicReference<>();
  private static volatile Lie lie = Lie.EMPTY;

  /** An answer for who comes, and what they leave. */
  private static final class Answers {
    private final ByteBuffer left;
    private volatile ByteBuffer taken;

    private Answers(ByteBuffer left) {
      this.left = left;
      this.taken = left;
    }
  }

  /** How it lies, where it does: see {@link NumberedCalls}. */
  public static void liesWith(Lie newLie) {
    lie = newLie;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    Call<ByteBuffer, RuntimeException> honest =
        () -> honest(Kind.WRAP, super.wrapKey(key, wrappingKeyId));
    byte[] another = Arrays.copyOf(ANOTHER_KEY, key.remaining());
    return NumberedCalls.ofKms(
        Kind.WRAP,
        wrappingKeyId,
        honest,
        () ->
            lie == Lie.ANOTHER_KEY
                ? super.wrapKey(ByteBuffer.wrap(another), wrappingKeyId)
                : lie(Kind.WRAP, honest),
        NumberedKms::failure);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    Call<ByteBuffer, RuntimeException> honest =
        () -> honest(Kind.UNWRAP, super.unwrapKey(wrappedKey, wrappingKeyId));
    return NumberedCalls.ofKms(
        Kind.UNWRAP,
        wrappingKeyId,
        honest,
        () ->
            lie == Lie.ANOTHER_KEY
                ? ByteBuffer.wrap(Arrays.copyOf(ANOTHER_KEY, honest.make().remaining()))
                : lie(Kind.UNWRAP, honest),
        NumberedKms::failure);
  }

  private static RuntimeException failure(Fault fault, String text) {
    return fault == Fault.EXPIRED
        ? new LoginFailedException("the token has expired", "Get another one.")
        : new RuntimeException(text);
  }

  /** The right answer, or that to another client that waits for its own. */
  private static ByteBuffer honest(Kind kind, ByteBuffer answer) {
    FIRST.putIfAbsent(kind, ByteBuffer.wrap(KeyCache.copyOf(answer)));
    Answers other = SWAPPED.getAndSet(null);
    if (other == null) {
      return answer;
    }

    other.taken = answer;
    return other.left;
  }

  private static ByteBuffer lie(Kind kind, Call<ByteBuffer, RuntimeException> honest) {
    return switch (lie) {
      case OLD_ANSWER -> {
        ByteBuffer old = FIRST.get(kind);
        yield old == null ? honest.make() : ByteBuffer.wrap(KeyCache.copyOf(old));
      }
      case SHORT -> ByteBuffer.wrap(Arrays.copyOf(KeyCache.copyOf(honest.make()), 15));
      case EMPTY -> ByteBuffer.allocate(0);
      case SWAPPED -> {
        Answers answers = new Answers(honest.make());
        SWAPPED.set(answers);
        NumberedCalls.meanwhile();
        SWAPPED.set(null);
        yield answers.taken;
      }
      default -> throw new IllegalStateException(lie.name());
    };
  }
}
