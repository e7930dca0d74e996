package io.icebergcrypto.kms.hadoop;

import static io.icebergcrypto.kms.http.FuzzedAnswers.answer;
import static io.icebergcrypto.kms.http.FuzzedAnswers.parsed;
import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.testing.Fuzz;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Hostile answers in Hadoop KMS's name, and hostile wrapped keys. */
class HadoopFuzzTest {
  private static final HadoopConfig CONFIG =
      HadoopConfig.of(Map.of(HadoopConfig.URI_PROPERTY, "kms://https@kms:9600/kms"));

  @Test
  void answers() {
    String[] valid = {
      "[{\"encryptedKeyVersion\": {\"material\": \"bjHeS9AaeJdlqaDhumE3gt8hQBu9CQJ0g-v_zMd1SMI\"},"
          + " \"versionName\": \"k1@0\", \"iv\": \"mN3-XKjS7PJO0bq_jDuMFQ\"}]",
      "{\"RemoteException\": {\"message\": \"'k1@7' not found\", \"exception\": \"IOException\"}}"
    };
    HadoopErrors errors = new HadoopErrors(CONFIG);
    Fuzz.run(
        1,
        round -> {
          JsonHttp.Answer answer = answer(round, valid);
          Optional<EncryptedKey> made = EncryptedKey.of(answer.body(), "k1");
          made.ifPresent(
              key -> {
                assertThat(key.iv()).hasSize(16);
                assertThat(key.material().length).isIn(16, 24, 32);
                assertThat(key.version()).matches("[\\w.=-]{1,200}");
              });
          return made.isPresent() | parsed(answer, errors.of(answer, HadoopKeys.DECRYPT, "k1"));
        });
  }

  @Test
  void encryptedKeysAreReadAsTheyAreWritten() {
    EncryptedKey valid = new EncryptedKey("12", new byte[16], new byte[32]);
    Fuzz.run(
        2,
        round -> {
          byte[] bytes = round.mutated(valid.encode());
          ByteBuffer from = ByteBuffer.wrap(bytes);
          try {
            Optional<EncryptedKey> read = EncryptedKey.read(from);
            read.ifPresent(
                key ->
                    assertThat(ByteBuffer.wrap(key.encode()))
                        .isEqualTo(ByteBuffer.wrap(bytes, 0, from.position())));
            return read.isPresent();
          } catch (BufferUnderflowException e) {
            return false; // cut off, which its caller tells
          }
        });
  }

  @Test
  void versionsAreNumberedFromOne() {
    assertThat(numberOf("0")).isEqualTo(1);
    assertThat(numberOf("41")).isEqualTo(42);
    for (String other : new String[] {"00", "x", "1x", "99999999999"}) {
      assertThat(numberOf(other)).isZero();
    }
  }

  private static int numberOf(String version) {
    return new EncryptedKey(version, new byte[16], new byte[16]).number();
  }
}
