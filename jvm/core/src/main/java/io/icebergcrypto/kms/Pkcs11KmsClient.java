package io.icebergcrypto.kms;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.GcmBody;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.config.Settings;
import io.icebergcrypto.kms.pkcs11.Pkcs11Calls;
import io.icebergcrypto.kms.pkcs11.Pkcs11Errors;
import io.icebergcrypto.kms.pkcs11.Pkcs11Library;
import io.icebergcrypto.kms.pkcs11.Pkcs11Session;
import io.icebergcrypto.kms.pkcs11.Pkcs11Session.SessionEndedException;
import io.icebergcrypto.kms.pkcs11.Pkcs11Token;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.ProviderException;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.crypto.AEADBadTagException;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in a hardware security module, by PKCS#11 and the JDK's SunPKCS11 provider: AES keys
 * that never leave the token.
 *
 * <p>Keys are wrapped with AES-GCM (CKM_AES_GCM, NIST SP 800-38D) on the token, under a random
 * 96-bit nonce that is made here (section 8.2.2), so one version of a master key may wrap 2^32 keys
 * (section 8.3). A wrapped key is a {@link WrappedKey} with the body nonce (12 bytes) | ciphertext
 * | tag (16); its header and the master key's id are authenticated.
 *
 * <p>The master key's id is the label (CKA_LABEL) of its first version; see {@link KeyVersions} for
 * the later ones. The newest that was seen wraps; labels are looked at anew every {@value
 * #LOOK_SECONDS} seconds. The one that the header names unwraps.
 *
 * <p>A session that the token has ended (the HSM was restarted, somebody in this process logged
 * out) is replaced by one new login, and the call made again.
 *
 * <p>Configured by {@code encryption.kms.pkcs11.library}, one of {@code .token-label} and {@code
 * .slot}, and one of {@code .pin-env} (the name of an environment variable) and {@code .pin-file}
 * (a file that holds the pin). Only these references travel to executors. Also works as {@code
 * encryption.kms-impl} under a stock catalog.
 */
public final class Pkcs11KmsClient implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  public static final String LIBRARY = "encryption.kms.pkcs11.library";
  public static final String SLOT = "encryption.kms.pkcs11.slot";
  public static final String TOKEN_LABEL = "encryption.kms.pkcs11.token-label";
  private static final String PIN_ENV = "encryption.kms.pkcs11.pin-env";
  private static final String PIN_FILE = "encryption.kms.pkcs11.pin-file";

  private static final String KMS = "pkcs11";
  private static final long LOOK_SECONDS = 10;

  /** What is done on a token; done again in another session when the first one had ended. */
  private interface OnToken<T> {
    /**
     * @param renewed whether the token was logged in to for this very call, so that what the
     *     session shows is so
     */
    T in(Pkcs11Session session, boolean renewed) throws GeneralSecurityException, IOException;
  }

  private Pkcs11Token.Place place;
  private SecretSource pin;
  private Pkcs11Calls calls;
  private transient volatile Pkcs11Token token;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(Map)}. */
  public Pkcs11KmsClient() {}

  /**
   * Reads the properties; the token is first used by the first call.
   *
   * @param properties the catalog's properties
   * @throws InvalidConfigurationException when a property is missing or wrong
   */
  @Override
  public void initialize(Map<String, String> properties) {
    Settings settings = new Settings(properties);
    settings.refuseSecret("encryption.kms.pkcs11.pin", PIN_ENV + " or " + PIN_FILE);
    String library = settings.required(LIBRARY, "/usr/lib/softhsm/libsofthsm2.so");
    Pkcs11Library.requireUsable(library, LIBRARY);
    String label = settings.optional(TOKEN_LABEL);
    Long slot = slot(settings.optional(SLOT));
    if ((label == null) == (slot == null)) {
      throw new InvalidConfigurationException(
          String.format(
              "%s of %s and %s are set", label == null ? "None" : "Both", TOKEN_LABEL, SLOT),
          "Set exactly one of the two; the label, as slots may be numbered anew.");
    }

    this.place = new Pkcs11Token.Place(library, slot, label);
    this.pin = SecretSource.required(settings, PIN_ENV, PIN_FILE);
    this.calls =
        new Pkcs11Calls(
            settings.millis(KmsProperties.CALL_TIMEOUT_MS, KmsProperties.CALL_TIMEOUT_MS_DEFAULT));
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    KeyVersions.requireKeyId(wrappingKeyId, this.toString());
    byte[] plaintext = KeyCache.copyOf(key);
    try {
      return onToken(
              "wrap with",
              wrappingKeyId,
              (session, renewed) -> wrap(session, renewed, plaintext, wrappingKeyId))
          .encode();
    } finally {
      Arrays.fill(plaintext, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    KeyVersions.requireKeyId(wrappingKeyId, this.toString());
    WrappedKey wrapped = GcmBody.parse(wrappedKey, KMS, wrappingKeyId, this.toString());
    return ByteBuffer.wrap(
        onToken(
            "unwrap with",
            wrappingKeyId,
            (session, renewed) -> unwrap(session, renewed, wrapped, wrappingKeyId)));
  }

  /** AES-GCM on the token: who may not use the key makes no tag. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  /** Leaves the token logged in: others of this process may use it. */
  @Override
  public void close() {
    this.token = null;
  }

  @Override
  public String toString() {
    return String.valueOf(place);
  }

  private WrappedKey wrap(Pkcs11Session session, boolean renewed, byte[] plaintext, String keyId)
      throws GeneralSecurityException, IOException {
    Pkcs11Session recent = session;
    if (session.newest(keyId) == 0 || session.age() > TimeUnit.SECONDS.toNanos(LOOK_SECONDS)) {
      recent = lookAgain(session, renewed);
    }

    int version = recent.newest(keyId);
    if (version == 0) {
      throw noSuchKey(recent, keyId);
    }

    WrappedKey wrapped = encrypt(recent, plaintext, keyId, version);
    if (recent.isUntried(keyId, version)) {
      requireReadable(recent, wrapped, plaintext, keyId);
    }

    return wrapped;
  }

  private WrappedKey encrypt(Pkcs11Session session, byte[] plaintext, String keyId, int version)
      throws GeneralSecurityException {
    byte[] body = GcmBody.seal(plaintext, ciphers(session, keyId, version));
    return new WrappedKey(KMS, version, body);
  }

  private byte[] unwrap(Pkcs11Session session, boolean renewed, WrappedKey wrapped, String keyId)
      throws GeneralSecurityException, IOException {
    int version = wrapped.keyVersion();
    Pkcs11Session holding = session.has(keyId, version) ? session : lookAgain(session, renewed);
    if (holding.newest(keyId) == 0) {
      throw noSuchKey(holding, keyId);
    }

    if (!holding.has(keyId, version)) {
      throw new KeyNotFoundException(
          String.format(
              "%s has key '%s', but not its version %d (CKA_LABEL '%s')",
              place, keyId, version, KeyVersions.entry(keyId, version)),
          "Use the token that the table was written with, or restore the version from the HSM's"
              + " backup.");
    }

    try {
      return decrypt(holding, wrapped, keyId);
    } catch (AEADBadTagException e) {
      requireWorking(holding, keyId, version, e);
      throw new BadWrappedKeyException(
          String.format(
              "A wrapped key does not unwrap with version %d of key '%s' of %s",
              version, keyId, place),
          "This token has another key of that label than the one that wrapped it, or the wrapped"
              + " key was changed: use the token that the table was written with.",
          e);
    }
  }

  private static byte[] decrypt(Pkcs11Session session, WrappedKey wrapped, String keyId)
      throws GeneralSecurityException {
    return GcmBody.open(wrapped.body(), ciphers(session, keyId, wrapped.keyVersion()));
  }

  /**
   * Tells a bad blob from a token that fails. SunPKCS11 reports each failure of a decryption as a
   * bad tag, and some tokens report a bad tag as a general error: so a trial key goes there and
   * back.
   *
   * @throws SessionEndedException when it is the token
   */
  private void requireWorking(
      Pkcs11Session session, String keyId, int version, AEADBadTagException failure)
      throws SessionEndedException {
    if (Pkcs11Errors.isBadData(failure)) {
      return;
    }

    try {
      byte[] trial = new byte[16];
      decrypt(session, encrypt(session, trial, keyId, version), keyId);
    } catch (GeneralSecurityException | ProviderException e) {
      throw new SessionEndedException("the token fails to decrypt", e);
    }
  }

  /**
   * Reads back the first key that a master key wraps in a session: a token that makes its own nonce
   * (some do, in FIPS mode) would otherwise make keys that nobody can unwrap.
   */
  private void requireReadable(
      Pkcs11Session session, WrappedKey wrapped, byte[] plaintext, String keyId)
      throws GeneralSecurityException {
    byte[] back = {};
    try {
      back = decrypt(session, wrapped, keyId);
    } catch (AEADBadTagException e) {
      if (Pkcs11Errors.isSurelyEnded(e)) {
        throw new SessionEndedException("what was wrapped does not unwrap", e);
      }
    }

    if (!Arrays.equals(plaintext, back)) {
      throw new NotSupportedException(
          String.format("%s does not unwrap what it has just wrapped under '%s'", place, keyId),
          "Does the token replace the nonce of AES-GCM by one of its own, as some do in FIPS mode?"
              + " Then it cannot be used here.");
    }

    Arrays.fill(back, (byte) 0);
    session.tried(keyId, wrapped.keyVersion());
  }

  private static GcmBody.Ciphers ciphers(Pkcs11Session session, String keyId, int version) {
    byte[] aad = WrappedKey.authenticated(KMS, version, keyId);
    return (mode, parameters) -> session.cipher(mode, keyId, version, parameters, aad);
  }

  /** The token as it is now. A session that has ended shows no keys at all. */
  private Pkcs11Session lookAgain(Pkcs11Session session, boolean renewed)
      throws GeneralSecurityException, IOException {
    Pkcs11Session now = Pkcs11Token.at(place).lookAgain(session);
    if (now.isEmpty() && !renewed) {
      throw new SessionEndedException("no key is to be seen", null);
    }

    return now;
  }

  private KeyNotFoundException noSuchKey(Pkcs11Session session, String keyId) {
    return new KeyNotFoundException(
        String.format("%s has no key '%s' (CKA_LABEL)", place, keyId),
        session.isEmpty()
            ? "It shows no key at all to this pin: make one."
            : String.format(
                "It has: %s. Use one of these as encryption.key-id, or make '%s' on the token.",
                session.keyIds(), keyId));
  }

  private <T> T onToken(String what, String keyId, OnToken<T> action) {
    String doing = what + " key '" + keyId + "'";
    return calls.within(this.toString(), doing, () -> inSession(doing, action));
  }

  private <T> T inSession(String doing, OnToken<T> action) {
    Pkcs11Session first = session(doing);
    try {
      try {
        return action.in(first, false);
      } catch (GeneralSecurityException | IOException | ProviderException e) {
        if (!Pkcs11Errors.isEnded(e)) {
          throw e;
        }
        return action.in(Pkcs11Token.at(place).renew(first, pin, doing), true);
      }
    } catch (GeneralSecurityException | IOException | ProviderException e) {
      throw Pkcs11Errors.typed(e, place.toString(), doing);
    }
  }

  private Pkcs11Session session(String doing) {
    Pkcs11Token joined = token;
    if (joined != null) {
      return joined.session();
    }

    joined = Pkcs11Token.at(place);
    Pkcs11Session session = joined.join(pin, doing);
    this.token = joined;
    return session;
  }

  private static Long slot(String value) {
    if (value == null) {
      return null;
    }

    try {
      long slot = Long.decode(value);
      if (slot >= 0 && slot <= Integer.MAX_VALUE) {
        return slot;
      }
    } catch (NumberFormatException e) {
      // told below, as a number out of range is
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is not a slot's id: '%s'", SLOT, value),
        "Give the number that pkcs11-tool --list-slots shows in brackets, such as 0x1866d758 or"
            + " 409392984; or name the token by its label, with "
            + TOKEN_LABEL
            + ".");
  }
}
