package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ErrorTableTest {
  private static final ErrorTable TABLE =
      ErrorTable.of(
          """
          KeyNotFound <- ^404\s
          {kms} has no key '{key}'
          Make it: {not-a-value}

          LoginFailed <- ^40(\\d) .*token
          {kms}: refused ({1})
          Log in, \
          again.

          KmsUnavailable <-
          {kms} failed
          Wait.
          """);

  @Test
  void theFirstRowThatFitsCounts() {
    assertThat(error("404 token")).isExactlyInstanceOf(KeyNotFoundException.class);
    assertThat(error("403 a\ntoken")).isExactlyInstanceOf(LoginFailedException.class);
    assertThat(error("403 a\ntoken").getMessage())
        .isEqualTo("V {key}: refused (3)\n  hint: Log in, again.");
    assertThat(error("4040 token")).isExactlyInstanceOf(KmsUnavailableException.class);
  }

  @Test
  void aValueIsNoTemplate() {
    IcebergCryptoException error = error("404 x");
    assertThat(error.problem()).isEqualTo("V {key} has no key '$1'");
    assertThat(error.hint()).isEqualTo("Make it: {not-a-value}");
  }

  @Test
  void anErrorThatIsRetoldKeepsItsTypeAndHint() {
    IcebergCryptoException error =
        ErrorTable.retold(new LoginFailedException("refused", "Log in."), "Key 'k': refused");
    assertThat(error).isExactlyInstanceOf(LoginFailedException.class);
    assertThat(error.getMessage()).isEqualTo("Key 'k': refused\n  hint: Log in.");
  }

  @Test
  void aMisspeltTypeIsRefused() {
    assertThatThrownBy(() -> ErrorTable.of("KeyLost <-\nproblem\nhint"))
        .hasMessageContaining("KeyLost");
  }

  private static IcebergCryptoException error(String told) {
    return TABLE.error(told, Map.of("kms", "V {key}", "key", "$1"), new IOException("x"));
  }
}
