package io.icebergcrypto.kms.http;

import io.icebergcrypto.kms.call.KeyCache;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/**
 * An answer's body as text, up to a limit: a server that sends more is not a KMS, and must not fill
 * the memory.
 */
final class LimitedBody implements BodySubscriber<String> {
  /** No answer of a KMS comes near: the longest is a page of 25 key versions. */
  static final int MOST_BYTES = 1 << 20;

  /** The body is longer than that; the connection is given up. */
  static final class TooLongException extends IOException {
    private static final long serialVersionUID = 1L;
    private final int status;

    private TooLongException(int status) {
      super("an answer of more than " + MOST_BYTES + " bytes");
      this.status = status;
    }

    int status() {
      return status;
    }
  }

  private final int status;
  private final CompletableFuture<String> body = new CompletableFuture<>();
  private final ByteArrayOutputStream received = new ByteArrayOutputStream();
  private Flow.Subscription subscription;

  /**
   * One for an answer.
   *
   * @param status the answer's, for the error
   */
  LimitedBody(int status) {
    this.status = status;
  }

  @Override
  public CompletionStage<String> getBody() {
    return body;
  }

  @Override
  public void onSubscribe(Flow.Subscription subscription) {
    this.subscription = subscription;
    subscription.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> parts) {
    for (ByteBuffer part : parts) {
      if (body.isDone() || received.size() + part.remaining() > MOST_BYTES) {
        subscription.cancel();
        body.completeExceptionally(new TooLongException(status));
        return;
      }

      received.writeBytes(KeyCache.copyOf(part));
    }
  }

  @Override
  public void onError(Throwable failure) {
    body.completeExceptionally(failure);
  }

  @Override
  public void onComplete() {
    body.complete(received.toString(StandardCharsets.UTF_8));
  }
}
