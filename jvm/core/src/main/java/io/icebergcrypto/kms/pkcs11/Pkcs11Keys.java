package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.GcmBody;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.TimedCalls;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.pkcs11.Pkcs11Session.SessionEndedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.ProviderException;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import javax.crypto.AEADBadTagException;

/**
 * The master keys of a token. A wrapped key is a {@link WrappedKey} with the body nonce (12 bytes)
 * | ciphertext | tag (16); its header and the master key's id are authenticated.
 *
 * <p>The master key's id is the label (CKA_LABEL) of its first version; see {@link KeyVersions} for
 * the later ones. The newest that was seen wraps; labels are listed again every {@value
 * #LOOK_SECONDS} seconds. The one that the header names unwraps.
 *
 * <p>A session that the token has ended (the HSM was restarted, other code in this process logged
 * out) is replaced by one new login, and the call made again. The token stays logged in when this
 * is closed: others of the process may use it.
 */
final class Pkcs11Keys implements MasterKeys {
  private static final String KMS = "pkcs11";
  private static final long LOOK_SECONDS = 10;

  /** For a PKCS#11 library is native code, which no interrupt reaches. */
  private static final TimedCalls CALLS = new TimedCalls("iceberg-crypto-pkcs11");

  /** What is done on a token; done again in another session when the first one had ended. */
  private interface OnToken<T> {
    /**
     * @param renewed whether the token was logged in to for this very call, so that the session
     *     shows the token as it is
     */
    T in(Pkcs11Session session, boolean renewed) throws GeneralSecurityException, IOException;
  }

  private final Pkcs11Config config;
  private final Pkcs11Token.Place place;
  private volatile Pkcs11Token token;

  Pkcs11Keys(Pkcs11Config config) {
    this.config = config;
    this.place = config.place();
  }

  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    KeyVersions.requireKeyId(keyId, place.toString());
    return onToken("wrap with", keyId, (session, renewed) -> wrap(session, renewed, key, keyId))
        .encode();
  }

  @Override
  public ByteBuffer unwrap(ByteBuffer blob, String keyId) {
    KeyVersions.requireKeyId(keyId, place.toString());
    WrappedKey wrapped = GcmBody.parse(blob, KMS, keyId, place.toString());
    return ByteBuffer.wrap(
        onToken(
            "unwrap with", keyId, (session, renewed) -> unwrap(session, renewed, wrapped, keyId)));
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

    recent.requireKept(keyId, version);
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
                  + " backup.")
          .ofKeyIf(false);
    }

    try {
      return decrypt(holding, wrapped, keyId);
    } catch (AEADBadTagException e) {
      requireWorking(holding, keyId, version, e);
      throw new BadWrappedKeyException(
          String.format(
              "A wrapped key does not unwrap with version %d of key '%s' of %s",
              version, keyId, place),
          "This token's key of that label is not the one that wrapped it, or the wrapped key was"
              + " changed: use the token that the table was written with.",
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
          "Does the token replace the nonce of AES-GCM with one of its own, as some do in FIPS"
              + " mode? Then it cannot be used here.");
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
      throw new SessionEndedException("no key is visible", null);
    }

    return now;
  }

  private KeyNotFoundException noSuchKey(Pkcs11Session session, String keyId) {
    return new KeyNotFoundException(
            String.format("%s has no key '%s' (CKA_LABEL)", place, keyId),
            (session.isEmpty()
                    ? "It shows no key at all to this pin: is the HSM behind it up? For a new"
                        + " table, create the key."
                    : String.format(
                        "It has: %s. For a new table, use one of these as encryption.key-id, or"
                            + " create '%s' on the token.",
                        session.keyIds(), keyId))
                + IF_IN_USE)
        .ofKeyIf(!session.isEmpty()); // an HSM that is down may show nothing
  }

  private <T> T onToken(String what, String keyId, OnToken<T> action) {
    String doing = what + " key '" + keyId + "'";
    String problem = String.format("%s could not %s: no answer", place, doing);
    try {
      return CALLS.within(config.timeLimit(), problem, () -> inSession(doing, action));
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }

      throw (RuntimeException) e.getCause(); // inSession throws no other
    }
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
        return action.in(Pkcs11Token.at(place).renew(first, config.pin(), doing), true);
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
    Pkcs11Session session = joined.join(config.pin(), doing);
    this.token = joined;
    return session;
  }
}
