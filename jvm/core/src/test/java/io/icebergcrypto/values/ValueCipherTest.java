package io.icebergcrypto.values;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.testing.Fuzz;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/**
 * Values as Google's Tink for Python encrypted them; tests/vectors/write_values.py is the program.
 */
class ValueCipherTest {
  private static final HexFormat HEX = HexFormat.of();

  private static JsonObject vectors() throws Exception {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    return Json.object(Files.readString(root.resolve("tests/vectors/values-tink.json")));
  }

  private static ValueCipher cipher(JsonObject vectors, String name) {
    int id = Integer.parseUnsignedInt(vectors.get("version").getAsString(), 16);
    return new ValueCipher(name, id, HEX.parseHex(vectors.get("value_key").getAsString()));
  }

  private static byte[] decrypt(ValueCipher cipher, byte[] value, String context)
      throws GeneralSecurityException {
    int id = ByteBuffer.wrap(value, 1, 4).getInt();
    return cipher.decrypt(id, value, context.getBytes(UTF_8));
  }

  @Test
  void tinkAndThisReadAlike() throws Exception {
    JsonObject vectors = vectors();
    ValueCipher cipher = cipher(vectors, vectors.get("name").getAsString());
    ValueCipher otherName = cipher(vectors, "customer");
    assertThat(vectors.getAsJsonArray("values")).hasSize(10);
    for (JsonElement element : vectors.getAsJsonArray("values")) {
      JsonObject vector = element.getAsJsonObject();
      byte[] plaintext = vector.get("plaintext").getAsString().getBytes(UTF_8);
      String context = vector.get("context").getAsString();
      byte[] deterministic = HEX.parseHex(vector.get("deterministic").getAsString());
      assertThat(cipher.encryptDeterministic(plaintext, context.getBytes(UTF_8)))
          .isEqualTo(deterministic);
      byte[] own = cipher.encrypt(plaintext, context.getBytes(UTF_8));
      assertThat(own).isNotEqualTo(cipher.encrypt(plaintext, context.getBytes(UTF_8)));
      for (byte[] value :
          new byte[][] {HEX.parseHex(vector.get("randomized").getAsString()), deterministic, own}) {
        assertThat(decrypt(cipher, value, context)).isEqualTo(plaintext);
        assertThatThrownBy(() -> decrypt(cipher, value, context + "x"))
            .isInstanceOf(GeneralSecurityException.class);
        assertThatThrownBy(() -> decrypt(otherName, value, context))
            .isInstanceOf(GeneralSecurityException.class);
        value[value.length - 1] ^= 1;
        assertThatThrownBy(() -> decrypt(cipher, value, context))
            .isInstanceOf(GeneralSecurityException.class);
      }
    }
  }

  @Test
  void propertiesThatWereChanged() {
    WrappedValueKey key = new WrappedValueKey("customers", 0x1eaf00d4, "k1", "AAEC", 5, "v1.0123");
    assertThat(WrappedValueKey.parse(key.property(), key.toJson())).isEqualTo(key);
    Fuzz.run(
        2,
        round -> {
          boolean name = round.random().nextBoolean();
          String property = ValueKeyProperties.PREFIX + "customers.1eaf00d4";
          WrappedValueKey read =
              WrappedValueKey.parse(
                  name ? ValueKeyProperties.PREFIX + round.mutated("customers.1eaf00d4") : property,
                  name ? key.toJson() : round.mutated(key.toJson()));
          assertThat(read.bytes().remaining()).isLessThan(1 << 20);
          return true;
        });
  }
}
