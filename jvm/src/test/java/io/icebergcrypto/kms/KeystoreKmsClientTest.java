package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.testing.TestKeystore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KeystoreKmsClientTest {
  private static final ByteBuffer KEK =
      ByteBuffer.wrap("0123456789abcdef".getBytes(StandardCharsets.US_ASCII));

  @TempDir private Path folder;
  private TestKeystore keystore;

  @BeforeEach
  void makeKeystore() throws IOException {
    this.keystore = TestKeystore.create(folder, "k1", "k2");
  }

  private KeystoreKmsClient client() {
    return client(Map.of());
  }

  private KeystoreKmsClient client(Map<String, String> more) {
    Map<String, String> properties = new HashMap<>(keystore.properties());
    properties.putAll(more);
    properties.values().removeIf(String::isEmpty);
    KeystoreKmsClient client = new KeystoreKmsClient();
    client.initialize(properties);
    return client;
  }

  @ParameterizedTest
  @ValueSource(ints = {128, 192, 256})
  void unwrapsWhatItWrapped(int bits) throws IOException {
    keystore.write(bits, "k1");
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    assertThat(wrapped.remaining()).isEqualTo(1 + 12 + KEK.remaining() + 16);
    assertThat(wrapped.get(0)).isEqualTo((byte) 1);
    assertThat(client().unwrapKey(wrapped.duplicate(), "k1")).isEqualTo(KEK);
  }

  @Test
  void wrapsWithAFreshNonceEachTime() {
    KeystoreKmsClient client = client();
    assertThat(client.wrapKey(KEK.duplicate(), "k1"))
        .isNotEqualTo(client.wrapKey(KEK.duplicate(), "k1"));
  }

  @Test
  void theKeyIdIsAuthenticated() {
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    assertThatThrownBy(() -> client().unwrapKey(wrapped, "k2"))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("'k2'")
        .hasMessageContaining(keystore.path().toString());
    // the same key of the store, by a name that differs by case only
    assertThatThrownBy(() -> client().unwrapKey(wrapped, "K1"))
        .isInstanceOf(TamperedException.class);
  }

  @Test
  void everyFlippedBitIsFound() {
    KeystoreKmsClient client = client();
    byte[] wrapped = KeyCache.copyOf(client.wrapKey(KEK.duplicate(), "k1"));
    for (int bit = 0; bit < wrapped.length * 8; bit++) {
      byte[] changed = wrapped.clone();
      changed[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> client.unwrapKey(ByteBuffer.wrap(changed), "k1"))
          .isInstanceOf(TamperedException.class);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 13, 29})
  void aBlobThatIsTooShortIsNotAWrappedKey(int length) {
    assertThatThrownBy(() -> client().unwrapKey(ByteBuffer.allocate(length), "k1"))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("hint: ");
  }

  @Test
  void aMissingKeyIsNamedBesideThoseThereAre() {
    assertThatThrownBy(() -> client().wrapKey(KEK.duplicate(), "nope"))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("'nope'")
        .hasMessageContaining("k1")
        .hasMessageContaining("k2");
  }

  @Test
  void aKeyThatWasAddedLaterIsFound() throws IOException {
    KeystoreKmsClient client = client();
    keystore.write(256, "k1", "k3");
    Files.setLastModifiedTime(keystore.path(), FileTime.fromMillis(1_000_000_000_000L));
    assertThat(client.unwrapKey(client.wrapKey(KEK.duplicate(), "k3"), "k3")).isEqualTo(KEK);
  }

  @Test
  void aWrongPasswordIsSaidToBeWrong() throws IOException {
    Files.writeString(folder.resolve("password"), "another");
    assertThatThrownBy(this::client)
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("password-file")
        .hasMessageNotContaining(TestKeystore.PASSWORD);
  }

  @Test
  void whatIsWrongWithTheConfigurationIsSaid() throws IOException {
    assertRefused(Map.of("encryption.kms.keystore.path", ""), "encryption.kms.keystore.path");
    assertRefused(
        Map.of("encryption.kms.keystore.path", folder.resolve("none.p12").toString()),
        "does not exist");
    Files.writeString(folder.resolve("garbage"), "not a keystore");
    assertRefused(
        Map.of("encryption.kms.keystore.path", folder.resolve("garbage").toString()),
        "is not a PKCS12 keystore");
    assertRefused(Map.of("encryption.kms.keystore.password-file", ""), "none of");
    assertRefused(Map.of("encryption.kms.keystore.password-env", "SOME"), "both of");
    assertRefused(
        Map.of(
            "encryption.kms.keystore.password-file", "",
            "encryption.kms.keystore.password-env", "NO_SUCH_VARIABLE_HERE"),
        "NO_SUCH_VARIABLE_HERE");
    assertRefused(Map.of("encryption.kms.keystore.password", "secret"), "would show the password");
  }

  private void assertRefused(Map<String, String> change, String message) {
    assertThatThrownBy(() -> client(change))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message)
        .hasMessageContaining("hint: ");
  }

  @Test
  void noSecretTravels() throws IOException {
    KeystoreKmsClient client = client();
    client.wrapKey(KEK.duplicate(), "k1");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(client);
    }

    assertThat(bytes.toString(StandardCharsets.ISO_8859_1))
        .contains(keystore.path().toString()) // so the search means something
        .doesNotContain(TestKeystore.PASSWORD);
    assertThat(client.toString()).doesNotContain(TestKeystore.PASSWORD);
  }
}
