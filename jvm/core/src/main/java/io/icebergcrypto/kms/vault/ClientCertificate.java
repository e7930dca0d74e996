package io.icebergcrypto.kms.vault;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.SecretSource;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;

/**
 * Where the certificate is by which a client names itself in TLS, and its private key. What travels
 * is the paths of the files.
 *
 * @param file PEM certificates, the client's own first
 * @param key where the private key is, PEM
 */
record ClientCertificate(String file, SecretSource key) implements Serializable {
  private static final char[] NO_PASSWORD = new char[0]; // the store that it is for is in memory
  private static final Pattern PEM =
      Pattern.compile("-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----([^-]*)-----END \\1-----");

  /** The kinds of keys that TLS knows, with a signature of each. */
  private static final List<String[]> KINDS =
      List.of(
          new String[] {"RSA", "SHA256withRSA"},
          new String[] {"EC", "SHA256withECDSA"},
          new String[] {"EdDSA", "EdDSA"});

  /** What the files hold now; not to be kept. */
  record Pem(String certificates, String privateKey) {
    @Override
    public String toString() {
      return "a client certificate";
    }
  }

  /**
   * Reads both files.
   *
   * @throws InvalidConfigurationException when one cannot be read, or users other than its owner
   *     may read or change the key's
   */
  Pem read() {
    try {
      return new Pem(Files.readString(Path.of(file)), key.readText());
    } catch (IOException e) {
      throw unreadable(e);
    }
  }

  /**
   * What shows the certificate to a server.
   *
   * @throws InvalidConfigurationException when the files hold no certificate and its private key
   */
  KeyManager[] keyManagers(Pem pem) {
    try {
      Certificate[] chain =
          CertificateFactory.getInstance("X.509")
              .generateCertificates(
                  new ByteArrayInputStream(pem.certificates().getBytes(StandardCharsets.UTF_8)))
              .toArray(new Certificate[0]);
      if (chain.length == 0) {
        throw new InvalidConfigurationException(
            String.format("File %s, which %s names, has no certificate", file, VaultAuth.CERT_FILE),
            "Give a file of PEM certificates, the client's own first.");
      }

      KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      store.setKeyEntry(
          "client", keyOf(pem.privateKey(), chain[0].getPublicKey()), NO_PASSWORD, chain);
      KeyManagerFactory factory =
          KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      factory.init(store, NO_PASSWORD);
      return factory.getKeyManagers();
    } catch (IOException | GeneralSecurityException e) {
      throw unreadable(e);
    }
  }

  /** Where it is. */
  @Override
  public String toString() {
    return "file " + file;
  }

  private PrivateKey keyOf(String pem, PublicKey certified) throws GeneralSecurityException {
    Matcher found = PEM.matcher(pem);
    if (!found.find() || !found.group(1).equals("PRIVATE KEY")) {
      throw new InvalidConfigurationException(
          String.format("The %s has no private key that can be read here", key),
          "Give it as PEM in PKCS #8, without a password: openssl pkcs8 -topk8 -nocrypt.");
    }

    byte[] encoded = Base64.getMimeDecoder().decode(found.group(2));
    for (String[] kind : KINDS) {
      try {
        PrivateKey read =
            KeyFactory.getInstance(kind[0]).generatePrivate(new PKCS8EncodedKeySpec(encoded));
        requirePair(read, certified, kind[1]);
        return read;
      } catch (InvalidKeySpecException e) {
        continue; // of another kind
      }
    }

    throw new InvalidConfigurationException(
        String.format("The %s has a private key of a kind that Java's TLS does not support", key),
        "Use an RSA, EC or Ed25519 key.");
  }

  /** A file may have been replaced a moment before the other. */
  private void requirePair(PrivateKey read, PublicKey certified, String algorithm)
      throws GeneralSecurityException {
    byte[] trial = {1};
    Signature signature = Signature.getInstance(algorithm);
    signature.initSign(read);
    signature.update(trial);
    byte[] signed = signature.sign();
    boolean matches = false;
    try {
      signature.initVerify(certified);
      signature.update(trial);
      matches = signature.verify(signed);
    } catch (GeneralSecurityException e) {
      // a key of another kind
    }

    if (!matches) {
      throw new InvalidConfigurationException(
          String.format("The %s does not have the private key of the certificate in %s", key, file),
          "Put the certificate and its own private key there.");
    }
  }

  private InvalidConfigurationException unreadable(Exception cause) {
    return new InvalidConfigurationException(
        String.format(
            "File %s, which %s names, cannot be read as a certificate: %s",
            file, VaultAuth.CERT_FILE, cause),
        "Give a file of PEM certificates that this user may read, and the client's private key.",
        cause);
  }
}
