package io.icebergcrypto.audit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.metadata.Kek;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * Which master keys, in which versions, wrapped the KEKs that one table needs, and the value keys
 * that it keeps; and whether its plaintext is left. The KMS is not asked, and metadata is not
 * authenticated: it may be anyone's.
 *
 * @param table the table's full name
 * @param keyId its master key; null when it was removed from its properties
 * @param keks the KEKs that something needs
 * @param valueKeys all versions of value keys
 * @param hasOldPlaintext whether it was encrypted in place, and its plaintext was not purged since
 */
public record MasterKeyUse(
    String table,
    String keyId,
    List<WrappedBy> keks,
    List<WrappedBy> valueKeys,
    boolean hasOldPlaintext) {
  /**
   * Which key wrapped a KEK or a value key.
   *
   * @param masterKeyId the master key
   * @param version its version; null when the wrapped key does not say
   * @param madeAt when the key was made, in milliseconds since the epoch; 0 when it does not say
   * @param encrypts whether anything of the table is under the key: a KEK stays for a while after
   *     nothing is
   */
  public record WrappedBy(String masterKeyId, Integer version, long madeAt, boolean encrypts) {
    private static WrappedBy of(EncryptedKey kek, boolean encrypts) {
      String masterKeyId = kek.encryptedById();
      if (masterKeyId == null || kek.encryptedKeyMetadata() == null) {
        throw new IcebergCryptoException(
            String.format("KEK %s names no master key, or has no bytes", kek.keyId()),
            "encryption_keys lists the table's keys, and what is wrong.");
      }

      return of(masterKeyId, kek.encryptedKeyMetadata(), Kek.madeAt(kek), encrypts);
    }

    private static WrappedBy of(WrappedValueKey key) {
      return of(key.masterKeyId(), key.bytes(), key.createdAtMs(), true);
    }

    private static WrappedBy of(
        String masterKeyId, ByteBuffer wrapped, long madeAt, boolean encrypts) {
      OptionalInt version = WrappedKey.versionOf(wrapped, masterKeyId);
      return new WrappedBy(
          masterKeyId, version.isPresent() ? version.getAsInt() : null, madeAt, encrypts);
    }
  }

  /**
   * Looks at a table's metadata.
   *
   * @throws NotEncryptedException when the table has no keys
   * @throws NotSupportedException when it has no metadata of its own, or a later version of this
   *     project wrapped a KEK
   * @throws TamperedException when the metadata is refused, or what it lists as a KEK or a value
   *     key is not one
   * @throws IcebergCryptoException another refusal of a load
   */
  public static MasterKeyUse of(EncryptedCatalog catalog, TableIdentifier identifier) {
    BaseTable table = catalog.context().unchecked(identifier);
    TableMetadata metadata = table.operations().current();
    if (!EncryptionProperties.wasEncrypted(metadata)) {
      throw new NotEncryptedException("No master key is needed for it.").inTable(table.name());
    }

    catalog.context().checkMetadata(table);
    Set<String> unneeded = KeyRetention.unneeded(metadata, System.currentTimeMillis());
    Set<String> used =
        metadata.encryptionKeys().stream()
            .map(EncryptedKey::encryptedById)
            .collect(Collectors.toSet());
    try {
      return new MasterKeyUse(
          table.name(),
          EncryptionProperties.keyId(metadata.properties()),
          Kek.all(metadata).stream()
              .filter(kek -> !unneeded.contains(kek.keyId()))
              .map(kek -> WrappedBy.of(kek, used.contains(kek.keyId())))
              .toList(),
          WrappedValueKey.all(metadata.properties()).stream().map(WrappedBy::of).toList(),
          metadata.properties().containsKey(EncryptionProperties.PLAINTEXT_METADATA));
    } catch (TamperedException | NotSupportedException e) {
      throw e.inTable(table.name());
    }
  }

  /**
   * Whether a rotation of the master key would change nothing: all KEKs are wrapped by the wanted
   * key, in the version that wraps now, and so are the value keys; or by their own if no key is
   * asked for by name.
   *
   * @param wanted the master key; null: the table's own, whose wrapped keys have to tell versions
   * @param wrappingVersion the version of a master key that wraps now; empty: wrapped keys do not
   *     tell
   */
  public boolean isCurrent(String wanted, Function<String, OptionalInt> wrappingVersion) {
    String key = wanted == null ? keyId : wanted;
    if (key == null || !key.equals(keyId) || keks.isEmpty()) {
      return false;
    }

    Stream<WrappedBy> itsOwn =
        wanted == null ? keks.stream() : Stream.concat(keks.stream(), valueKeys.stream());
    return itsOwn.allMatch(one -> one.masterKeyId().equals(key))
        && Stream.concat(keks.stream(), valueKeys.stream())
            .allMatch(one -> isNewest(one, wrappingVersion, wanted != null));
  }

  private static boolean isNewest(
      WrappedBy key, Function<String, OptionalInt> wrappingVersion, boolean unlessTold) {
    OptionalInt newest = wrappingVersion.apply(key.masterKeyId());
    return newest.isPresent()
        ? key.version() != null && key.version() == newest.getAsInt()
        : unlessTold;
  }

  /**
   * Whether the newest KEK was made after a time.
   *
   * @param alone whether nothing may be under older KEKs
   */
  public boolean hasKekSince(long timeMs, boolean alone) {
    WrappedBy newest = keks.stream().max(Comparator.comparingLong(WrappedBy::madeAt)).orElse(null);
    return newest != null
        && newest.madeAt() > timeMs
        && !(alone && keks.stream().anyMatch(kek -> kek != newest && kek.encrypts()));
  }
}
