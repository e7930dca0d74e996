package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.testing.XorKms;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.junit.jupiter.api.Test;

/** What a KMS answers is not believed until it proves right. */
class UnwrappedKekTest {
  private static final ByteBuffer WRONG = ByteBuffer.allocate(16);
  private static final ByteBuffer WRONG_TOO =
      ByteBuffer.wrap(new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  private static final ByteBuffer NO_KEY = ByteBuffer.allocate(15);

  /** A double of a KMS that gives these answers first. */
  private static final class LyingKms extends XorKms {
    private static final long serialVersionUID = 1L;

    private final transient Queue<ByteBuffer> lies;
    private int calls;

    private LyingKms(ByteBuffer... lies) {
      this.lies = new ArrayDeque<>(Arrays.asList(lies));
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      calls++;
      return lies.isEmpty() ? super.unwrapKey(wrappedKey, wrappingKeyId) : lies.remove();
    }
  }

  private final EncryptedKey kek = Kek.make(16, 0, "k1", new XorKms());
  private final ByteBuffer key = new XorKms().unwrapKey(kek.encryptedKeyMetadata(), "k1");

  @Test
  void theRightKeyIsAskedForOnce() {
    LyingKms kms = new LyingKms();
    assertThat(UnwrappedKek.of(kek, List.of(), kms)).isEqualTo(key);
    assertThat(kms.calls).isOne();
  }

  @Test
  void oneWrongAnswerDoesNoHarm() {
    for (ByteBuffer wrong : List.of(WRONG, NO_KEY)) {
      LyingKms kms = new LyingKms(wrong);
      assertThat(UnwrappedKek.of(kek, List.of(), kms)).isEqualTo(key);
      assertThat(kms.calls).isEqualTo(2);
    }
  }

  @Test
  void aKmsThatGivesAnotherKeyIsNamed() {
    assertRefused(kek, List.of(), "a key that does not fit the KEK's check value", WRONG, WRONG);
    assertRefused(kek, List.of(), "15 bytes, which is not an AES key", NO_KEY, NO_KEY);
    assertRefused(kek, List.of(), "two different keys", WRONG, WRONG_TOO);
  }

  /** As stock Iceberg makes KEKs. */
  @Test
  void withoutCheckValueAKeyThatItEncryptsTells() {
    StandardEncryptionManager stock =
        new StandardEncryptionManager(List.of(), "k1", 16, new XorKms());
    register(stock);
    Collection<EncryptedKey> entries = EncryptionUtil.encryptionKeys(stock).values();
    EncryptedKey stocks =
        entries.stream().filter(entry -> "k1".equals(entry.encryptedById())).findFirst().get();
    ByteBuffer right = new XorKms().unwrapKey(stocks.encryptedKeyMetadata(), "k1");

    LyingKms once = new LyingKms(WRONG);
    assertThat(UnwrappedKek.of(stocks, entries, once)).isEqualTo(right);
    assertThat(once.calls).isEqualTo(2);
    assertRefused(stocks, entries, "two different keys", WRONG, WRONG_TOO);

    // then that key may be what was changed: the caller is told
    assertThat(UnwrappedKek.of(stocks, entries, new LyingKms(WRONG, WRONG))).isEqualTo(WRONG);
    // where the KEK encrypts nothing, the KMS has to say the same twice
    assertThat(UnwrappedKek.of(stocks, List.of(stocks), new LyingKms())).isEqualTo(right);
    assertRefused(stocks, List.of(stocks), "two different keys", WRONG);
  }

  @Test
  void checkValuesOfLaterVersionsAreNoReasonToRefuse() {
    Map<String, String> properties = new HashMap<>(kek.properties());
    properties.put(Kek.CHECK_VALUE, "v2.0000000000000000");
    EncryptedKey later =
        new BaseEncryptedKey(kek.keyId(), kek.encryptedKeyMetadata(), "k1", properties);
    assertThat(UnwrappedKek.of(later, List.of(), new LyingKms())).isEqualTo(key);
  }

  @Test
  void theCheckValueIsTheSameInEveryVersion() {
    EncryptedKey zeros =
        new BaseEncryptedKey(
            "zeros",
            new XorKms().wrapKey(WRONG, "k1"),
            "k1",
            Map.of(Kek.CHECK_VALUE, "v1.3cb10c82482a80cb"));
    assertThat(UnwrappedKek.problem(zeros, WRONG)).isNull();
    assertThat(UnwrappedKek.problem(zeros, WRONG_TOO)).isNotNull();
  }

  private static void assertRefused(
      EncryptedKey kek, Collection<EncryptedKey> entries, String problem, ByteBuffer... lies) {
    assertThatThrownBy(() -> UnwrappedKek.of(kek, entries, new LyingKms(lies)))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContainingAll("KEK " + kek.keyId(), "'k1'", problem, "hint:");
  }

  private static void register(StandardEncryptionManager manager) {
    manager.registerKeyMetadata(manager.encrypt(new InMemoryOutputFile("list")).keyMetadata());
  }
}
