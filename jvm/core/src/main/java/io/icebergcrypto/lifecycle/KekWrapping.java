package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * KEKs of one table, rewrapped by a master key: the same bytes, the same id. Each costs three calls
 * of the KMS, once, however often the commit is tried.
 */
final class KekWrapping {
  private final RotationTarget table;
  private final String masterKeyId;
  private final Map<Before, EncryptedKey> done = new LinkedHashMap<>();

  private EncryptedKey made;

  private record Before(String kekId, String masterKeyId, ByteBuffer wrapped) {
    static Before of(EncryptedKey kek) {
      return new Before(
          kek.keyId(),
          kek.encryptedById(),
          ByteBuffer.wrap(KeyCache.copyOf(kek.encryptedKeyMetadata())));
    }
  }

  KekWrapping(RotationTarget table, String masterKeyId) {
    this.table = table;
    this.masterKeyId = masterKeyId;
  }

  /**
   * The KEK, wrapped by the newest version of the master key.
   *
   * @param entries the table's keys
   * @throws IcebergCryptoException when its entry is not one of a KEK
   */
  EncryptedKey of(EncryptedKey kek, Collection<EncryptedKey> entries) {
    if (kek.encryptedById() == null || kek.encryptedKeyMetadata() == null) {
      throw new IcebergCryptoException(
              String.format("KEK %s names no master key, or has no bytes", kek.keyId()),
              "Nothing was changed. encryption_keys lists the table's keys, and what is wrong.")
          .inTable(table.name());
    }

    return done.computeIfAbsent(Before.of(kek), key -> wrapped(kek, entries));
  }

  /** A KEK for a table that has none. */
  EncryptedKey made(TableMetadata metadata) {
    if (made == null) {
      this.made = Kek.make(table.name(), metadata, masterKeyId, table.kms().wrapping());
      done.put(Before.of(made), made);
    }

    return made;
  }

  private EncryptedKey wrapped(EncryptedKey kek, Collection<EncryptedKey> entries) {
    UncachedKms kms = table.kms();
    try {
      ByteBuffer wrapped =
          UnwrapsAgain.wrapped(kms.wrapping(), UnwrappedKek.of(kek, entries, kms), masterKeyId);
      return new BaseEncryptedKey(kek.keyId(), wrapped, masterKeyId, kek.properties());
    } catch (IcebergCryptoException e) {
      throw e.inTable(table.name());
    }
  }

  /** Whether this KEK was wrapped here. */
  boolean has(String kekId) {
    return done.keySet().stream().anyMatch(before -> before.kekId().equals(kekId));
  }

  /** How many KEKs were wrapped. */
  int keks() {
    return (int) done.keySet().stream().map(Before::kekId).distinct().count();
  }

  /** The versions of master keys that wrapped the KEKs before, as far as the KEKs tell. */
  String versionsBefore() {
    return listed(
        done.keySet().stream()
            .map(before -> WrappedKey.versionOf(before.wrapped(), before.masterKeyId())));
  }

  /** The versions of the master key that wrap them now, as far as they tell. */
  String versions() {
    return listed(
        done.values().stream()
            .map(kek -> WrappedKey.versionOf(kek.encryptedKeyMetadata(), masterKeyId)));
  }

  private static String listed(Stream<OptionalInt> versions) {
    String all =
        versions
            .flatMapToInt(OptionalInt::stream)
            .distinct()
            .sorted()
            .mapToObj(String::valueOf)
            .collect(Collectors.joining(", "));
    return all.isEmpty() ? null : all;
  }
}
