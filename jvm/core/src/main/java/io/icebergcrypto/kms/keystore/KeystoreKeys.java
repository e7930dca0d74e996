package io.icebergcrypto.kms.keystore;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.kms.blob.GcmBody;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.config.MasterKeys;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;

/**
 * The master keys of a PKCS12 file. A wrapped key is a {@link WrappedKey} with the body nonce (12
 * bytes) | ciphertext | tag (16); its header and the master key's id are authenticated.
 *
 * <p>A master key has versions (see {@link KeyVersions}). The newest wraps: each wrap checks
 * whether the file has changed. The version that the header names unwraps; a file that has changed
 * is read again when that version is missing or does not fit.
 */
final class KeystoreKeys implements MasterKeys {
  private static final String KMS = "keystore";

  private final KeystoreConfig config;
  private volatile KeystoreFile file;

  KeystoreKeys(KeystoreConfig config) {
    this.config = config;
    this.file = read();
  }

  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    KeystoreFile store = current(keyId);
    int version = store.newest(keyId);
    if (version == 0) {
      throw noSuchKey(keyId, store);
    }

    try {
      byte[] body = GcmBody.seal(key, ciphers(store, keyId, version));
      return new WrappedKey(KMS, version, body).encode();
    } catch (GeneralSecurityException e) {
      throw KeystoreFile.failed(config.path(), "wrap", keyId, e);
    }
  }

  @Override
  public ByteBuffer unwrap(ByteBuffer blob, String keyId) {
    WrappedKey wrapped = GcmBody.parse(blob, KMS, keyId, config.toString());
    int version = wrapped.keyVersion();
    try {
      KeystoreFile store = holding(keyId, version);
      try {
        return open(wrapped, store, keyId);
      } catch (AEADBadTagException e) {
        if (current(keyId) == store) {
          throw e;
        }

        return open(wrapped, holding(keyId, version), keyId); // the file was put right since
      }
    } catch (AEADBadTagException e) {
      throw new BadWrappedKeyException(
          String.format(
              "A wrapped key does not unwrap with version %d of key '%s' of %s",
              version, keyId, config),
          "This keystore's key of that name is not the one that wrapped it, or the wrapped key was"
              + " changed: use the keystore that the table was written with.",
          e);
    } catch (GeneralSecurityException e) {
      throw KeystoreFile.failed(config.path(), "unwrap", keyId, e);
    }
  }

  private static ByteBuffer open(WrappedKey wrapped, KeystoreFile store, String keyId)
      throws GeneralSecurityException {
    return ByteBuffer.wrap(
        GcmBody.open(wrapped.body(), ciphers(store, keyId, wrapped.keyVersion())));
  }

  private static GcmBody.Ciphers ciphers(KeystoreFile store, String keyId, int version) {
    return (mode, parameters) -> {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, store.key(keyId, version), parameters);
      cipher.updateAAD(WrappedKey.authenticated(KMS, version, keyId));
      return cipher;
    };
  }

  /** The keystore as it is now, so that the newest version wraps. */
  private KeystoreFile current(String keyId) {
    KeyVersions.requireKeyId(keyId, config.toString());
    KeystoreFile known = file;
    if (!known.isCurrent()) {
      known = read();
      this.file = known;
    }

    return known;
  }

  /** A keystore with a version of a key: what was read before or, if need be, as it is now. */
  private KeystoreFile holding(String keyId, int version) {
    KeystoreFile known = file;
    if (!known.has(keyId, version)) {
      known = current(keyId);
    }

    if (known.has(keyId, version)) {
      return known;
    }

    if (known.newest(keyId) == 0) {
      throw noSuchKey(keyId, known);
    }

    throw new KeyNotFoundException(
            String.format(
                "Keystore %s has key '%s', but not its version %d (entry '%s')",
                config.file(), keyId, version, KeyVersions.entry(keyId, version)),
            "Use the keystore that the table was written with, or restore the version from a backup"
                + " of the file.")
        .ofKeyIf(false);
  }

  private KeystoreFile read() {
    return KeystoreFile.read(config.path(), config.password());
  }

  private KeyNotFoundException noSuchKey(String keyId, KeystoreFile store) {
    return new KeyNotFoundException(
        String.format("Keystore %s has no key '%s'", config.file(), keyId),
        "It has: "
            + store.keyIds()
            + ". For a new table, use one of these as encryption.key-id, or add the key to the"
            + " keystore."
            + IF_IN_USE);
  }
}
