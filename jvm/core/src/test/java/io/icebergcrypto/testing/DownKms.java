package io.icebergcrypto.testing;

import io.icebergcrypto.KmsUnavailableException;
import java.util.concurrent.atomic.AtomicInteger;

/** A KMS that is down, and counts how often it is asked. */
public final class DownKms extends FailingKms {
  private static final long serialVersionUID = 1L;

  /** The calls of all of them. */
  public static final AtomicInteger CALLS = new AtomicInteger();

  @Override
  protected RuntimeException failure() {
    CALLS.incrementAndGet();
    return new KmsUnavailableException("no answer", "Wait.");
  }
}
