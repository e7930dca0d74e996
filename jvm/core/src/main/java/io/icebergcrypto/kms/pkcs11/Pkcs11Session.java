package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.blob.KeyVersions;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.Provider;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;

/**
 * A token after login: its keys by label, as they were when they were listed, and AES-GCM with
 * them. Keys are handles, and those that the token shows in plaintext do not wrap. SunPKCS11 does
 * not tell whether a sensitive key can be taken out wrapped (CKA_EXTRACTABLE). A session that the
 * token has ended stays ended: {@link Pkcs11Token} makes another.
 */
final class Pkcs11Session {
  private static final String MECHANISM = "AES/GCM/NoPadding";

  private final Provider provider;
  private final KeyStore keys;
  private final List<String> labels;
  private final long lookedAt = System.nanoTime();
  private final ConcurrentMap<String, SecretKey> handles = new ConcurrentHashMap<>();
  private final Set<String> tried = ConcurrentHashMap.newKeySet();

  /**
   * Logs in, unless the process is logged in to this token, and lists the keys.
   *
   * @param pin null when the process is logged in
   * @throws IOException SunPKCS11's way to say that it could not; the causes say why
   */
  Pkcs11Session(Provider provider, char[] pin) throws GeneralSecurityException, IOException {
    this.provider = provider;
    this.keys = KeyStore.getInstance("PKCS11", provider);
    keys.load(null, pin);
    this.labels = List.copyOf(Collections.list(keys.aliases()));
  }

  /** The same token with the keys that it has now. */
  Pkcs11Session lookedAtAgain() throws GeneralSecurityException, IOException {
    return new Pkcs11Session(provider, null);
  }

  /** How long ago the keys were listed, in nanoseconds. */
  long age() {
    return System.nanoTime() - lookedAt;
  }

  /** Whether no key at all was seen, as in a session that has ended. */
  boolean isEmpty() {
    return labels.isEmpty();
  }

  /** The newest version of a key; 0 if it does not exist. */
  int newest(String keyId) {
    return KeyVersions.newest(keyId, labels);
  }

  /** Whether a version of a key is there. */
  boolean has(String keyId, int version) {
    return labels.contains(KeyVersions.entry(keyId, version));
  }

  /** Whether nothing that this version of a key wrapped has been unwrapped in this session. */
  boolean isUntried(String keyId, int version) {
    return !tried.contains(KeyVersions.entry(keyId, version));
  }

  /** Notes that something has. */
  void tried(String keyId, int version) {
    tried.add(KeyVersions.entry(keyId, version));
  }

  /** The ids of the keys, for an error's hint. */
  String keyIds() {
    return labels.stream().filter(KeyVersions::isKeyId).sorted().collect(Collectors.joining(", "));
  }

  /**
   * Makes AES-GCM ready with a version of a key.
   *
   * @param mode Cipher's
   * @param parameters the nonce and the tag's length
   * @param authenticated what is authenticated beside the data
   * @throws InvalidConfigurationException when the key is not an AES key
   */
  Cipher cipher(
      int mode, String keyId, int version, GCMParameterSpec parameters, byte[] authenticated)
      throws GeneralSecurityException {
    SecretKey handle = handle(KeyVersions.entry(keyId, version));
    Cipher cipher = Cipher.getInstance(MECHANISM, provider);
    cipher.init(mode, handle, parameters);
    cipher.updateAAD(authenticated);
    return cipher;
  }

  /**
   * Checks a version of a key that is to wrap. What it has wrapped before is unwrapped all the
   * same.
   *
   * @throws InvalidConfigurationException when the token gives out its bytes
   */
  void requireKept(String keyId, int version) throws GeneralSecurityException {
    String label = KeyVersions.entry(keyId, version);
    if (handle(label).getFormat() != null) { // SunPKCS11 names one for such keys alone
      throw new InvalidConfigurationException(
          String.format(
              "Key '%s' of %s can be read out of the token: it is extractable and not sensitive",
              label, provider.getInfo()),
          "Make a key that stays in the token (pkcs11-tool --keygen --key-type AES:32 --sensitive"
              + " --private --label NAME), and give it to the tables of this one with"
              + " rotate_master_key: they can still be read. If anyone may have read the key out of"
              + " the token, it has leaked: see docs/compromise.md.");
    }
  }

  private SecretKey handle(String label) throws GeneralSecurityException {
    SecretKey known = handles.get(label);
    if (known != null) {
      return known;
    }

    Key key = keys.getKey(label, null);
    if (key == null && !keys.isCertificateEntry(label)) {
      throw new SessionEndedException("key '" + label + "' is no longer visible", null);
    }

    if (!(key instanceof SecretKey secret) || !key.getAlgorithm().equals("AES")) {
      throw new InvalidConfigurationException(
          String.format("Key '%s' of %s is not an AES secret key", label, provider.getInfo()),
          "Make one: pkcs11-tool --keygen --key-type AES:32 --sensitive --private --label NAME.");
    }

    handles.put(label, secret);
    return secret;
  }

  /** The token has ended this session, or a login elsewhere has: a new one is needed. */
  static final class SessionEndedException extends GeneralSecurityException {
    private static final long serialVersionUID = 1L;

    SessionEndedException(String message, Throwable cause) {
      super(message, cause);
    }
  }
}
