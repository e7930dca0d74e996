package io.icebergcrypto.parquet;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KmsClient;

/**
 * The KMS client of Parquet's key tools ({@code parquet.encryption.kms.client.class}) over every
 * KMS of this project. Its settings are those of a catalog, below {@link
 * KmsProperties#HADOOP_PREFIX} in the Hadoop configuration; none of them is a secret. Wrapped keys
 * are what the KMS's client makes, in Base64.
 *
 * <p>What a file says of the KMS, its instance and URL, does not count: a file could say anything.
 */
public final class ParquetKmsClient implements KmsClient {
  private CachingKmsClient kms;
  private AllowedKeyIds allowed;

  /** Parquet makes one by this constructor, and then calls {@link #initialize}. */
  public ParquetKmsClient() {}

  /**
   * Takes the settings. The login is made by the first call.
   *
   * @throws InvalidConfigurationException when they are wrong, or there is an access token among
   *     them
   */
  @Override
  public void initialize(
      Configuration configuration, String instanceId, String instanceUrl, String accessToken) {
    Map<String, String> properties = configuration.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX);
    if (!accessToken.equals(KEY_ACCESS_TOKEN_DEFAULT)
        && !accessToken.equals(CacheScope.of(properties))) {
      throw ParquetSettings.tokenRefused();
    }

    this.allowed = AllowedKeyIds.parse(properties.get(EncryptionProperties.ALLOWED_KEY_IDS));
    this.kms = KmsClients.shared(properties);
  }

  /**
   * Wraps a key, and has the KMS unwrap it again, if it may: what is written with a key that does
   * not come back is lost.
   */
  @Override
  public String wrapKey(byte[] keyBytes, String masterKeyIdentifier) {
    String keyId = keyId(masterKeyIdentifier);
    ByteBuffer wrapped =
        call(keyId, () -> UnwrapsAgain.wrappedOrDenied(kms, ByteBuffer.wrap(keyBytes), keyId));
    return Base64.getEncoder().encodeToString(ByteBuffers.toByteArray(wrapped));
  }

  @Override
  public byte[] unwrapKey(String wrappedKey, String masterKeyIdentifier) {
    String keyId = keyId(masterKeyIdentifier);
    ByteBuffer wrapped = ByteBuffer.wrap(bytes(wrappedKey, keyId));
    return ByteBuffers.toByteArray(call(keyId, () -> unwrapped(wrapped, keyId)));
  }

  /** What is not a key is asked for again; and so is what does not open what it should. */
  private ByteBuffer unwrapped(ByteBuffer wrapped, String keyId) {
    ByteBuffer key =
        CacheScope.isLeft()
            ? UnwrapsAgain.by(kms, wrapped, keyId)
            : UnwrapsAgain.fitting(kms, wrapped, keyId, ParquetKmsClient::isKey);
    if (isKey(key)) {
      return key;
    }

    throw new BadWrappedKeyException(
        String.format(
            "%s returned %d bytes for a key wrapped by key '%s', which is not an AES key",
            kms, key.remaining(), keyId),
        "Nothing was read or written with it. Check the KMS, and read the file again.");
  }

  /** Parquet takes no zeros. */
  private static boolean isKey(ByteBuffer key) {
    return UnwrappedKek.LENGTHS.contains(key.remaining())
        && !key.equals(ByteBuffer.allocate(key.remaining()));
  }

  private static byte[] bytes(String wrappedKey, String keyId) {
    try {
      return Base64.getDecoder().decode(wrappedKey);
    } catch (IllegalArgumentException | NullPointerException e) {
      throw new BadWrappedKeyException(
          String.format("The key wrapped by key '%s' is not valid Base64", keyId),
          "The file's key material was damaged or forged, or another program's KMS client wrote"
              + " it. Restore the file from a backup.");
    }
  }

  /** A key that may not be used here is, for Parquet, an access that was denied. */
  private ByteBuffer call(String keyId, Supplier<ByteBuffer> call) {
    try {
      check(allowed, keyId);
      return call.get();
    } catch (AccessDeniedException | KeyNotFoundException | KeyDisabledException e) {
      if (!Causes.isOfKey(e)) {
        throw e;
      }

      throw new KeyAccessDeniedException(e.problem(), e);
    }
  }

  /**
   * Checks a key before the KMS is asked.
   *
   * @throws AccessDeniedException when the session may not use it
   */
  static void check(AllowedKeyIds allowed, String keyId) {
    if (!allowed.allows(keyId)) {
      throw new AccessDeniedException(
          String.format(
              "Master key '%s' is not among those that may be used (%s%s)",
              keyId, KmsProperties.HADOOP_PREFIX, EncryptionProperties.ALLOWED_KEY_IDS),
          "To write, name one of them. Add this one to the session's settings only if you know who"
              + " wrote the file.");
    }
  }

  /** Parquet's property of column keys gives a meaning to colons, so key ids have them escaped. */
  static String keyId(String escaped) {
    try {
      return URLDecoder.decode(escaped.replace("+", "%2B"), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      return escaped; // another program's, which escapes nothing
    }
  }

  /** The reverse of {@link #keyId}. */
  static String escaped(String keyId) {
    StringBuilder escaped = new StringBuilder();
    for (char c : keyId.toCharArray()) {
      escaped.append("%,:;".indexOf(c) < 0 ? String.valueOf(c) : String.format("%%%02X", (int) c));
    }

    return escaped.toString();
  }
}
