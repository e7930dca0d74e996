package io.icebergcrypto.io;

import io.icebergcrypto.testing.FailingKms;

/** Files' keys need no KMS. */
final class NoKms extends FailingKms {
  private static final long serialVersionUID = 1L;

  @Override
  protected RuntimeException failure() {
    throw new AssertionError("a call of the KMS");
  }
}
