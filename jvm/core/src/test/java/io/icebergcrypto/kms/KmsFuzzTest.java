package io.icebergcrypto.kms;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hostile wrapped keys and names of keys. */
class KmsFuzzTest {
  @TempDir private Path folder;

  @Test
  void wrappedKeys() {
    byte[] valid = new WrappedKey("vault", 3, "vault:v3:abc".getBytes(UTF_8)).encode().array();
    Fuzz.run(
        1,
        round -> {
          ByteBuffer blob = ByteBuffer.wrap(round.mutated(valid)).asReadOnlyBuffer();
          try {
            WrappedKey.refuseHeader(blob, "aws", "k1");
          } catch (IcebergCryptoException e) {
            assertThat(e.problem()).contains("'k1'");
          }

          WrappedKey key = WrappedKey.parse(blob, "vault", "k1");
          assertThat(key.encode()).isEqualTo(blob); // no two blobs are one key
          return true;
        });
  }

  @Test
  void keystoreBlobs() throws IOException {
    KeystoreKmsClient client = new KeystoreKmsClient();
    client.initialize(TestKeystore.create(folder, "k1", "k1.v3").properties());
    byte[] key = "0123456789abcdef".getBytes(UTF_8);
    byte[] valid = client.wrapKey(ByteBuffer.wrap(key), "k1").array();
    Fuzz.run(
        4,
        round -> {
          byte[] blob = round.mutated(valid);
          assertThat(client.unwrapKey(ByteBuffer.wrap(blob), "k1")).isEqualTo(ByteBuffer.wrap(key));
          assertThat(blob).isEqualTo(valid);
          return true;
        });
  }

  @Test
  void namesOfVersions() {
    Fuzz.run(
        1,
        round -> {
          String name = "k" + round.mutated("key.v2.v17");
          if (!KeyVersions.isKeyId(name)) {
            KeyVersions.requireKeyId(name, "keystore");
          }

          int version = 1 + round.random().nextInt(1_000_000);
          String entry = KeyVersions.entry(name, version);
          assertThat(KeyVersions.newest(name, List.of(round.mutated(name), name, entry)))
              .isGreaterThanOrEqualTo(version);
          return true;
        });
  }
}
