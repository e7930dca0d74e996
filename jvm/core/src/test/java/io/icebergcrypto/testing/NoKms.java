package io.icebergcrypto.testing;

/** Files' keys need no KMS. */
public final class NoKms extends FailingKms {
  private static final long serialVersionUID = 1L;

  @Override
  protected RuntimeException failure() {
    throw new AssertionError("a call of the KMS");
  }
}
