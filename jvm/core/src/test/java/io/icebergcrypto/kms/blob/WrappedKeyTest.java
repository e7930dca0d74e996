package io.icebergcrypto.kms.blob;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.testing.Fuzz;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;

class WrappedKeyTest {
  private static final byte[] BODY = "body".getBytes(StandardCharsets.US_ASCII);

  @Test
  void whatWasWrittenIsRead() {
    ByteBuffer blob = new WrappedKey("vault", 7, BODY).encode();
    WrappedKey read = WrappedKey.parse(blob, "vault", "k");
    assertThat(read.kms()).isEqualTo("vault");
    assertThat(read.keyVersion()).isEqualTo(7);
    assertThat(read.body()).isEqualTo(BODY);
    assertThat(blob.remaining()).isEqualTo(4 + 1 + 1 + 5 + 4 + 4); // untouched
    assertThat(read).hasToString("key wrapped by vault, version 7, 4 bytes");
  }

  @Test
  void theLayoutIsFixed() {
    assertThat(new WrappedKey("azure", 258, new byte[] {9}).encode())
        .isEqualTo(
            ByteBuffer.wrap(
                new byte[] {'I', 'C', 'W', 'K', 1, 5, 'a', 'z', 'u', 'r', 'e', 0, 0, 1, 2, 9}));
  }

  @Test
  void anotherKmsIsNamed() {
    ByteBuffer blob = new WrappedKey("vault", 1, BODY).encode();
    assertThatThrownBy(() -> WrappedKey.parse(blob, "keystore", "sales"))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("'sales' was wrapped by KMS type 'vault'")
        .hasMessageContainingAll("this catalog's KMS is keystore", "hint: ");
    assertThatThrownBy(() -> WrappedKey.refuseHeader(blob, "aws", "sales"))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("'vault'");
    WrappedKey.refuseHeader(ByteBuffer.wrap(BODY), "aws", "sales");
  }

  @Test
  void aLaterLayoutAsksForAnUpdate() {
    byte[] later = new WrappedKey("vault", 1, BODY).encode().array();
    later[4] = 2;
    for (String kms : new String[] {"vault", "keystore"}) {
      assertThatThrownBy(() -> WrappedKey.parse(ByteBuffer.wrap(later), kms, "k"))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("layout 2", "update the jar");
    }
    assertThatThrownBy(() -> WrappedKey.refuseHeader(ByteBuffer.wrap(later), "aws", "k"))
        .isInstanceOf(NotSupportedException.class);
  }

  @Test
  void everythingElseIsRefused() {
    byte[] whole = new WrappedKey("vault", 1, BODY).encode().array();
    Random random = new Random(Fuzz.SEED);
    for (int i = 0; i < 20_000; i++) {
      byte[] bytes = whole.clone();
      if (i % 2 == 0) {
        bytes = new byte[random.nextInt(40)];
        random.nextBytes(bytes);
      } else {
        int place = random.nextInt(10);
        bytes[place < 4 ? place : place + 1] ^= (byte) (1 << random.nextInt(8)); // magic or name
      }
      ByteBuffer blob = ByteBuffer.wrap(bytes);
      assertThatThrownBy(() -> WrappedKey.parse(blob, "vault", "k"))
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageContaining("'k'")
          .message()
          .matches("[\\n\\x20-\\x7e]*");
    }
    for (int length = 0; length < whole.length - BODY.length; length++) {
      ByteBuffer blob = ByteBuffer.wrap(whole, 0, length);
      assertThatThrownBy(() -> WrappedKey.parse(blob, "vault", "k"))
          .isInstanceOf(BadWrappedKeyException.class);
    }
  }
}
