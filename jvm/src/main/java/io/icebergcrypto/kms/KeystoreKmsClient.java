package io.icebergcrypto.kms;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.UnrecoverableKeyException;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in a PKCS12 file: AES keys of 128, 192 or 256 bits, one password for the file and its
 * entries. For laptops, tests and single hosts; whoever has the file and the password has the keys.
 *
 * <p>Keys are wrapped with AES-GCM (NIST SP 800-38D), a random 96-bit nonce and the master key's id
 * as additional authenticated data. A wrapped key is: version (1 byte, 1) | nonce (12) | ciphertext
 * | tag (16).
 *
 * <p>Configured by {@code encryption.kms.keystore.path} and one of {@code .password-env} (the name
 * of an environment variable) and {@code .password-file} (a file that holds the password). Only
 * these references travel to executors. Also works as {@code encryption.kms-impl} under a stock
 * catalog.
 */
public final class KeystoreKmsClient implements KeyManagementClient {
  private static final long serialVersionUID = 1L;

  private static final byte VERSION = 1;
  private static final int NONCE_LENGTH = 12;
  private static final int TAG_LENGTH = 16;
  private static final String PLAIN_PASSWORD = "encryption.kms.keystore.password";

  /**
   * The file as it was read.
   *
   * @param keys the PKCS12 file; each look into it derives a key from the password anew, which is
   *     slow by design
   * @param password opens the file and its entries
   * @param modified when the file had last been changed
   * @param opened the master keys that were used so far
   */
  private record Loaded(
      KeyStore keys, char[] password, FileTime modified, ConcurrentMap<String, SecretKey> opened) {}

