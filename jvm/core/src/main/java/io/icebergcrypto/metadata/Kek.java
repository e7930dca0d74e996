package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/** KEKs in a table's metadata: their age, and new ones, made as Iceberg's manager makes them. */
public final class Kek {
  /** The property of a KEK's entry that says when it was made; Iceberg's name. */
  public static final String TIMESTAMP = "KEY_TIMESTAMP";

  /** How long a KEK encrypts and signs: Iceberg's 730 days (NIST SP 800-57). */
  public static final long LIFE_MS = Duration.ofDays(730).toMillis();

  private Kek() {}

  /** When a KEK was made, in milliseconds since the epoch; 0 when its entry does not tell. */
  public static long madeAt(EncryptedKey kek) {
    String made = kek.properties() == null ? null : kek.properties().get(TIMESTAMP);
    try {
      return made == null ? 0 : Long.parseLong(made);
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  /** Whether a KEK may encrypt and sign at a time, in milliseconds since the epoch. */
  public static boolean lives(EncryptedKey kek, long atMs) {
    return madeAt(kek) > atMs - LIFE_MS;
  }

  /** The KEKs of a table: the keys that no other key of the table encrypts. */
  public static List<EncryptedKey> all(TableMetadata metadata) {
    Set<String> ids =
        metadata.encryptionKeys().stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    return metadata.encryptionKeys().stream()
        .filter(key -> !ids.contains(key.encryptedById()))
        .toList();
  }

  /** The KEK that was made last. */
  public static Optional<EncryptedKey> newest(TableMetadata metadata) {
    return all(metadata).stream().max(Comparator.comparingLong(Kek::madeAt));
  }

  /**
   * Makes a KEK, newer than those of the table, so that it is the one in use from its commit on.
   *
   * @throws IcebergCryptoException when the KMS does not wrap it
   */
  public static EncryptedKey make(
      String tableName, TableMetadata metadata, String keyId, KeyManagementClient kms) {
    SecureRandom random = new SecureRandom();
    byte[] id = new byte[16];
    random.nextBytes(id);
    byte[] key = new byte[EncryptionProperties.dataKeyLength(tableName, metadata.properties())];
    random.nextBytes(key);
    try {
      return new BaseEncryptedKey(
          Base64.getEncoder().encodeToString(id),
          KmsCaller.forTable(
              tableName, metadata.uuid(), () -> kms.wrapKey(ByteBuffer.wrap(key), keyId)),
          keyId,
          Map.of(TIMESTAMP, String.valueOf(after(metadata))));
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }

  /** Now; or later, if another client's clock was fast when it made the newest KEK. */
  private static long after(TableMetadata metadata) {
    long newest = newest(metadata).map(Kek::madeAt).orElse(0L);
    return Math.max(System.currentTimeMillis(), newest == Long.MAX_VALUE ? newest : newest + 1);
  }
}
