package io.icebergcrypto.kms;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.blob.GcmBody;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.config.Settings;
import io.icebergcrypto.kms.keystore.KeystoreFile;
import java.nio.ByteBuffer;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Map;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in a PKCS12 file: AES keys of 128, 192 or 256 bits, one password for the file and its
 * entries. For laptops, tests and single hosts; whoever has the file and the password has the keys.
 *
 * <p>Keys are wrapped with AES-GCM (NIST SP 800-38D) and a random 96-bit nonce, so one version of a
 * master key may wrap 2^32 keys (section 8.3). A wrapped key is a {@link WrappedKey} with the body
 * nonce (12 bytes) | ciphertext | tag (16); its header and the master key's id are authenticated.
 *
 * <p>A master key has versions (see {@link KeyVersions}). The newest wraps: each wrap looks whether
 * the file has changed. The one that the header names unwraps; the file is read again when that is
 * not there.
 *
 * <p>Configured by {@code encryption.kms.keystore.path} and one of {@code .password-env} (the name
 * of an environment variable) and {@code .password-file} (a file that holds the password). Both
 * files must be their owner's alone, as ssh has it. Only these references travel to executors. Also
 * works as {@code encryption.kms-impl} under a stock catalog.
 */
public final class KeystoreKmsClient implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private static final String KMS = "keystore";

  private String path;
  private SecretSource password;
  private transient volatile KeystoreFile file;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(Map)}. */
  public KeystoreKmsClient() {}

  /**
   * Reads the keystore.
   *
   * @param properties the catalog's properties
   * @throws InvalidConfigurationException when a property is missing, or names no PKCS12 file, or a
   *     file that is open to others than its owner
   * @throws AccessDeniedException when the file may not be read by this user
   * @throws LoginFailedException when the password is wrong
   */
  @Override
  public void initialize(Map<String, String> properties) {
    Settings settings = new Settings(properties);
    settings.refuseSecret(
        "encryption.kms.keystore.password",
        KmsProperties.KEYSTORE_PASSWORD_ENV + " or " + KmsProperties.KEYSTORE_PASSWORD_FILE);
    this.path = settings.required(KmsProperties.KEYSTORE_PATH, "/etc/spark/keys.p12");
    this.password =
        SecretSource.required(
            settings, KmsProperties.KEYSTORE_PASSWORD_ENV, KmsProperties.KEYSTORE_PASSWORD_FILE);
    this.file = read();
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    KeystoreFile store = current(wrappingKeyId);
    int version = store.newest(wrappingKeyId);
    if (version == 0) {
      throw noSuchKey(wrappingKeyId, store);
    }

    byte[] plaintext = KeyCache.copyOf(key);
    try {
      byte[] body = GcmBody.seal(plaintext, ciphers(store, wrappingKeyId, version));
      return new WrappedKey(KMS, version, body).encode();
    } catch (GeneralSecurityException e) {
      throw KeystoreFile.failed(Path.of(path), "wrap", wrappingKeyId, e);
    } finally {
      Arrays.fill(plaintext, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    WrappedKey wrapped = GcmBody.parse(wrappedKey, KMS, wrappingKeyId, this.toString());
    KeystoreFile store = holding(wrappingKeyId, wrapped.keyVersion());
    try {
      return ByteBuffer.wrap(
          GcmBody.open(wrapped.body(), ciphers(store, wrappingKeyId, wrapped.keyVersion())));
    } catch (AEADBadTagException e) {
      throw new BadWrappedKeyException(
          String.format(
              "A wrapped key does not unwrap with version %d of key '%s' of keystore %s",
              wrapped.keyVersion(), wrappingKeyId, path),
          "This keystore has another key of that name than the one that wrapped it, or the wrapped"
              + " key was changed: use the keystore that the table was written with.",
          e);
    } catch (GeneralSecurityException e) {
      throw KeystoreFile.failed(Path.of(path), "unwrap", wrappingKeyId, e);
    }
  }

  /** AES-GCM: who does not have the key makes no tag. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  /** Forgets the keys; a later call reads the file again. */
  @Override
  public void close() {
    this.file = null;
  }

  @Override
  public String toString() {
    return "keystore " + path;
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
    KeyVersions.requireKeyId(keyId, this.toString());
    KeystoreFile known = file;
    if (known == null || !known.isCurrent()) {
      known = read();
      this.file = known;
    }

    return known;
  }

  /** A keystore with a version of a key: what was read before or, if need be, as it is now. */
  private KeystoreFile holding(String keyId, int version) {
    KeystoreFile known = file;
    if (known == null || !known.has(keyId, version)) {
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
            path, keyId, version, KeyVersions.entry(keyId, version)),
        "Use the keystore that the table was written with, or restore the version from a backup of"
            + " the file.");
  }

  private KeystoreFile read() {
    try {
      return KeystoreFile.read(Path.of(path), password);
    } catch (InvalidPathException e) {
      throw new InvalidConfigurationException(
          String.format("%s (%s) cannot be a path", path, KmsProperties.KEYSTORE_PATH),
          "Give the path of a PKCS12 file.",
          e);
    }
  }

  private KeyNotFoundException noSuchKey(String keyId, KeystoreFile store) {
    return new KeyNotFoundException(
        String.format("Keystore %s has no key '%s'", path, keyId),
        "It has: "
            + store.keyIds()
            + ". Use one of these as encryption.key-id, or add the key to the keystore.");
  }
}
