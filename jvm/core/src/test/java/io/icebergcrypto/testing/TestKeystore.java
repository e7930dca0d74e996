package io.icebergcrypto.testing;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Map;
import javax.crypto.KeyGenerator;

/** A PKCS12 keystore and the catalog properties that lead to it. */
public final class TestKeystore {
  /** The password of every test keystore. */
  public static final String PASSWORD = "not a secret";

  static { // Java's 10000 would take longer than what many a test does with the key
    System.setProperty("keystore.pkcs12.keyPbeIterationCount", "100");
    System.setProperty("keystore.pkcs12.macIterationCount", "100");
  }

  private final Path path;
  private final Path passwordFile;

  private TestKeystore(Path path, Path passwordFile) {
    this.path = path;
    this.passwordFile = passwordFile;
  }

  /** Makes a keystore with keys of 256 bits. */
  public static TestKeystore create(Path folder, String... keyIds) throws IOException {
    TestKeystore keystore = existing(folder);
    Files.writeString(keystore.passwordFile, PASSWORD + "\n");
    makePrivate(keystore.passwordFile);
    keystore.write(256, keyIds);
    return keystore;
  }

  /** The keystore that another process made in a folder. */
  public static TestKeystore existing(Path folder) {
    return new TestKeystore(folder.resolve("keys.p12"), folder.resolve("password"));
  }

  /** Rewrites the file, with new keys of these ids and no others. */
  public void write(int bits, String... keyIds) throws IOException {
    try (OutputStream out = Files.newOutputStream(path)) {
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      KeyGenerator generator = KeyGenerator.getInstance("AES");
      generator.init(bits);
      for (String keyId : keyIds) {
        store.setEntry(
            keyId,
            new KeyStore.SecretKeyEntry(generator.generateKey()),
            new KeyStore.PasswordProtection(PASSWORD.toCharArray()));
      }
      store.store(out, PASSWORD.toCharArray());
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }

    makePrivate(path);
  }

  /** Adds an entry with a new key: "k1.v2" is version 2 of k1. */
  public void add(String entry) throws IOException {
    change(
        store -> {
          KeyGenerator generator = KeyGenerator.getInstance("AES");
          generator.init(256);
          store.setEntry(
              entry,
              new KeyStore.SecretKeyEntry(generator.generateKey()),
              new KeyStore.PasswordProtection(PASSWORD.toCharArray()));
        });
  }

  /** Deletes an entry. */
  public void delete(String entry) throws IOException {
    change(store -> store.deleteEntry(entry));
  }

  private interface Change {
    void of(KeyStore store) throws GeneralSecurityException;
  }

  private void change(Change change) throws IOException {
    try {
      KeyStore store = KeyStore.getInstance(path.toFile(), PASSWORD.toCharArray());
      change.of(store);
      try (OutputStream out = Files.newOutputStream(path)) {
        store.store(out, PASSWORD.toCharArray());
      }
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }

  private static void makePrivate(Path file) throws IOException {
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
  }

  /** The keystore file. */
  public Path path() {
    return path;
  }

  /** What a catalog is configured with. */
  public Map<String, String> properties() {
    return Map.of(
        "encryption.kms-type", "keystore",
        "encryption.kms.keystore.path", path.toString(),
        "encryption.kms.keystore.password-file", passwordFile.toString());
  }
}
