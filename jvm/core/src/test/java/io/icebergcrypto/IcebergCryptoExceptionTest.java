package io.icebergcrypto;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class IcebergCryptoExceptionTest {
  private final IOError cause = new IOError();
  private final IcebergCryptoException shared =
      new KmsUnavailableException("the KMS does not answer", "Try again.", cause);

  private static final class IOError extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** Threads that wait for one answer of a KMS get the same error. */
  @Test
  void whoAddsToAnErrorAddsToACopy() {
    IcebergCryptoException one = shared.inTable("a").withHint("Or drop a.");
    IcebergCryptoException two = shared.inTable("b");

    assertThat(one)
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessage("Table a: the KMS does not answer\n  hint: Try again. Or drop a.")
        .hasCause(cause);
    assertThat(two).hasMessage("Table b: the KMS does not answer\n  hint: Try again.");
    assertThat(shared).hasMessage("the KMS does not answer\n  hint: Try again.");
    assertThat(one.getStackTrace()).isEqualTo(shared.getStackTrace());
  }

  @Test
  void theFirstNameStays() {
    assertThat(shared.inTable("a").inTable("b").inCatalog("c"))
        .hasMessageStartingWith("Table a: the KMS");
  }

  @Test
  void anErrorThatNamesTheKeyKeepsItsTypeHintAndCause() {
    assertThat(shared.withProblem(shared.problem() + " (for key 'k')").inTable("a"))
        .isExactlyInstanceOf(KmsUnavailableException.class)
        .hasMessage("Table a: the KMS does not answer (for key 'k')\n  hint: Try again.")
        .hasCause(cause);
    assertThat(shared).hasMessage("the KMS does not answer\n  hint: Try again.");
  }

  @Test
  void anErrorWithoutACauseHasNone() {
    assertThat(new PlaintextException("p", "h").inTable("a")).hasNoCause();
  }
}
