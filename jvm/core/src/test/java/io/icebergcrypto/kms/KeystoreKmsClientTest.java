package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.testing.TestKeystore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KeystoreKmsClientTest {
  private static final ByteBuffer KEK =
      ByteBuffer.wrap("0123456789abcdef".getBytes(StandardCharsets.US_ASCII));

  private static final int HEADER = WrappedKey.header("keystore", 1).length;

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

  /** A catalog of Iceberg's own, which checks no names, makes it like this. */
  @ParameterizedTest
  @ValueSource(strings = {"encryption.kms.keystore.pth", "encryption.kms.Vault.address"})
  void refusesAPropertyThatItHasNot(String name) {
    assertThatThrownBy(() -> client(Map.of(name, "x")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(name);
  }

  @ParameterizedTest
  @ValueSource(ints = {128, 192, 256})
  void unwrapsWhatItWrapped(int bits) throws IOException {
    keystore.write(bits, "k1");
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    assertThat(wrapped.remaining()).isEqualTo(HEADER + 12 + KEK.remaining() + 16);
    assertThat(WrappedKey.parse(wrapped, "keystore", "k1").keyVersion()).isEqualTo(1);
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
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContainingAll("'k2'", keystore.path().toString());
    // the same key of the store, by a name that differs by case only
    assertThatThrownBy(() -> client().unwrapKey(wrapped, "K1"))
        .isInstanceOf(BadWrappedKeyException.class);
  }

  @Test
  void everyFlippedBitIsFound() throws IOException {
    keystore.write(256, "k1", "k1.v2", "k1.v3", "k2");
    KeystoreKmsClient client = client();
    byte[] wrapped = KeyCache.copyOf(client.wrapKey(KEK.duplicate(), "k1"));
    for (int bit = 0; bit < wrapped.length * 8; bit++) {
      byte[] changed = wrapped.clone();
      changed[bit / 8] ^= (byte) (1 << bit % 8);
      boolean otherVersion = bit / 8 >= HEADER - 4 && bit / 8 < HEADER;
      boolean otherLayout = bit / 8 == 4;
      assertThatThrownBy(() -> client.unwrapKey(ByteBuffer.wrap(changed), "k1"))
          .satisfiesAnyOf(
              e -> assertThat(e).isInstanceOf(BadWrappedKeyException.class),
              e -> {
                assertThat(otherLayout).isTrue();
                assertThat(e).isInstanceOf(NotSupportedException.class);
              },
              e -> {
                // a version that there never was
                assertThat(otherVersion).isTrue();
                assertThat(e).isInstanceOf(KeyNotFoundException.class);
              });
    }

    ByteBuffer cut = ByteBuffer.wrap(wrapped, 0, HEADER + 5); // in the nonce
    assertThatThrownBy(() -> client.unwrapKey(cut, "k1"))
        .isInstanceOf(BadWrappedKeyException.class);
  }

  @Test
  void theVersionIsAuthenticated() throws IOException {
    // two versions that are the same key: nothing but the header tells them apart
    keystore.write(256, "k1");
    byte[] wrapped = KeyCache.copyOf(client().wrapKey(KEK.duplicate(), "k1"));
    copyEntry("k1", "k1.v2");
    wrapped[HEADER - 1] = 2;
    assertThatThrownBy(() -> client().unwrapKey(ByteBuffer.wrap(wrapped), "k1"))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("version 2 of key 'k1'");
  }

  private void copyEntry(String from, String to) throws IOException {
    changeStore(
        store -> {
          KeyStore.ProtectionParameter password =
              new KeyStore.PasswordProtection(TestKeystore.PASSWORD.toCharArray());
          store.setEntry(to, store.getEntry(from, password), password);
        });
  }

  private interface Change {
    void to(KeyStore store) throws GeneralSecurityException;
  }

  private void changeStore(Change change) throws IOException {
    char[] password = TestKeystore.PASSWORD.toCharArray();
    ByteArrayOutputStream changed = new ByteArrayOutputStream();
    try (InputStream in = Files.newInputStream(keystore.path())) {
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(in, password);
      change.to(store);
      store.store(changed, password);
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }

    Path unfinished = folder.resolve("unfinished");
    Files.write(unfinished, changed.toByteArray());
    chmod(unfinished, "rw-------");
    Files.move(unfinished, keystore.path(), StandardCopyOption.REPLACE_EXISTING);
  }

  private static void chmod(Path file, String permissions) throws IOException {
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
  }

  @Test
  void theNewestVersionWrapsAndOlderOnesUnwrap() throws IOException {
    KeystoreKmsClient client = client();
    ByteBuffer first = client.wrapKey(KEK.duplicate(), "k1");
    for (String version : new String[] {"k1.v2", "k1.v10"}) { // versions may have gaps
      copyEntry("k2", version);
    }

    ByteBuffer tenth = client.wrapKey(KEK.duplicate(), "k1");
    assertThat(WrappedKey.parse(tenth, "keystore", "k1").keyVersion()).isEqualTo(10);
    assertThat(client.unwrapKey(first, "k1")).isEqualTo(KEK);
    assertThat(client.unwrapKey(tenth, "k1")).isEqualTo(KEK);
    assertThat(client().unwrapKey(first, "k1")).isEqualTo(KEK);
  }

  @Test
  void aRotationIsSeenAtOnceThoughTheTimeStays() throws IOException {
    KeystoreKmsClient client = client();
    client.wrapKey(KEK.duplicate(), "k1");
    FileTime before = Files.getLastModifiedTime(keystore.path());
    copyEntry("k2", "k1.v2");
    Files.setLastModifiedTime(keystore.path(), before);
    ByteBuffer wrapped = client.wrapKey(KEK.duplicate(), "k1");
    assertThat(WrappedKey.parse(wrapped, "keystore", "k1").keyVersion()).isEqualTo(2);
  }

  @Test
  void aVersionThatAnotherHostMadeIsLookedFor() throws IOException {
    KeystoreKmsClient reader = client();
    copyEntry("k2", "k1.v2");
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    assertThat(reader.unwrapKey(wrapped, "k1")).isEqualTo(KEK);
  }

  @Test
  void aVersionThatIsMissingIsNamed() throws IOException {
    copyEntry("k2", "k1.v2");
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    changeStore(store -> store.deleteEntry("k1.v2"));
    assertThatThrownBy(() -> client().unwrapKey(wrapped, "k1"))
        .isInstanceOfSatisfying(
            KeyNotFoundException.class,
            e -> assertThat(Causes.isOfKey(e)).as("an old copy of the file").isFalse())
        .hasMessageContainingAll("'k1', but not its version 2", keystore.path().toString());
  }

  /** With the same names in it, such as another deployment's. */
  @Test
  void aWrongFileThatIsPutRightIsUsedAtOnce() throws IOException {
    ByteBuffer wrapped = client().wrapKey(KEK.duplicate(), "k1");
    byte[] right = Files.readAllBytes(keystore.path());
    keystore.write(256, "k1", "k2");
    KeystoreKmsClient client = client();
    assertThatThrownBy(() -> client.unwrapKey(wrapped, "k1"))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("is not the one that wrapped it");
    Files.write(keystore.path(), right);
    assertThat(client.unwrapKey(wrapped, "k1")).isEqualTo(KEK);
  }

  @Test
  void theNameOfAVersionIsNoKeyId() throws IOException {
    copyEntry("k2", "k1.v2");
    assertThatThrownBy(() -> client().wrapKey(KEK.duplicate(), "k1.v2"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("version 2 of key 'k1'", "hint: Use 'k1'");
  }

  @Test
  void callersKeepTheirBuffers() {
    ByteBuffer key = KEK.duplicate();
    ByteBuffer wrapped = client().wrapKey(key, "k1");
    int remaining = wrapped.remaining();
    client().unwrapKey(wrapped, "k1");
    assertThat(key).isEqualTo(KEK);
    assertThat(wrapped.remaining()).isEqualTo(remaining);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw--w----", "rw----r--", "rw-----w-", "rw-rw-rw-"})
  void filesThatAreOpenToOthersAreRefused(String permissions) throws IOException {
    for (Path file : new Path[] {keystore.path(), folder.resolve("password")}) {
      chmod(file, permissions);
      assertThatThrownBy(this::client)
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("chmod 600 " + file, "encryption.kms.keystore.");
      chmod(file, "r--------");
    }

    client();
  }

  @Test
  void aKeystoreThatIsOpenedToOthersLaterIsRefusedWhenReadAgain() throws IOException {
    KeystoreKmsClient client = client();
    copyEntry("k2", "k1.v2");
    chmod(keystore.path(), "rw-r--r--");
    assertThatThrownBy(() -> client.wrapKey(KEK.duplicate(), "k1"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("chmod 600");
  }

  @Test
  void withoutTheFileNothingIsWrappedButKnownKeysUnwrap() throws IOException {
    KeystoreKmsClient client = client();
    ByteBuffer wrapped = client.wrapKey(KEK.duplicate(), "k1");
    Files.delete(keystore.path());
    assertThat(client.unwrapKey(wrapped, "k1")).isEqualTo(KEK);
    assertThatThrownBy(() -> client.wrapKey(KEK.duplicate(), "k1"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("does not exist");
  }

  @Test
  void afterCloseTheFileIsReadAgain() {
    KeystoreKmsClient client = client();
    ByteBuffer wrapped = client.wrapKey(KEK.duplicate(), "k1");
    client.close();
    assertThat(client.unwrapKey(wrapped, "k1")).isEqualTo(KEK);
  }

  @Test
  void aKeyThatIsNoAesKeyIsRefused() throws IOException {
    changeStore(
        store ->
            store.setEntry(
                "mac",
                new KeyStore.SecretKeyEntry(new SecretKeySpec(new byte[32], "HmacSHA256")),
                new KeyStore.PasswordProtection(TestKeystore.PASSWORD.toCharArray())));
    assertThatThrownBy(() -> client().wrapKey(KEK.duplicate(), "mac"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("'mac'", "not an AES");
  }

  @Test
  void aMissingKeyIsNamedBesideThoseThereAre() {
    assertThatThrownBy(() -> client().wrapKey(KEK.duplicate(), "nope"))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("'nope'", "k1", "k2");
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
        .isInstanceOf(LoginFailedException.class)
        .hasMessageContaining("password-file")
        .hasMessageNotContaining(TestKeystore.PASSWORD);
  }

  @Test
  void whatIsWrongWithTheConfigurationIsSaid() throws IOException {
    String path = "encryption.kms.keystore.path";
    assertRefused(Map.of(path, ""), path + " is missing");
    assertRefused(Map.of(path, " "), path + " is empty");
    assertRefused(Map.of(path, "a\0b"), "cannot be a path");
    assertRefused(
        Map.of(path, folder.resolve("none.p12").toString()), "none.p12", "does not exist");
    byte[] whole = Files.readAllBytes(keystore.path());
    for (byte[] bad :
        List.of("junk".repeat(99).getBytes(), Arrays.copyOf(whole, whole.length - 200))) {
      Files.write(folder.resolve("garbage"), bad);
      chmod(folder.resolve("garbage"), "rw-------");
      assertRefused(
          Map.of(path, folder.resolve("garbage").toString()),
          "garbage",
          "is not a PKCS12 keystore");
    }

    Path inside = Files.createDirectory(folder.resolve("inside"));
    chmod(inside, "rwx------");
    assertThatThrownBy(() -> client(Map.of(path, inside.toString())))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("cannot be read");
    assertRefused(Map.of("encryption.kms.keystore.password-file", ""), "Neither");
    assertRefused(Map.of("encryption.kms.keystore.password-env", "SOME"), "both set");
    assertRefused(
        Map.of(
            "encryption.kms.keystore.password-file", "",
            "encryption.kms.keystore.password-env", "NO_SUCH_VARIABLE_HERE"),
        "NO_SUCH_VARIABLE_HERE");
    assertRefused(Map.of("encryption.kms.keystore.password", "secret"), "would show a secret");
  }

  private void assertRefused(Map<String, String> change, String... words) {
    assertThatThrownBy(() -> client(change))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(words)
        .hasMessageContaining("hint: ");
  }

  @Test
  void noSecretTravels() throws IOException {
    KeystoreKmsClient client = client();
    client.wrapKey(KEK.duplicate(), "k1");
    assertThat(new String(SerializationUtil.serializeToBytes(client), StandardCharsets.ISO_8859_1))
        .contains(keystore.path().toString()) // so the search means something
        .doesNotContain(TestKeystore.PASSWORD);
    assertThat(client.toString()).doesNotContain(TestKeystore.PASSWORD);
  }
}
