package io.icebergcrypto.kms.keystore;

import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hostile keystores. */
class KeystoreFuzzTest {
  @TempDir private Path folder;

  @Test
  void files() throws IOException {
    TestKeystore keystore = TestKeystore.create(folder, "k1");
    SecretSource password = SecretSource.file(folder.resolve("password").toString(), "p");
    byte[] valid = Files.readAllBytes(keystore.path());
    Path copy = folder.resolve("copy.p12");
    Fuzz.run(
        100,
        round -> {
          Files.write(copy, round.mutated(valid));
          Files.setPosixFilePermissions(copy, PosixFilePermissions.fromString("rw-------"));
          return KeystoreFile.read(copy, password).has("k1", 1);
        });
  }
}
