package io.icebergcrypto.integrity;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The keys of a table's {@link MetadataMac}s, derived from its KEKs. The newest KEK signs while it
 * lives; an older one, or one past its life, vouches for nothing. All of it rests on the KMS:
 * nobody without the use of the master key may be able to make a KEK that it unwraps.
 */
public final class SigningKeys {
  private static final Comparator<EncryptedKey> BY_AGE = Comparator.comparingLong(Kek::madeAt);

  private final String tableName;
  private final Supplier<? extends KeyManagementClient> kms;

  // by KEK; derived ones, which encrypt nothing
  private final Map<String, SecretKeySpec> keys = new ConcurrentHashMap<>();

  SigningKeys(String tableName, Supplier<? extends KeyManagementClient> kms) {
    this.tableName = tableName;
    this.kms = kms;
  }

  /**
   * Refuses a master key for which others can wrap.
   *
   * @throws InvalidConfigurationException before anything is asked of the KMS
   */
  void requireAuthenticatedWrapping(String keyId) {
    try {
      requireAuthenticatedWrapping(keyId, kms.get());
    } catch (InvalidConfigurationException e) {
      throw e.inTable(tableName);
    }
  }

  /** The same for a table that does not exist yet. */
  public static void requireAuthenticatedWrapping(String keyId, KeyManagementClient kms) {
    if (kms instanceof AuthenticatedWrapping client && client.authenticatesWrapping(keyId)) {
      return;
    }

    throw new InvalidConfigurationException(
        String.format(
            "its metadata cannot be authenticated: %s does not prove who wrapped a key with"
                + " master key '%s' (as with RSA, whose public half wraps), so anyone could"
                + " make the key of a MAC",
            kms, keyId),
        String.format(
            "Use a symmetric master key; or set the catalog property %s=off, and anyone who can"
                + " write to the storage can change the metadata. If you have your own KMS"
                + " client, and only users of the key can wrap with it, set %s=true.",
            EncryptionProperties.METADATA_AUTHENTICATION, KmsProperties.AUTHENTICATED_WRAPPING));
  }

  /** The KEK that signs; empty when none lives and a new one must be made. */
  static Optional<EncryptedKey> live(TableMetadata metadata, String keyId) {
    long now = Math.max(System.currentTimeMillis(), metadata.lastUpdatedMillis());
    return newest(metadata, keyId).filter(kek -> Kek.lives(kek, now));
  }

  /** Makes a KEK, as Iceberg's manager would with the next snapshot; it is then used for that. */
  EncryptedKey make(TableMetadata metadata, String keyId) {
    return Kek.make(tableName, metadata, keyId, kms.get());
  }

  /** The KEK of an id. */
  static Optional<EncryptedKey> find(TableMetadata metadata, String keyId, String kekId) {
    return metadata.encryptionKeys().stream()
        .filter(key -> key.keyId().equals(kekId) && Objects.equals(key.encryptedById(), keyId))
        .findFirst();
  }

  /** Why a KEK may not have signed metadata, or null. */
  static String retired(TableMetadata metadata, EncryptedKey kek) {
    EncryptedKey newest = newest(metadata, kek.encryptedById()).orElse(kek);
    if (BY_AGE.compare(kek, newest) < 0) {
      return String.format(
          "its MAC was made with KEK %s, which %s has replaced", kek.keyId(), newest.keyId());
    }

    return Kek.lives(kek, metadata.lastUpdatedMillis())
        ? null
        : String.format("its MAC was made with KEK %s, after that KEK's lifetime", kek.keyId());
  }

  private static Optional<EncryptedKey> newest(TableMetadata metadata, String keyId) {
    return metadata.encryptionKeys().stream()
        .filter(key -> keyId.equals(key.encryptedById()))
        .max(BY_AGE);
  }

  /** The key of MACs, from a KEK; one call of the KMS where that is not in memory. */
  SecretKeySpec keyOf(TableMetadata metadata, EncryptedKey kek) {
    // the blob belongs to the name: a rewrapped KEK is unwrapped again
    String name =
        metadata.uuid()
            + kek.encryptedById()
            + Base64.getEncoder().encodeToString(KeyCache.copyOf(kek.encryptedKeyMetadata()));
    SecretKeySpec known = keys.get(name);
    if (known != null) {
      return known;
    }

    try {
      ByteBuffer bytes =
          CallContext.forTable(
              tableName,
              metadata.uuid(),
              () -> UnwrappedKek.of(kek, metadata.encryptionKeys(), kms.get()));
      SecretKeySpec key = MetadataMac.key(bytes, metadata.uuid());
      if (bytes.hasArray()) {
        Arrays.fill(bytes.array(), (byte) 0); // a copy
      }

      keys.put(name, key);
      return key;
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }
}
