package io.icebergcrypto.kms.vault;

import com.google.gson.JsonObject;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.JsonHttp;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The master keys of Vault's transit engine: connections and a login. A wrapped key is a {@link
 * WrappedKey} header, which names the key's version, and Vault's ciphertext ({@code vault:v1:...}),
 * which is bound to the key id as associated data.
 *
 * <p>Other clients wrap without both. Such bare ciphertexts are unwrapped and made only if that is
 * asked for, as another application's use of the key gives them too, and only with a key whose
 * ciphertexts are authenticated. For a key of another type, as with RSA whose public half wraps,
 * associated data would be refused: so Vault is asked to decrypt with it, once for each key.
 */
final class VaultKeys implements MasterKeys {
  static final String ENCRYPT = "encrypt";
  static final String DECRYPT = "decrypt";

  /**
   * The type of the key that encrypt would create: one that cannot encrypt, so that Vault refuses
   * to. Vault reads it for a missing key only.
   */
  static final String NEVER_CREATE = "ecdsa-p256";

  /** A ciphertext that no key decrypts. */
  private static final String PROBE = "vault:v1:probe";

  private static final String KMS = "vault";
  private static final String BARE = "vault:v";
  private static final Pattern KEY_NAME = Pattern.compile("\\w(([\\w.-]+)?\\w)?");
  private static final Pattern CIPHERTEXT = Pattern.compile("vault:v([1-9]\\d{0,8}):(\\S+)");

  private final VaultConfig config;
  private final VaultErrors errors;
  private final VaultHttp http;
  private final VaultLogin login;

  /** Whether the mount has been seen to be a transit engine. */
  private volatile boolean transit;

  /** Whether that has been seen to bind what it wraps. */
  private volatile boolean binds;

  /** The keys that have been seen to authenticate associated data, and so all that they wrap. */
  private final Set<String> authenticating = ConcurrentHashMap.newKeySet();

  VaultKeys(VaultConfig config) {
    this.config = config;
    this.errors = new VaultErrors(config);
    this.http = new VaultHttp(config);
    this.login = new VaultLogin(config, http);
  }