  private String path;
  private String passwordEnv;
  private String passwordFile;
  private transient volatile Loaded loaded;
  private transient volatile SecureRandom random;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(Map)}. */
  public KeystoreKmsClient() {}

  /**
   * Opens the keystore.
   *
   * @param properties the catalog's properties
   * @throws InvalidConfigurationException when a property is missing, or names no PKCS12 file
   * @throws AccessDeniedException when the password is wrong or the file cannot be read
   */
  @Override
  public void initialize(Map<String, String> properties) {
    this.path = properties.get(KmsProperties.KEYSTORE_PATH);
    this.passwordEnv = properties.get(KmsProperties.KEYSTORE_PASSWORD_ENV);
    this.passwordFile = properties.get(KmsProperties.KEYSTORE_PASSWORD_FILE);
    if (properties.containsKey(PLAIN_PASSWORD)) {
      throw new InvalidConfigurationException(
          "Property " + PLAIN_PASSWORD + " would show the password to whoever sees the session",
          "Put it into an environment variable or a file and name that with "
              + KmsProperties.KEYSTORE_PASSWORD_ENV
              + " or "
              + KmsProperties.KEYSTORE_PASSWORD_FILE
              + ".");
    }

    if (path == null || path.isBlank()) {
      throw new InvalidConfigurationException(
          "Property " + KmsProperties.KEYSTORE_PATH + " is missing",
          "Set it to a PKCS12 file; pyspark_iceberg_crypto.Keystore.create(...) makes one.");
    }

    if ((passwordEnv == null) == (passwordFile == null)) {
      throw new InvalidConfigurationException(
          String.format(
              "Keystore %s needs its password from one place; %s of %s and %s are set",
              path,
              passwordEnv == null ? "none" : "both",
              KmsProperties.KEYSTORE_PASSWORD_ENV,
              KmsProperties.KEYSTORE_PASSWORD_FILE),
          "Set exactly one of the two.");
    }

    loaded();
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    byte[] nonce = new byte[NONCE_LENGTH];
    random().nextBytes(nonce);
    byte[] plaintext = KeyCache.copyOf(key);
    try {
      byte[] sealed = cipher(Cipher.ENCRYPT_MODE, wrappingKeyId, nonce).doFinal(plaintext);
      return ByteBuffer.allocate(1 + NONCE_LENGTH + sealed.length)
          .put(VERSION)
          .put(nonce)
          .put(sealed)
          .flip();
    } catch (GeneralSecurityException e) {
      throw cipherFailed("wrap", wrappingKeyId, e);
    } finally {
      Arrays.fill(plaintext, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    byte[] blob = KeyCache.copyOf(wrappedKey);
    if (blob.length <= 1 + NONCE_LENGTH + TAG_LENGTH || blob[0] != VERSION) {
      throw new TamperedException(
          String.format(
              "A key of %d bytes was not wrapped by a keystore (expected version byte %d), yet is"
                  + " to be unwrapped with key '%s' of keystore %s",
              blob.length, VERSION, wrappingKeyId, path),
          "The table's key was wrapped by another KMS, or its metadata was changed: check"
              + " encryption.kms-type.");
    }

    byte[] nonce = Arrays.copyOfRange(blob, 1, 1 + NONCE_LENGTH);
    int start = 1 + NONCE_LENGTH;
    try {
      return ByteBuffer.wrap(
          cipher(Cipher.DECRYPT_MODE, wrappingKeyId, nonce)
              .doFinal(blob, start, blob.length - start));
    } catch (AEADBadTagException e) {
      throw new TamperedException(
          String.format(
              "A wrapped key does not unwrap with key '%s' of keystore %s", wrappingKeyId, path),
          "This keystore has another key of that name than the one that wrapped it, or the wrapped"
              + " key was changed: use the keystore that the table was written with.",
          e);
    } catch (GeneralSecurityException e) {
      throw cipherFailed("unwrap", wrappingKeyId, e);
    }
  }

  @Override
  public String toString() {
    return "keystore " + path;
  }

  private Cipher cipher(int mode, String wrappingKeyId, byte[] nonce)
      throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(mode, masterKey(wrappingKeyId), new GCMParameterSpec(TAG_LENGTH * 8, nonce));
    cipher.updateAAD(wrappingKeyId.getBytes(StandardCharsets.UTF_8));
    return cipher;
  }

  private SecretKey masterKey(String keyId) {
    Loaded store = loaded();
    SecretKey opened = store.opened().get(keyId);
    if (opened == null) {
      opened = open(keyId, store);
      store.opened().put(keyId, opened);
    }

    return opened;
  }

  private SecretKey open(String keyId, Loaded current) {
    try {
      Loaded store = current;
      if (!store.keys().containsAlias(keyId) && !modified().equals(store.modified())) {
        // somebody added a key since
        this.loaded = null;
        store = loaded();
      }

      Key key = store.keys().getKey(keyId, store.password());
      if (key == null) {
        throw new KeyNotFoundException(
            String.format("Keystore %s has no key '%s'", path, keyId),
            "It has: "
                + String.join(", ", Collections.list(store.keys().aliases()))
                + ". Use one of these as encryption.key-id, or add the key to the keystore.");
      }

      if (key instanceof SecretKey secret && key.getAlgorithm().equals("AES")) {
        return secret;
      }

      throw new InvalidConfigurationException(
          String.format("Key '%s' of keystore %s is not an AES secret key", keyId, path),
          "Make one with keytool -genseckey -keyalg AES -keysize 256.");
    } catch (UnrecoverableKeyException e) {
      throw new AccessDeniedException(
          String.format("Key '%s' of keystore %s has a password of its own", keyId, path),
          "Give the key the keystore's password, as PKCS12 keystores have it.",
          e);
    } catch (GeneralSecurityException e) {
      throw cipherFailed("read", keyId, e);
    }
  }

  private Loaded loaded() {
    Loaded current = loaded;
    if (current == null) {
      synchronized (this) {
        current = loaded;
        if (current == null) {
          current = load();
          this.loaded = current;
        }
      }
    }

    return current;
  }

  private Loaded load() {
    char[] password = password();
    try (InputStream in = Files.newInputStream(Path.of(path))) {
      FileTime modified = modified();
      KeyStore keys = KeyStore.getInstance("PKCS12");
      keys.load(in, password);
      return new Loaded(keys, password, modified, new ConcurrentHashMap<>());
    } catch (NoSuchFileException e) {
      throw new InvalidConfigurationException(
          String.format("Keystore %s (%s) does not exist", path, KmsProperties.KEYSTORE_PATH),
          "Check the path on this host; pyspark_iceberg_crypto.Keystore.create(...) makes a"
              + " keystore.",
          e);
    } catch (java.nio.file.AccessDeniedException e) {
      throw new AccessDeniedException(
          String.format("Keystore %s may not be read by this user", path),
          "Give the user that runs Spark read permission on the file.",
          e);
    } catch (IOException e) {
      if (e.getCause() instanceof UnrecoverableKeyException) {
        throw new AccessDeniedException(
            String.format("The password for keystore %s is wrong", path),
            "Check " + passwordSource() + ".",
            e);
      }

      throw new InvalidConfigurationException(
          String.format("%s (%s) is not a PKCS12 keystore", path, KmsProperties.KEYSTORE_PATH),
          "Make one with pyspark_iceberg_crypto.Keystore.create(...) or keytool -storetype PKCS12.",
          e);
    } catch (GeneralSecurityException e) {
      throw cipherFailed("open", "*", e);
    }
  }

  private FileTime modified() {
    try {
      return Files.getLastModifiedTime(Path.of(path));
    } catch (IOException e) {
      return FileTime.fromMillis(0);
    }
  }

  private char[] password() {
    if (passwordEnv != null) {
      String value = System.getenv(passwordEnv);
      if (value == null) {
        throw new InvalidConfigurationException(
            String.format(
                "Environment variable %s, which %s names, is not set",
                passwordEnv, KmsProperties.KEYSTORE_PASSWORD_ENV),
            "Export it before Spark starts (on executors too: spark.executorEnv."
                + passwordEnv
                + ").");
      }
      return value.toCharArray();
    }

    try {
      return Files.readString(Path.of(passwordFile)).strip().toCharArray();
    } catch (IOException e) {
      throw new InvalidConfigurationException(
          String.format(
              "Password file %s, which %s names, cannot be read: %s",
              passwordFile, KmsProperties.KEYSTORE_PASSWORD_FILE, e),
          "Check the path and its permissions on this host.",
          e);
    }
  }

  private String passwordSource() {
    return passwordEnv != null
        ? String.format(
            "%s: environment variable %s", KmsProperties.KEYSTORE_PASSWORD_ENV, passwordEnv)
        : String.format("%s: file %s", KmsProperties.KEYSTORE_PASSWORD_FILE, passwordFile);
  }

  private SecureRandom random() {
    if (random == null) {
      this.random = new SecureRandom();
    }

    return random;
  }

  private IcebergCryptoException cipherFailed(
      String what, String keyId, GeneralSecurityException cause) {
    return new IcebergCryptoException(
        String.format(
            "Keystore %s: could not %s with key '%s': %s", path, what, keyId, cause.getMessage()),
        "This Java lacks AES/GCM or PKCS12: use a JDK 17 with the default security providers.",
        cause);
  }
}
