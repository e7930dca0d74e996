package io.icebergcrypto.kms.hadoop;

import com.google.gson.JsonObject;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.blob.GcmBody;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.config.MasterKeys;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.regex.Pattern;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/**
 * The keys of a Hadoop KMS. A wrapped key is a {@link WrappedKey} with the body {@link
 * EncryptedKey} | {@link GcmBody}: a data key that the KMS generated for it alone, and the key
 * under that data key. AES-GCM authenticates all before its ciphertext, and the key's id.
 *
 * <p>The data key itself is not given to Iceberg as a generated KEK: it is encrypted without
 * authentication, so anyone who can change metadata and knows one KEK could make another of their
 * choice; and its length is that of the KMS's key, not the one that the table asks for.
 */
final class HadoopKeys implements MasterKeys {
  static final String GENERATE = "GENERATE_EEK";
  static final String DECRYPT = "DECRYPT_EEK";

  private static final String KMS = "hadoop";
  private static final Pattern KEY_NAME = Pattern.compile("\\w(([\\w.-]+)?\\w)?");

  private final HadoopConfig config;
  private final HadoopHttp http;

  HadoopKeys(HadoopConfig config) {
    this.config = config;
    this.http = new HadoopHttp(config);
  }

  /** Wraps a key under the newest version of a key: two requests. */
  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    checkKeyId(keyId);
    String path = "key/" + keyId + "/_eek?eek_op=generate&num_keys=1";
    JsonObject answer = http.ask(GENERATE, keyId, path, null);
    EncryptedKey made =
        EncryptedKey.of(answer, keyId).orElseThrow(() -> http.noHadoopKms(GENERATE, keyId));
    int number = made.number();
    byte[] start = made.encode();
    byte[] dataKey = decrypted(made, keyId);
    try {
      byte[] sealed = GcmBody.seal(key, ciphers(dataKey, start, number, keyId));
      byte[] body = Arrays.copyOf(start, start.length + sealed.length);
      System.arraycopy(sealed, 0, body, start.length, sealed.length);
      return new WrappedKey(KMS, number, body).encode();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has AES-GCM", e);
    } finally {
      Arrays.fill(dataKey, (byte) 0);
    }
  }

  /** Unwraps a key, whichever version of the key wrapped it: one request. */
  @Override
  public ByteBuffer unwrap(ByteBuffer blob, String keyId) {
    checkKeyId(keyId);
    WrappedKey wrapped = WrappedKey.parse(blob, KMS, keyId);
    ByteBuffer body = ByteBuffer.wrap(wrapped.body());
    EncryptedKey eek = read(body, wrapped, keyId);
    byte[] start = Arrays.copyOf(wrapped.body(), body.position());
    byte[] sealed = Arrays.copyOfRange(wrapped.body(), body.position(), body.limit());
    byte[] dataKey = decrypted(eek, keyId);
    try {
      return ByteBuffer.wrap(
          GcmBody.open(sealed, ciphers(dataKey, start, wrapped.keyVersion(), keyId)));
    } catch (AEADBadTagException e) {
      throw new BadWrappedKeyException(
          String.format(
              "A wrapped key does not unwrap with version %s of key '%s' of %s",
              eek.version(), keyId, config),
          "The wrapped key was changed, or another key of that name wrapped it (was the key deleted"
              + " and created again, or is it another KMS?): restore the table's metadata or the"
              + " key.",
          e);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has AES-GCM", e);
    } finally {
      Arrays.fill(dataKey, (byte) 0);
    }
  }

  private EncryptedKey read(ByteBuffer body, WrappedKey wrapped, String keyId) {
    try {
      EncryptedKey eek = EncryptedKey.read(body).orElse(null);
      if (eek != null
          && eek.number() == wrapped.keyVersion()
          && GcmBody.isLongEnough(body.remaining())) {
        return eek;
      }
    } catch (BufferUnderflowException e) {
      // told below
    }

    throw new BadWrappedKeyException(
        String.format("A %s was not wrapped by %s under '%s'", wrapped, config, keyId),
        "Another key wrapped it, or the table's metadata was changed or cut off: restore it.");
  }

  private byte[] decrypted(EncryptedKey eek, String keyId) {
    String path = "keyversion/" + keyId + "@" + eek.version() + "/_eek?eek_op=decrypt";
    JsonObject answer = http.ask(DECRYPT, keyId, path, eek.request(keyId));
    byte[] dataKey = EncryptedKey.bytes(answer, "material");
    if (dataKey.length != eek.material().length) {
      throw http.noHadoopKms(DECRYPT, keyId);
    }

    return dataKey;
  }

  private static GcmBody.Ciphers ciphers(byte[] dataKey, byte[] start, int number, String keyId) {
    return (mode, parameters) -> {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, new SecretKeySpec(dataKey, "AES"), parameters);
      cipher.updateAAD(start); // tells its own length, so the two cannot be taken for others
      cipher.updateAAD(WrappedKey.authenticated(KMS, number, keyId));
      return cipher;
    };
  }

  /** The key id becomes part of a path, so it may be nothing but a name. */
  private void checkKeyId(String keyId) {
    if (!KEY_NAME.matcher(keyId).matches() || keyId.contains("..") || keyId.length() > 200) {
      throw new InvalidConfigurationException(
          String.format("'%s' cannot be the name of a key of %s", keyId, config),
          "Use a key's bare name, without a version: letters, digits, '_', and '-' and '.'"
              + " within.");
    }
  }
}
