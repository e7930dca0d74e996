package io.icebergcrypto.kms;

import com.google.gson.JsonObject;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.kms.vault.VaultConfig;
import io.icebergcrypto.kms.vault.VaultErrors;
import io.icebergcrypto.kms.vault.VaultHttp;
import io.icebergcrypto.kms.vault.VaultLogin;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in HashiCorp Vault's transit engine, where they never leave Vault. The key id is the
 * name of a transit key.
 *
 * <p>A key is wrapped by {@code POST /v1/MOUNT/encrypt/NAME} with the key id as associated data, so
 * that it unwraps under that id only. A wrapped key is a {@link WrappedKey} header, which names the
 * key's version, and Vault's ciphertext ({@code vault:v1:...}). The login needs {@code update} on
 * {@code encrypt/NAME} and {@code decrypt/NAME}; a missing key is never created, whatever else the
 * login may do.
 *
 * <p>Configured by the {@code encryption.kms.vault.*} properties. Only names of variables and paths
 * of files travel to executors; each of their JVMs logs in by itself. Also works as {@code
 * encryption.kms-impl} under a stock catalog.
 */
public final class VaultKmsClient implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  static final String ENCRYPT = "encrypt";
  public static final String DECRYPT = "decrypt";

  /**
   * The type of the key that encrypt would create: one that cannot encrypt, so that Vault refuses
   * to. Vault reads it for a missing key only.
   */
  private static final String NEVER_CREATE = "ecdsa-p256";

  /** What Vault then says. */
  public static final String NEVER_CREATE_WORDS = "key type " + NEVER_CREATE + " not supported";

  /** A ciphertext that no key decrypts. */
  private static final String PROBE = "vault:v1:probe";

  private static final String KMS = "vault";
  private static final Pattern KEY_NAME = Pattern.compile("\\w(([\\w.-]+)?\\w)?");
  private static final Pattern CIPHERTEXT = Pattern.compile("vault:v([1-9]\\d{0,8}):(\\S+)");

  /** Connections and the login; it goes with the client. */
  private record Session(VaultHttp http, VaultLogin login, AtomicBoolean proven) {
    static Session of(VaultConfig config) {
      VaultHttp http = new VaultHttp(config);
      return new Session(http, new VaultLogin(config, http), new AtomicBoolean());
    }
  }

  private VaultConfig config;
  private transient Session session;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(Map)}. */
  public VaultKmsClient() {}

  /**
   * Reads the properties; Vault is not asked yet.
   *
   * @param properties the catalog's properties
   * @throws InvalidConfigurationException when a property is missing, wrong, or would hold a secret
   */
  @Override
  public void initialize(Map<String, String> properties) {
    this.config = VaultConfig.read(properties);
  }

  /**
   * Wraps a key under the newest version of a transit key.
   *
   * @param key stays as it is
   * @param wrappingKeyId the transit key's name
   * @throws KeyNotFoundException when Vault has no such key; none is made
   * @throws NotSupportedException when the key is derived, or of a type without associated data
   * @throws AccessDeniedException when the login is refused, or its policies do not allow it
   * @throws KmsUnavailableException when Vault does not answer, is sealed or busy
   */
  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    checkKeyId(wrappingKeyId);
    return call(
        wrappingKeyId,
        session -> {
          boolean proven = session.proven().get();
          if (!proven) {
            requireTransit(session, wrappingKeyId);
          }

          JsonObject request = request(wrappingKeyId);
          request.addProperty("plaintext", base64(key));
          request.addProperty("type", NEVER_CREATE);
          JsonHttp.Answer answer = ask(session, ENCRYPT, wrappingKeyId, request);
          String ciphertext = result(answer, "ciphertext");
          Matcher parsed = CIPHERTEXT.matcher(ciphertext);
          if (!parsed.matches()) {
            throw new VaultErrors(config).of(answer, ENCRYPT, wrappingKeyId);
          }

          if (!proven) {
            requireAssociatedData(session, wrappingKeyId, ciphertext);
            session.proven().set(true);
          }

          byte[] body = ciphertext.getBytes(StandardCharsets.US_ASCII);
          return new WrappedKey(KMS, Integer.parseInt(parsed.group(1)), body).encode();
        });
  }

  /**
   * Unwraps a key, whichever version of the transit key wrapped it.
   *
   * @param wrappedKey stays as it is
   * @param wrappingKeyId the transit key's name
   * @throws BadWrappedKeyException when it was changed, or another key or KMS wrapped it
   * @throws KeyNotFoundException when Vault has no such key
   * @throws KeyDisabledException when the version that wrapped it may no longer decrypt
   * @throws AccessDeniedException when the login is refused, or its policies do not allow it
   * @throws KmsUnavailableException when Vault does not answer, is sealed or busy
   */
  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    checkKeyId(wrappingKeyId);
    JsonObject request = decryption(wrappingKeyId, ciphertext(wrappedKey, wrappingKeyId));
    return call(
        wrappingKeyId,
        session -> {
          JsonHttp.Answer answer = ask(session, DECRYPT, wrappingKeyId, request);
          byte[] key = decoded(result(answer, "plaintext"));
          if (key.length == 0) {
            throw new VaultErrors(config).of(answer, DECRYPT, wrappingKeyId);
          }

          return ByteBuffer.wrap(key);
        });
  }

  /** Yes: Vault refuses associated data, which always goes along, for keys that are not AEAD. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  /**
   * Ends the renewals, as the garbage collector does for a client that nobody holds; a token that a
   * login made ends by itself. Another call connects and logs in again.
   */
  @Override
  public synchronized void close() {
    if (session != null) {
      session.login().close();
      this.session = null;
    }
  }

  /** Where the keys are; no secret. */
  @Override
  public String toString() {
    return String.valueOf(config);
  }

  private ByteBuffer call(String keyId, Function<Session, ByteBuffer> operation) {
    try {
      return operation.apply(session());
    } catch (KmsUnavailableException | AccessDeniedException | InvalidConfigurationException e) {
      throw e.problem().contains("'" + keyId + "'") ? e : new VaultErrors(config).about(keyId, e);
    }
  }

  private synchronized Session session() {
    if (session == null) {
      this.session = Session.of(config);
    }

    return session;
  }

  /** Asks, and once more when there is another token than the one that Vault refused. */
  private JsonHttp.Answer ask(Session session, String operation, String keyId, JsonObject request) {
    String token = session.login().token();
    JsonHttp.Answer answer = session.http().post(path(operation, keyId), token, request);
    if (answer.status() == 403
        && session.login().replaced(token, VaultErrors.isInvalidToken(answer))) {
      token = session.login().token();
      answer = session.http().post(path(operation, keyId), token, request);
    }

    if (answer.status() == 403) {
      throw denied(session.http(), token, answer, operation, keyId);
    }

    return answer;
  }

  /**
   * Makes sure that the mount is a transit engine before a key goes there: a key-value engine, say,
   * would store it. A transit engine answers 400 to a ciphertext that is none.
   */
  private void requireTransit(Session session, String keyId) {
    JsonHttp.Answer answer = ask(session, DECRYPT, keyId, decryption(keyId, PROBE));
    if (answer.status() != 400 || VaultErrors.isMissingKey(answer)) {
      throw new VaultErrors(config).of(answer, DECRYPT, keyId);
    }
  }

  /**
   * Makes sure that a wrapped key is bound to its key id: a Vault before 1.13 ignores associated
   * data, and what it wrapped would not unwrap after an upgrade.
   */
  private void requireAssociatedData(Session session, String keyId, String ciphertext) {
    JsonObject otherId = decryption(keyId + ".other", ciphertext);
    if (ask(session, DECRYPT, keyId, otherId).status() == 200) {
      throw new NotSupportedException(
          String.format(
              "%s does not bind what it wraps with key '%s' to the key id", config, keyId),
          "Use Vault 1.13 or newer: older ones ignore associated data.");
    }
  }

  /**
   * Why Vault answered 403: it says so for a bad token, for a missing policy, and to encrypt under
   * a missing key by a login that may not create one. Decrypt tells a missing key apart.
   */
  private IcebergCryptoException denied(
      VaultHttp http, String token, JsonHttp.Answer answer, String operation, String keyId) {
    VaultErrors errors = new VaultErrors(config);
    if (VaultErrors.isInvalidToken(answer)) {
      return errors.invalidToken(keyId);
    }

    if (operation.equals(ENCRYPT)
        && VaultErrors.isMissingKey(
            http.post(path(DECRYPT, keyId), token, decryption(keyId, PROBE)))) {
      return errors.keyNotFound(keyId);
    }

    return http.get(VaultLogin.LOOKUP, token).status() == 200
        ? errors.forbidden(operation, keyId)
        : errors.refused(answer, operation, keyId);
  }

  private static String result(JsonHttp.Answer answer, String name) {
    return answer.status() == 200
        ? VaultHttp.text(JsonHttp.object(answer.body(), "data"), name)
        : "";
  }

  /** What Base64 decodes to; nothing when it is none, for the decoder's own error shows it. */
  private static byte[] decoded(String base64) {
    try {
      return Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException e) {
      return new byte[0];
    }
  }

  /** Whether it is what encoding gives: decoders, Vault's too, ignore the last unused bits. */
  private static boolean isCanonical(String base64) {
    return Base64.getEncoder().encodeToString(decoded(base64)).equals(base64);
  }

  private static JsonObject decryption(String keyId, String ciphertext) {
    JsonObject request = request(keyId);
    request.addProperty("ciphertext", ciphertext);
    return request;
  }

  private String path(String operation, String keyId) {
    return config.mount() + "/" + operation + "/" + keyId;
  }

  private static JsonObject request(String keyId) {
    JsonObject request = new JsonObject();
    request.addProperty(
        "associated_data",
        Base64.getEncoder().encodeToString(keyId.getBytes(StandardCharsets.UTF_8)));
    return request;
  }

  private static String base64(ByteBuffer key) {
    byte[] bytes = KeyCache.copyOf(key);
    try {
      return Base64.getEncoder().encodeToString(bytes);
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /** Vault's ciphertext in a blob, whose two versions must agree. */
  private String ciphertext(ByteBuffer blob, String keyId) {
    WrappedKey wrapped = WrappedKey.parse(blob, KMS, keyId);
    String ciphertext = new String(wrapped.body(), StandardCharsets.UTF_8);
    Matcher parsed = CIPHERTEXT.matcher(ciphertext);
    if (!parsed.matches()
        || Integer.parseInt(parsed.group(1)) != wrapped.keyVersion()
        || !isCanonical(parsed.group(2))) {
      throw new BadWrappedKeyException(
          String.format(
              "A key wrapped under '%s' by %s is damaged: its header says version %d, and no"
                  + " ciphertext of that version follows",
              keyId, config, wrapped.keyVersion()),
          "The table's metadata was changed or damaged: restore it.");
    }

    return ciphertext;
  }

  /** The name goes into a path, so nothing else than a name may be in it. */
  private void checkKeyId(String keyId) {
    if (!KEY_NAME.matcher(keyId).matches() || keyId.contains("..")) {
      throw new InvalidConfigurationException(
          String.format("'%s' cannot be the name of a key of %s", keyId, config),
          "Use the transit key's bare name: letters, digits, '_', and '-' and '.' within.");
    }
  }
}
