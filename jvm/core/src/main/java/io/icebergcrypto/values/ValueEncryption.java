package io.icebergcrypto.values;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.DroppedValueKey;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.call.Causes;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Encrypts and decrypts single values with the value keys of a catalog. It travels to executors
 * without the keys, which it has in memory from the first value on, as long as it lives itself: in
 * Spark, for one task.
 */
public final class ValueEncryption implements Serializable {
  private static final long serialVersionUID = 1L;

  private static final int PREFIX_LENGTH = 5;
  private static final String CHECK =
      "Check that the key's name and the context are those of encrypt_value.";
  private static final String NULL = " try_decrypt_value returns NULL for such values.";

  private final ValueKeys keys;
  private transient Map<String, Named> opened;

  /** Asks no KMS yet. */
  public ValueEncryption(ValueKeys keys) {
    this.keys = keys;
  }

  /** The versions of one key, and those of them that were needed so far. */
  private static final class Named {
    private final List<WrappedValueKey> versions;
    private final Map<Integer, ValueCipher> ciphers = new HashMap<>();
    private final Set<Integer> refused = new HashSet<>(); // versions that cannot be had
    private final boolean firstIsDropped;

    private Named(List<WrappedValueKey> versions, List<DroppedValueKey> dropped) {
      this.versions = versions;
      this.firstIsDropped =
          dropped.stream().anyMatch(old -> old.createdAtMs() < versions.get(0).createdAtMs());
    }

    private WrappedValueKey newest() {
      return versions.get(versions.size() - 1);
    }
  }

  /**
   * Encrypts a value with a random nonce: the same value gives another ciphertext each time.
   *
   * @param name the value key
   * @param context what the value is for; it decrypts with the same context only. Empty: none
   * @throws KeyNotFoundException when there is no such value key
   * @throws IcebergCryptoException the KMS's own typed error
   */
  public synchronized byte[] encrypt(String name, byte[] value, byte[] context) {
    Named key = named(name);
    return cipher(key, key.newest()).encrypt(value, context);
  }

  /**
   * Encrypts a value so that the same value, with the same key and context, gives the same
   * ciphertext.
   *
   * @see #encrypt
   */
  public synchronized byte[] encryptDeterministic(String name, byte[] value, byte[] context) {
    Named key = named(name);
    return cipher(key, key.newest()).encryptDeterministic(value, context);
  }

  /**
   * Decrypts what one of the two encrypted, with any version of the key.
   *
   * @throws TamperedException when it is no such ciphertext, or one of another key or context
   * @throws KeyNotFoundException when there is no such value key, or its version was dropped
   * @throws IcebergCryptoException the KMS's own typed error
   */
  public synchronized byte[] decrypt(String name, byte[] value, byte[] context) {
    Named key = named(name);
    if (!isCiphertext(value)) {
      throw wrong(
          name,
          "A value is not one that encrypt_value encrypted, such as plaintext",
          CHECK + NULL,
          null);
    }

    int id = ByteBuffer.wrap(value, 1, Integer.BYTES).getInt();
    int version = version(value);
    try {
      return cipher(
              key,
              key.versions.stream()
                  .filter(own -> own.id() == version)
                  .findFirst()
                  .orElseThrow(() -> unknown(name, version)))
          .decrypt(id, value, context);
    } catch (GeneralSecurityException e) {
      throw wrong(name, "A value was changed, or is used with another context", CHECK + NULL, e);
    }
  }

  private static boolean isCiphertext(byte[] value) {
    return value.length >= PREFIX_LENGTH && value[0] == 1;
  }

  /** The id of the version that encrypted a value. */
  private static int version(byte[] value) {
    return ByteBuffer.wrap(value, 1, Integer.BYTES).getInt() & ~ValueCipher.DETERMINISTIC;
  }

  private IcebergCryptoException unknown(String name, int version) {
    return keys.dropped(name).stream().noneMatch(key -> key.id() == version)
        ? wrong(
            name,
            "A value was encrypted with a version that was added after this query was analyzed, or"
                + " with another value key",
            keys.isTaken(version)
                ? CHECK + NULL
                : "Run the query again. If it fails again: " + CHECK,
            null)
        : new KeyNotFoundException(
            String.format(
                "A value was encrypted with version %s of value key '%s' of catalog %s, which was"
                    + " dropped",
                ValueKeyProperties.version(version), name, keys.catalog()),
            "An older metadata file of the key table may still have it: keep all of them until"
                + " someone with the master key has restored the version from there"
                + " (docs/encrypted-values.md). try_decrypt_value returns NULL for such values.");
  }

  /**
   * The same; null when this value cannot be decrypted, when the KMS denies this user its key, or
   * when that was destroyed. A key that is disabled, a KMS that cannot be reached, a login that
   * fails, a KMS that does not unwrap the value key or gives another one, and a value of no known
   * version are still errors.
   */
  public synchronized byte[] tryDecrypt(String name, byte[] value, byte[] context) {
    Named key = named(name);
    if (!isCiphertext(value) || key.refused.contains(version(value))) {
      return null;
    }

    try {
      return decrypt(name, value, context);
    } catch (BadWrappedKeyException e) {
      throw e; // of the value key, and so of all values
    } catch (TamperedException e) {
      if (!keys.isTaken(version(value))) {
        throw e; // its key may have been added since: NULL would stand for a good value
      }

      return null;
    } catch (AccessDeniedException | KeyNotFoundException | KeyDisabledException e) {
      boolean mayReturn = e instanceof KeyDisabledException disabled && !disabled.isDestroyed();
      if (mayReturn || !Causes.isOfKey(e)) {
        throw e;
      }

      key.refused.add(version(value)); // one call of the KMS, not one for each row
      return null;
    }
  }

  /**
   * HMAC-SHA256 of a value under the first version of a key, so that it stays as it is.
   *
   * @throws KeyNotFoundException when there is no such value key, or that version was dropped
   */
  public synchronized byte[] hash(String name, byte[] value) {
    Named key = named(name);
    if (key.firstIsDropped) {
      throw new KeyNotFoundException(
          String.format(
              "hash_value uses the first version of value key '%s' of catalog %s, which was"
                  + " dropped",
              name, keys.catalog()),
          "Nobody can compute its hashes again. Use another value key, and hash all values with"
              + " it.");
    }

    return cipher(key, key.versions.get(0)).hash(value);
  }

  /**
   * Checks that a key exists, without asking for it.
   *
   * @throws KeyNotFoundException when there is no value key of this name
   */
  public void require(String name) {
    keys.versions(name);
  }

  private Named named(String name) {
    if (opened == null) {
      this.opened = new HashMap<>();
    }

    return opened.computeIfAbsent(name, n -> new Named(keys.versions(n), keys.dropped(n)));
  }

  private ValueCipher cipher(Named key, WrappedValueKey version) {
    ValueCipher cipher = key.ciphers.get(version.id());
    if (cipher == null) {
      cipher = keys.cipher(version);
      key.ciphers.put(version.id(), cipher);
    }

    return cipher;
  }

  private TamperedException wrong(
      String name, String problem, String hint, GeneralSecurityException cause) {
    return new TamperedException(
        String.format(
            "%s: it does not decrypt with value key '%s' of catalog %s",
            problem, name, keys.catalog()),
        hint,
        cause);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ValueEncryption encryption && keys.equals(encryption.keys);
  }

  @Override
  public int hashCode() {
    return keys.hashCode();
  }

  /** No key. */
  @Override
  public String toString() {
    return keys.toString();
  }
}
