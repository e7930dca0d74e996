package io.icebergcrypto.kms.keystore;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.SecretSource;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.UnrecoverableKeyException;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import javax.crypto.SecretKey;

/** A PKCS12 file of AES keys, as last read. */
final class KeystoreFile {
  private final Path path;
  private final Stamp stamp;
  private final KeyStore keys;
  private final char[] password;
  private final List<String> entries;

  // each access to the PKCS12 store derives a key from the password, which is slow by design
  private final ConcurrentMap<String, SecretKey> opened = new ConcurrentHashMap<>();

  /**
   * Tells two states of a file apart. A file that was exchanged by renaming has another file key,
   * however coarse the clock of its file system.
   */
  private record Stamp(FileTime modified, long size, Optional<Object> fileKey) {
    static Stamp of(Path path) throws IOException {
      BasicFileAttributes attributes = Files.readAttributes(path, BasicFileAttributes.class);
      return new Stamp(
          attributes.lastModifiedTime(),
          attributes.size(),
          Optional.ofNullable(attributes.fileKey()));
    }
  }

  private KeystoreFile(Path path, Stamp stamp, KeyStore keys, char[] password)
      throws GeneralSecurityException {
    this.path = path;
    this.stamp = stamp;
    this.keys = keys;
    this.password = password;
    this.entries = List.copyOf(Collections.list(keys.aliases()));
  }

  /**
   * Reads a keystore.
   *
   * @throws InvalidConfigurationException when there is no such file, users other than its owner
   *     may read or change it, it is not a PKCS12 file, or there is no password
   * @throws AccessDeniedException when this user may not read the file
   * @throws LoginFailedException when the password is wrong
   * @throws KmsUnavailableException when the file system fails
   */
  static KeystoreFile read(Path path, SecretSource source) {
    char[] password = password(source);
    try {
      SecretSource.requirePrivate(path, KmsProperties.KEYSTORE_PATH);
      // before the content: a change in between makes this copy an old one
      Stamp stamp = Stamp.of(path);
      byte[] content = Files.readAllBytes(path);
      return new KeystoreFile(path, stamp, open(path, content, password, source), password);
    } catch (IOException e) {
      throw unreadable(path, e);
    } catch (GeneralSecurityException e) {
      throw failed(path, "open", "*", e);
    }
  }

  /**
   * Java's PBE keys take nothing but printable ASCII; with any other password Java says that the
   * file is damaged.
   */
  private static char[] password(SecretSource source) {
    String password = source.read();
    if (!password.matches("[ -~]+")) {
      throw new InvalidConfigurationException(
          String.format(
              "The keystore's password in %s has characters that no PKCS12 keystore of Java"
                  + " accepts",
              source),
          "Use ASCII letters, digits and punctuation, as many as you like.");
    }

    return password.toCharArray();
  }

  /**
   * Whether the file is still what was read: one look at its attributes.
   *
   * @throws InvalidConfigurationException when the file is no longer there
   * @throws KmsUnavailableException when the file system fails
   */
  boolean isCurrent() {
    try {
      return Stamp.of(path).equals(stamp);
    } catch (IOException e) {
      throw unreadable(path, e);
    }
  }

  /** The newest version of a key; 0 if it does not exist. */
  int newest(String keyId) {
    return KeyVersions.newest(inPkcs12(keyId), entries);
  }

  /** Whether a version of a key is there. */
  boolean has(String keyId, int version) {
    return entries.contains(inPkcs12(KeyVersions.entry(keyId, version)));
  }

  /**
   * A version of a key.
   *
   * @throws InvalidConfigurationException when it is not an AES key
   * @throws AccessDeniedException when it has a password of its own
   */
  SecretKey key(String keyId, int version) {
    return opened.computeIfAbsent(inPkcs12(KeyVersions.entry(keyId, version)), this::openEntry);
  }

  /** The ids of the keys, for an error's hint. */
  String keyIds() {
    return entries.stream().filter(KeyVersions::isKeyId).sorted().collect(Collectors.joining(", "));
  }

  private SecretKey openEntry(String entry) {
    try {
      Key key = keys.getKey(entry, password);
      if (key instanceof SecretKey secret && key.getAlgorithm().equals("AES")) {
        return secret;
      }
    } catch (UnrecoverableKeyException e) {
      throw new AccessDeniedException(
          String.format("Key '%s' of keystore %s has a password of its own", entry, path),
          "Give the key the keystore's password, as PKCS12 keystores have it.",
          e);
    } catch (GeneralSecurityException e) {
      throw failed(path, "read", entry, e);
    }

    throw new InvalidConfigurationException(
        String.format("Key '%s' of keystore %s is not an AES secret key", entry, path),
        "Make one with keytool -genseckey -keyalg AES -keysize 256.");
  }

  private static KeyStore open(Path path, byte[] content, char[] password, SecretSource source)
      throws GeneralSecurityException {
    try {
      KeyStore keys = KeyStore.getInstance("PKCS12");
      keys.load(new ByteArrayInputStream(content), password);
      return keys;
    } catch (IOException e) {
      if (e.getCause() instanceof UnrecoverableKeyException) {
        throw new LoginFailedException(
            String.format("The password for keystore %s is wrong", path),
            String.format(
                "Check the password in %s, which %s or %s names.",
                source, KmsProperties.KEYSTORE_PASSWORD_ENV, KmsProperties.KEYSTORE_PASSWORD_FILE),
            e);
      }

      throw new InvalidConfigurationException(
          String.format("%s (%s) is not a PKCS12 keystore", path, KmsProperties.KEYSTORE_PATH),
          "Check the path. If tables use this keystore already, restore it from a backup. Otherwise"
              + " make one with pyspark_iceberg_crypto.Keystore.create(...) or keytool -storetype"
              + " PKCS12.",
          e);
    }
  }

  private static IcebergCryptoException unreadable(Path path, IOException cause) {
    if (cause instanceof NoSuchFileException) {
      return new InvalidConfigurationException(
          String.format("Keystore %s (%s) does not exist", path, KmsProperties.KEYSTORE_PATH),
          "Check the path on this host. If tables use this keystore already, restore it from a"
              + " backup: a new one cannot read them. Otherwise"
              + " pyspark_iceberg_crypto.Keystore.create(...) makes one.",
          cause);
    }

    if (cause instanceof java.nio.file.AccessDeniedException) {
      return new AccessDeniedException(
          String.format("Keystore %s may not be read by this user", path),
          "Make the user that runs Spark the file's owner (chown), with mode 600.",
          cause);
    }

    return new KmsUnavailableException(
        String.format("Keystore %s cannot be read: %s", path, cause),
        "Check the file system that it is on, and that the path is a file.",
        cause);
  }

  static IcebergCryptoException failed(
      Path path, String what, String keyId, GeneralSecurityException cause) {
    return new IcebergCryptoException(
        String.format(
            "Keystore %s: could not %s with key '%s': %s", path, what, keyId, cause.getMessage()),
        "This Java lacks AES/GCM or PKCS12: use a JDK 17 with the default security providers.",
        cause);
  }

  /** PKCS12 stores of the JDK lower-case the names of their entries. */
  private static String inPkcs12(String name) {
    return name.toLowerCase(Locale.ENGLISH);
  }
}
