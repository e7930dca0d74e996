package io.icebergcrypto.values;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.config.DroppedValueKey;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The value keys of a catalog as they were when this was loaded, wrapped, with the client of the
 * KMS that unwraps them. It travels to executors, and carries no key and no credential; each
 * executor unwraps a key once, and then has it in its cache ({@link CachingKmsClient}).
 *
 * @param catalog its name, for errors
 * @param table the full name of the table that keeps them
 * @param tableUuid its UUID; null: there is no such table
 * @param versions all versions of all keys; given in any order, kept with the oldest first
 * @param dropped versions that are no longer there
 * @param refusedMasterKeys those that the catalog does not allow
 */
public record ValueKeys(
    String catalog,
    String table,
    String tableUuid,
    List<WrappedValueKey> versions,
    List<DroppedValueKey> dropped,
    Set<String> refusedMasterKeys,
    CachingKmsClient kms)
    implements Serializable {
  private static final Comparator<WrappedValueKey> BY_AGE =
      Comparator.comparingLong(WrappedValueKey::createdAtMs)
          .thenComparing(WrappedValueKey::id, Integer::compareUnsigned);

  public ValueKeys {
    versions = versions.stream().sorted(BY_AGE).toList();
    dropped = List.copyOf(dropped);
    refusedMasterKeys = Set.copyOf(refusedMasterKeys);
  }

  /** The versions of a key that were dropped. */
  List<DroppedValueKey> dropped(String name) {
    return dropped.stream().filter(key -> key.name().equals(name)).toList();
  }

  /** Whether an id is that of a version, dropped or not. */
  boolean isTaken(int id) {
    return versions.stream().anyMatch(key -> key.id() == id)
        || dropped.stream().anyMatch(key -> key.id() == id);
  }

  /**
   * The versions of a key, the oldest first. The newest one encrypts.
   *
   * @throws KeyNotFoundException when there is no key of this name
   */
  List<WrappedValueKey> versions(String name) {
    List<WrappedValueKey> own = versions.stream().filter(key -> key.name().equals(name)).toList();
    if (own.isEmpty()) {
      List<String> names = versions.stream().map(WrappedValueKey::name).distinct().toList();
      throw new KeyNotFoundException(
          String.format("Catalog %s has no value key '%s'", catalog, name),
          String.format(
              "%s CALL %s.system.create_value_key(name => ..., key_id => ...) makes one.",
              names.isEmpty() ? "It has none." : "It has " + String.join(", ", names) + ".",
              catalog));
    }

    return own;
  }

  /**
   * Unwraps one version. What is not such a key is asked for again, past the cache.
   *
   * @return 32 bytes; the caller overwrites them
   * @throws BadWrappedKeyException when the KMS returns something else both times
   * @throws IcebergCryptoException the KMS's own typed error
   */
  byte[] unwrap(WrappedValueKey key) {
    checkAllowed(key);
    ByteBuffer unwrapped;
    try {
      unwrapped =
          CallContext.forTable(
              table,
              tableUuid,
              () ->
                  UnwrapsAgain.fitting(
                      kms, key.bytes(), key.masterKeyId(), bytes -> problem(key, bytes) == null));
    } catch (IcebergCryptoException e) {
      throw e.inTable(table)
          .withHint(
              String.format(
                  "It is about value key '%s', which master key '%s' wrapped.",
                  key.name(), key.masterKeyId()));
    }

    if (problem(key, unwrapped) == null) {
      return KeyCache.copyOf(unwrapped);
    }

    throw cannotBeUsed(key, kms, problem(key, unwrapped) + ", twice").inTable(table);
  }

  /**
   * The error of a KMS that gives another key than the one that it wrapped.
   *
   * @param given what it gave
   */
  public static BadWrappedKeyException cannotBeUsed(
      WrappedValueKey key, KeyManagementClient kms, String given) {
    return BadWrappedKeyException.ofAnswer(
        String.format(
            "value key '%s', which master key '%s' wrapped, cannot be used: %s returned %s",
            key.name(), key.masterKeyId(), kms, given),
        String.format(
            "Nothing was encrypted or decrypted with it. Check that the catalog's KMS is the one"
                + " that wrapped it, and the KMS itself. If the KMS is right, another client than"
                + " this project's changed property %s: have that one set it back, from an older"
                + " metadata file of the table.",
            key.property()));
  }

  /** What tells that bytes are not those of a version; null when nothing does. */
  public static String problem(WrappedValueKey key, ByteBuffer bytes) {
    if (bytes.remaining() != WrappedValueKey.LENGTH) {
      return bytes.remaining() + " bytes, which is not a value key";
    }

    return key.checkValue().equals(Kek.checkValue(bytes, key.name()))
        ? null
        : "a key that does not fit its check value";
  }

  /**
   * Checks the master key of one version.
   *
   * @throws AccessDeniedException when the catalog does not allow it
   */
  void checkAllowed(WrappedValueKey key) {
    if (refusedMasterKeys.contains(key.masterKeyId())) {
      throw new AccessDeniedException(
          String.format(
              "Value key '%s' of catalog %s is wrapped by master key '%s', which the catalog does"
                  + " not allow (encryption.allowed-key-ids)",
              key.name(), catalog, key.masterKeyId()),
          "Add it to the list only if you know that the value key was created with it; otherwise"
              + " find out who changed the key table's metadata.");
    }
  }

  /** The cipher of one version. */
  ValueCipher cipher(WrappedValueKey key) {
    byte[] bytes = unwrap(key);
    try {
      return new ValueCipher(key.name(), key.id(), bytes);
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /** The names of the keys and their versions; the same keys encrypt alike. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ValueKeys keys
        && catalog.equals(keys.catalog)
        && Objects.equals(tableUuid, keys.tableUuid)
        && versions.equals(keys.versions)
        && refusedMasterKeys.equals(keys.refusedMasterKeys);
  }

  @Override
  public int hashCode() {
    return Objects.hash(catalog, tableUuid, versions);
  }

  /** No key. */
  @Override
  public String toString() {
    return "value keys of " + catalog;
  }
}
