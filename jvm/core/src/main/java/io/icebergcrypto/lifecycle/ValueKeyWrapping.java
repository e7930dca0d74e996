package io.icebergcrypto.lifecycle;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.values.ValueKeys;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.TableMetadata;

/**
 * The value keys that a table keeps, rewrapped with its KEKs. Those of the table's own master key
 * follow it. Another master key says who may decrypt what a value key encrypted, so it stays: its
 * newest version wraps if that is what the rotation is for, or if the KMS is another one. Each is
 * wrapped once, however often the commit is tried.
 */
final class ValueKeyWrapping {
  private final RotationTarget table;
  private final AllowedKeyIds allowed;
  private final String masterKeyId;
  private final boolean all;
  private final Set<String> formerly = new HashSet<>();
  private final Map<WrappedValueKey, WrappedValueKey> done = new HashMap<>();

  /**
   * Asks nothing yet.
   *
   * @param allowed the master keys that the catalog allows
   * @param masterKeyId the one that the table is to have
   * @param all whether value keys of other master keys are rewrapped, too, by these
   */
  ValueKeyWrapping(RotationTarget table, AllowedKeyIds allowed, String masterKeyId, boolean all) {
    this.table = table;
    this.allowed = allowed;
    this.masterKeyId = masterKeyId;
    this.all = all;
    formerly.add(masterKeyId);
    formerly.add(EncryptionProperties.keyId(table.current().properties()));
  }

  /** The same for a table that another rotation has given another master key. */
  ValueKeyWrapping to(String newKeyId) {
    ValueKeyWrapping other = new ValueKeyWrapping(table, allowed, newKeyId, false);
    other.formerly.add(masterKeyId);
    return other;
  }

  /**
   * The new properties of value keys.
   *
   * @param metadata of this table, which another client may have changed meanwhile
   * @throws AccessDeniedException when the catalog does not allow a master key of theirs
   */
  Map<String, String> properties(TableMetadata metadata) {
    formerly.add(EncryptionProperties.keyId(metadata.properties()));
    Map<String, String> properties = new HashMap<>();
    for (WrappedValueKey key : keys(metadata)) {
      String target = target(key);
      if (target != null) {
        properties.put(key.property(), done.computeIfAbsent(key, k -> wrapped(k, target)).toJson());
      }
    }

    return properties;
  }

  /** Whether a table has none but those that were wrapped here, or are to stay as they are. */
  boolean isDone(TableMetadata metadata) {
    return keys(metadata).stream().allMatch(key -> target(key) == null || isDone(key));
  }

  private boolean isDone(WrappedValueKey key) {
    return done.values().stream()
        .anyMatch(
            own ->
                own.property().equals(key.property())
                    && own.masterKeyId().equals(key.masterKeyId()));
  }

  private List<WrappedValueKey> keys(TableMetadata metadata) {
    try {
      return WrappedValueKey.all(metadata.properties());
    } catch (TamperedException e) {
      throw e.inTable(table.name());
    }
  }

  /** The master key that is to wrap a value key; null: it stays as it is. */
  private String target(WrappedValueKey key) {
    return formerly.contains(key.masterKeyId()) ? masterKeyId : all ? key.masterKeyId() : null;
  }

  private WrappedValueKey wrapped(WrappedValueKey key, String target) {
    if (!allowed.allows(key.masterKeyId())) {
      throw told(
          key,
          new AccessDeniedException(
              String.format(
                  "master key '%s' wraps value key '%s', which the catalog does not allow (%s)",
                  key.masterKeyId(), key.name(), EncryptionProperties.ALLOWED_KEY_IDS),
              "Add it to the list only if you know that the value key was created with it;"
                  + " otherwise find out who changed the key table's metadata."));
    }

    try {
      return key.rewrapped(target, wrapAgain(key, target));
    } catch (IcebergCryptoException e) {
      throw told(key, e);
    }
  }

  /**
   * Three calls of the KMS.
   *
   * @param target the master key that is to wrap it, in its newest version
   * @throws BadWrappedKeyException when the KMS returns another key, or another one than it wrapped
   */
  private ByteBuffer wrapAgain(WrappedValueKey key, String target) {
    UncachedKms kms = table.kms();
    ByteBuffer answer =
        UnwrapsAgain.fitting(
            kms, key.bytes(), key.masterKeyId(), bytes -> ValueKeys.problem(key, bytes) == null);
    String problem = ValueKeys.problem(key, answer);
    if (problem != null) {
      throw ValueKeys.cannotBeUsed(key, kms.former(), problem + ", twice");
    }

    return UnwrapsAgain.wrapped(kms.wrapping(), answer, target);
  }

  private IcebergCryptoException told(WrappedValueKey key, IcebergCryptoException e) {
    return e.inTable(table.name())
        .withHint(
            String.format(
                "It is about value key '%s', which master key '%s' wrapped. Nothing was changed."
                    + " rotate_value_key gives it another master key, and new_key_id => '%s' here"
                    + " leaves value keys of other master keys than the table's as they are.",
                key.name(), key.masterKeyId(), masterKeyId));
  }

  /** How many versions of value keys were wrapped. */
  int keys() {
    return (int) done.keySet().stream().map(WrappedValueKey::property).distinct().count();
  }

  /** Those that stayed as they were, with their master keys, such as "hr (k3)"; null: none. */
  String left() {
    Set<String> left = new TreeSet<>();
    for (WrappedValueKey key : keys(table.current())) {
      if (target(key) == null) {
        left.add(String.format("%s (%s)", key.name(), key.masterKeyId()));
      }
    }

    return left.isEmpty() ? null : String.join(", ", left);
  }
}
