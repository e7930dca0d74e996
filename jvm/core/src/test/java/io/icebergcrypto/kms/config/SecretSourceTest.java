package io.icebergcrypto.kms.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SecretSourceTest {
  @TempDir private Path folder;

  private static PropertyReader settings(String... pairs) {
    return new PropertyReader(
        pairs.length == 2
            ? Map.of(pairs[0], pairs[1])
            : Map.of(pairs[0], pairs[1], pairs[2], pairs[3]));
  }

  private Path secret(String text, String mode) throws Exception {
    Path file = Files.writeString(folder.resolve("secret"), text);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
  }

  @Test
  void aFileThatIsBeingReplacedIsWaitedFor() throws Exception {
    Path file = folder.resolve("token");
    SecretSource source = SecretSource.file(file.toString(), "property");
    int[] pauses = {0};
    String secret =
        source.readSettled(
            () -> {
              try {
                pauses[0]++;
                Files.writeString(file, pauses[0] < 3 ? "" : "secret");
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            });
    assertThat(secret).isEqualTo("secret");
    assertThat(pauses[0]).isEqualTo(3);
    assertThat(source.readIfThere()).contains("secret");
    Files.writeString(file, "\n");
    assertThat(source.readIfThere()).isEmpty();
    Files.delete(file);
    assertThat(source.readIfThere()).isEmpty();
    assertThatThrownBy(() -> source.readSettled(() -> pauses[0]++))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("does not exist");
    assertThat(pauses[0]).isEqualTo(13);
  }

  @Test
  void aFileIsReadAgainEachTime() throws Exception {
    Path file = secret(" one\n", "rw-------");
    SecretSource source = SecretSource.required(settings("file", file.toString()), "env", "file");
    assertThat(source.read()).isEqualTo("one");
    Files.writeString(file, "two");
    assertThat(source.read()).isEqualTo("two");
  }

  @Test
  void theSecretDoesNotTravel() throws Exception {
    Path file = secret("hush-hush", "r--------");
    SecretSource source = SecretSource.file(file.toString(), "file");
    source.read();
    assertThat(new String(SerializationUtil.serializeToBytes(source), StandardCharsets.ISO_8859_1))
        .doesNotContain("hush")
        .contains("secret");
    assertThat(source.toString()).isEqualTo("file " + file);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw----r--", "rw--w----", "rw-----w-"})
  void aFileThatOthersMayReadOrWriteIsRefused(String mode) throws Exception {

    Path file = secret("hush-hush", mode);
    assertThatThrownBy(() -> SecretSource.file(file.toString(), "the.property").read())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(file.toString(), "the.property", "chmod 600")
        .message()
        .doesNotContain("hush");
    assertThatThrownBy(() -> SecretSource.file(file.toString(), "the.property").readIfThere())
        .hasMessageContaining("open to others");
  }

  @Test
  void aServiceAccountsTokenMayBeReadByAllOfItsPod() throws Exception {
    Path file =
        secret("a.jwt", "rw-r--r--"); // kubelet's mode, unless all containers run as one user
    SecretSource jwt = SecretSource.file(file.toString(), "the.property");
    assertThatThrownBy(jwt.orProjected()::read).hasMessageContaining("open to others");
    Files.createSymbolicLink(folder.resolve("..data"), folder);
    assertThat(jwt.orProjected().read()).isEqualTo("a.jwt");
    assertThat(jwt.orProjected().readIfThere()).contains("a.jwt");
    assertThatThrownBy(jwt::read).hasMessageContaining("open to others");
    secret("a.jwt", "rw-rw-r--");
    assertThatThrownBy(jwt.orProjected()::read).hasMessageContaining("open to others");
  }

  @Test
  void theHintForAVolumeOfKubernetesIsNoChmod() throws Exception {
    Path file = secret("hush-hush", "rw-r--r--");
    Files.createSymbolicLink(folder.resolve("..data"), folder);
    assertThatThrownBy(() -> SecretSource.file(file.toString(), "the.property").read())
        .hasMessageContaining("open to others")
        .message()
        .contains("defaultMode: 0400", "fsGroup")
        .doesNotContain("chmod 600");
  }

  @Test
  void theGroupMayReadAnotherUsersFile() throws Exception {
    Path file = secret("hush-hush", "rw-r-----"); // a secret that Kubernetes mounts
    SecretSource.requirePrivate(file, "the.property", "someone-else");
    Path open = secret("hush-hush", "r--rw----");
    assertThatThrownBy(() -> SecretSource.requirePrivate(open, "the.property", "someone-else"))
        .isInstanceOf(InvalidConfigurationException.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-rw-r--", "rw-r--rw-", "r---w----", "rwxrwxrwx"})
  void aFileThatOthersMayWriteDecidesNoLogin(String mode) throws Exception {
    Path file = secret("hush-hush", mode);
    assertThatThrownBy(() -> SecretSource.requireUnwritable(file, "THE_VARIABLE"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(file.toString(), "THE_VARIABLE", "chmod go-w " + file);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxrwxrwx", "rwxr-xr-x"})
  void aTokenThatKubernetesProjectsMayDecide(String folderMode) throws Exception {
    Path volume = Files.createDirectory(folder.resolve("volume"));
    Path data = Files.createDirectory(volume.resolve("..2026_01_01"));
    Files.createSymbolicLink(volume.resolve("..data"), data.getFileName());
    Path token = volume.resolve("token");
    Files.createSymbolicLink(token, Path.of("..data", "token"));
    Files.writeString(data.resolve("token"), "hush-hush");
    Files.setPosixFilePermissions(volume, PosixFilePermissions.fromString(folderMode));
    for (String mode : List.of("rw-r--r--", "rw-------", "rw-r-----")) {
      Files.setPosixFilePermissions(data.resolve("token"), PosixFilePermissions.fromString(mode));
      SecretSource.requireUnwritable(token, "THE_VARIABLE");
    }
    String before = SecretSource.contentHash(token);
    Path next = Files.createDirectory(volume.resolve("..2026_01_02"));
    Files.writeString(next.resolve("token"), "hush-again");
    Files.delete(volume.resolve("..data"));
    Files.createSymbolicLink(volume.resolve("..data"), next.getFileName());
    assertThat(SecretSource.contentHash(token)).isNotEqualTo(before).isNotEmpty();
    SecretSource.requireUnwritable(folder.resolve("none"), "THE_VARIABLE");
    assertThat(SecretSource.contentHash(folder.resolve("none"))).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"hush\n# a comment", "hush\r\nhush\r\n", "hush\n\nhush"})
  void aSecretOfMoreThanOneLineIsRefused(String text) throws Exception {
    Path file = secret(text, "rw-------");
    SecretSource source = SecretSource.file(file.toString(), "the.property");
    assertThatThrownBy(source::read)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(file.toString(), "the.property", "more than one line")
        .message()
        .doesNotContain("hush");
    assertThatThrownBy(source::readIfThere).hasMessageContaining("more than one line");
    assertThat(source.readText()).isEqualTo(text.strip());
  }

  @Test
  void whatIsMissingIsNamed() throws Exception {
    assertThatThrownBy(() -> SecretSource.required(settings("x", "y"), "a-env", "a-file"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("Neither a-env nor a-file");
    assertThatThrownBy(
            () -> SecretSource.required(settings("a-env", "V", "a-file", "F"), "a-env", "a-file"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("both set");
    assertThatThrownBy(
            () ->
                SecretSource.required(settings("a-env", "NO_SUCH_VARIABLE_X"), "a-env", "a-file")
                    .read())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("NO_SUCH_VARIABLE_X");
    assertThatThrownBy(() -> SecretSource.file(folder + "/none", "the.property").read())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("does not exist");
    Path empty = secret("\n", "rw-------");
    assertThatThrownBy(() -> SecretSource.file(empty.toString(), "the.property").read())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("is empty");
  }
}