  /** Wraps a key under the newest version of a transit key. */
  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    checkKeyId(keyId);
    return about(keyId, () -> encrypt(key, keyId));
  }

  private ByteBuffer encrypt(byte[] key, String keyId) {
    if (!transit) {
      requireTransit(keyId);
      this.transit = true;
    }

    JsonObject request = config.bare() ? new JsonObject() : request(keyId);
    request.addProperty("plaintext", Base64.getEncoder().encodeToString(key));
    request.addProperty("type", NEVER_CREATE);
    JsonHttp.Answer answer = ask(ENCRYPT, keyId, request);
    String ciphertext = result(answer, "ciphertext");
    Matcher parsed = CIPHERTEXT.matcher(ciphertext);
    if (!parsed.matches()) {
      throw errors.of(answer, ENCRYPT, keyId);
    }

    byte[] body = ciphertext.getBytes(StandardCharsets.US_ASCII);
    if (config.bare()) {
      requireAuthenticating(keyId, ciphertext);
      return ByteBuffer.wrap(body);
    }

    if (!binds) {
      requireAssociatedData(keyId, ciphertext);
      this.binds = true;
    }

    return new WrappedKey(KMS, Integer.parseInt(parsed.group(1)), body).encode();
  }

  /** Unwraps a key, whichever version of the transit key wrapped it. */
  @Override
  public ByteBuffer unwrap(ByteBuffer wrapped, String keyId) {
    checkKeyId(keyId);
    boolean bare = isBare(wrapped);
    String ciphertext = bare ? bareCiphertext(wrapped, keyId) : ciphertext(wrapped, keyId);
    return about(
        keyId,
        () -> {
          JsonObject request = bare ? withCiphertext(ciphertext) : decryption(keyId, ciphertext);
          JsonHttp.Answer answer = ask(DECRYPT, keyId, request);
          byte[] key = decoded(result(answer, "plaintext"));
          if (key.length == 0) {
            throw errors.of(answer, DECRYPT, keyId);
          }

          if (bare) {
            requireAuthenticating(keyId, ciphertext);
          }

          return ByteBuffer.wrap(key);
        });
  }

  /** Ends the renewals. A token that a login made ends by itself. */
  @Override
  public void close() {
    login.close();
  }

  private ByteBuffer about(String keyId, Supplier<ByteBuffer> operation) {
    try {
      return operation.get();
    } catch (KmsUnavailableException | AccessDeniedException | InvalidConfigurationException e) {
      throw e.problem().contains("'" + keyId + "'")
          ? e
          : e.withProblem("Key '" + keyId + "' cannot be used: " + e.problem());
    }
  }

  /** Asks, and again when there is another token than the one that Vault refused. */
  private JsonHttp.Answer ask(String operation, String keyId, JsonObject request) {
    String token = login.token();
    JsonHttp.Answer answer = http.post(path(operation, keyId), token, request);
    if (answer.status() == 403 && login.replaced(token, VaultErrors.isInvalidToken(answer))) {
      token = login.token();
      answer = http.post(path(operation, keyId), token, request);
    }

    if (answer.status() == 403) {
      throw denied(token, answer, operation, keyId);
    }

    return answer;
  }

  /**
   * Makes sure that the mount is a transit engine before a key goes there: a key-value engine, say,
   * would store it. A transit engine answers 400 to what is not a ciphertext.
   */
  private void requireTransit(String keyId) {
    JsonHttp.Answer answer = ask(DECRYPT, keyId, decryption(keyId, PROBE));
    if (answer.status() != 400 || VaultErrors.isMissingKey(answer)) {
      throw errors.of(answer, DECRYPT, keyId);
    }
  }

  /**
   * Makes sure that a wrapped key is bound to its key id: a Vault before 1.13 ignores associated
   * data, and what it wrapped would not unwrap after an upgrade.
   */
  private void requireAssociatedData(String keyId, String ciphertext) {
    JsonHttp.Answer answer = ask(DECRYPT, keyId, decryption(keyId + ".other", ciphertext));
    if (answer.status() == 200) {
      throw ignoresAssociatedData(keyId);
    }

    if (VaultErrors.isTooNew(answer)) { // it was not tried
      throw errors.of(answer, DECRYPT, keyId);
    }
  }

  private NotSupportedException ignoresAssociatedData(String keyId) {
    return new NotSupportedException(
        String.format("%s does not bind what it wraps with key '%s' to the key id", config, keyId),
        "Use Vault 1.13 or newer: older ones ignore associated data.");
  }

  /**
   * Makes sure that a key authenticates what it wraps, by a bare ciphertext that it decrypts: with
   * associated data it must not, because the tag does not match.
   */
  private void requireAuthenticating(String keyId, String ciphertext) {
    if (authenticating.contains(keyId)) {
      return;
    }

    JsonHttp.Answer answer = ask(DECRYPT, keyId, decryption(keyId, ciphertext));
    if (answer.status() == 200) {
      throw ignoresAssociatedData(keyId);
    }

    IcebergCryptoException refusal = errors.of(answer, DECRYPT, keyId);
    if (!(refusal instanceof BadWrappedKeyException)) {
      throw refusal;
    }

    authenticating.add(keyId);
  }

  /**
   * Why Vault answered 403: it does for a bad token, for a missing policy, and for encrypting under
   * a missing key with a login that may not create one. Decrypt tells a missing key apart.
   */
  private IcebergCryptoException denied(
      String token, JsonHttp.Answer answer, String operation, String keyId) {
    if (VaultErrors.isInvalidToken(answer)) {
      return errors.loginRefused(keyId);
    }

    if (operation.equals(ENCRYPT)
        && VaultErrors.isMissingKey(
            http.post(path(DECRYPT, keyId), token, decryption(keyId, PROBE)))) {
      return errors.keyNotFound(keyId);
    }

    boolean lives = http.get(VaultLogin.LOOKUP, token).status() == 200;
    return errors.denied(lives, answer, operation, keyId);
  }

  private static String result(JsonHttp.Answer answer, String name) {
    return answer.status() == 200
        ? JsonHttp.text(JsonHttp.object(answer.body(), "data"), name)
        : "";
  }

  /** Decodes Base64; empty for other text, as the decoder's own error would show it. */
  private static byte[] decoded(String base64) {
    try {
      return Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException e) {
      return new byte[0];
    }
  }

  /** Whether encoding gives the same text: decoders, Vault's too, ignore the last unused bits. */
  private static boolean isCanonical(String base64) {
    return Base64.getEncoder().encodeToString(decoded(base64)).equals(base64);
  }

  private static JsonObject decryption(String keyId, String ciphertext) {
    JsonObject request = request(keyId);
    request.addProperty("ciphertext", ciphertext);
    return request;
  }

  private static JsonObject withCiphertext(String ciphertext) {
    JsonObject request = new JsonObject();
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
              "A key wrapped under '%s' by %s is damaged: its header says version %d, but no"
                  + " ciphertext of that version follows",
              keyId, config, wrapped.keyVersion()),
          "The table's metadata was changed or damaged: restore it.");
    }

    return ciphertext;
  }

  private static boolean isBare(ByteBuffer blob) {
    return StandardCharsets.ISO_8859_1.decode(blob.duplicate()).toString().startsWith(BARE);
  }

  private String bareCiphertext(ByteBuffer blob, String keyId) {
    if (!config.readBare()) {
      throw new NotSupportedException(
          String.format(
              "A key wrapped under '%s' by %s is Vault's bare ciphertext, without this project's"
                  + " header: anyone who can encrypt data with this transit key can make one",
              keyId, config),
          String.format(
              "If another client writes the table, and nothing but Iceberg tables uses this transit"
                  + " key, set %s=true (docs/kms/vault.md, \"Bare ciphertexts\"). Otherwise find"
                  + " out who wrote the table's metadata.",
              VaultConfig.READ_BARE));
    }

    String ciphertext = StandardCharsets.ISO_8859_1.decode(blob.duplicate()).toString();
    Matcher parsed = CIPHERTEXT.matcher(ciphertext);
    if (!parsed.matches() || !isCanonical(parsed.group(2))) {
      throw new BadWrappedKeyException(
          String.format(
              "A key wrapped under '%s' by %s is damaged: it starts like Vault's ciphertext, but is"
                  + " not valid",
              keyId, config),
          "The table's metadata was changed or damaged: restore it.");
    }

    return ciphertext;
  }

  /** The key id becomes part of a path, so it may be nothing but a name. */
  private void checkKeyId(String keyId) {
    if (!KEY_NAME.matcher(keyId).matches() || keyId.contains("..")) {
      throw new InvalidConfigurationException(
          String.format("'%s' cannot be the name of a key of %s", keyId, config),
          "Use the transit key's bare name: letters, digits, '_', and '-' and '.' within.");
    }
  }
}
