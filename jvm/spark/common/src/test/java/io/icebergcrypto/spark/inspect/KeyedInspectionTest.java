package io.icebergcrypto.spark.inspect;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class KeyedInspectionTest {
  /** As a verification of the table: what only has no key, say, was not tampered with. */
  @ParameterizedTest
  @EnumSource
  void theCodeChoosesTheErrorAndTheHint(ProblemCode code) {
    IcebergCryptoException error =
        KeyedInspection.error("s3://b/f", FileKind.MANIFEST, new FileProblem(code, "it is so"));
    switch (code) {
      case TAMPERED, TRUNCATED, APPENDED, WRONG_FORMAT ->
          assertThat(error)
              .isInstanceOf(TamperedException.class)
              .hasMessageStartingWith("s3://b/f is not what was written: it is so");
      default ->
          assertThat(error)
              .hasMessageStartingWith(
                  code == ProblemCode.PLAINTEXT
                      ? "s3://b/f: it is so"
                      : "s3://b/f could not be checked: it is so")
              .isExactlyInstanceOf(
                  code == ProblemCode.PLAINTEXT
                      ? PlaintextException.class
                      : IcebergCryptoException.class)
              .extracting(IcebergCryptoException::hint)
              .isEqualTo(FileProblem.hint(code, FileKind.MANIFEST));
    }
  }
}
