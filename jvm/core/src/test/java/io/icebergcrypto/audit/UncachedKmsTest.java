package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.testing.FailingKms;
import java.nio.ByteBuffer;
import java.util.Map;
import org.junit.jupiter.api.Test;

class UncachedKmsTest {
  /** The former KMS of a table that another operator has moved. */
  public static final class Former extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new BadWrappedKeyException("not wrapped here", "Use another KMS.");
    }
  }

  /** A KMS that is down, then refuses the login, then says that it has no such key. */
  public static final class Other extends FailingKms {
    private static final long serialVersionUID = 1L;
    private static int calls;

    @Override
    protected RuntimeException failure() {
      return switch (calls++) {
        case 0 -> new KmsUnavailableException("down", "Wait.");
        case 1 -> new LoginFailedException("the token has expired", "Log in again.");
        default -> new KeyNotFoundException("no such key", "Check the key.");
      };
    }
  }

  @Test
  void theFormerKmsIsNotBlamedWhileTheOtherOneGivesNoAnswer() {
    try (CachingKmsClient former = client(Former.class);
        CachingKmsClient other = client(Other.class)) {
      UncachedKms both = new UncachedKms(() -> other, former, "lake.db.t", "uuid");
      assertThatThrownBy(() -> unwrap(both)).isInstanceOf(KmsUnavailableException.class);
      assertThatThrownBy(() -> unwrap(both)).isInstanceOf(LoginFailedException.class);
      assertThatThrownBy(() -> unwrap(both)).isInstanceOf(BadWrappedKeyException.class);
      assertThat(both.calls()).isEqualTo(6);
    }
  }

  private static CachingKmsClient client(Class<? extends FailingKms> kms) {
    return KmsClients.create(
        Map.of("encryption.kms-impl", kms.getName(), "encryption.kms.retry.max-attempts", "1"));
  }

  private static void unwrap(UncachedKms kms) {
    kms.unwrapKey(ByteBuffer.allocate(16), "k1");
  }
}
