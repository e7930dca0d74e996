package io.icebergcrypto.kms.azure;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.config.MasterKeys;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/**
 * The master keys of a vault. A wrapped key is what the vault's wrapkey gives or, with {@value
 * AzureConfig#STORE_KEY_VERSION}, a {@link WrappedKey} with the body length of the version's id (1
 * byte) | the id (ASCII) | what wrapkey gave.
 */
final class AzureKeys implements MasterKeys {
  private static final String KMS = "azure";
  private static final Pattern VERSION = Pattern.compile("[0-9a-zA-Z]{1,64}");

  private final AzureConfig config;
  private final AzureVault vault;

  AzureKeys(AzureConfig config) {
    this.config = config;
    this.vault = new AzureVault(config);
  }

  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    AzureKeyId by = AzureKeyId.of(keyId, config);
    if (config.wrapsWithAes() && (key.length < 16 || key.length % 8 != 0)) {
      throw new NotSupportedException(
          String.format(
              "%s: %s cannot wrap %d bytes under key '%s'",
              config, config.algorithm(), key.length, keyId),
          "AES key wrap takes 16 bytes or more, in multiples of 8: keys of 128, 192 or 256 bits.");
    }

    AzureVault.Result result = vault.wrap(key, by);
    if (config.storeKeyVersion()) {
      return withVersion(result).encode();
    }

    vault.itWorked(by.name(), result.version());
    return ByteBuffer.wrap(result.bytes());
  }

  @Override
  public ByteBuffer unwrap(ByteBuffer blob, String keyId) {
    AzureKeyId by = AzureKeyId.of(keyId, config);
    if (WrappedKey.kmsOf(blob, keyId).isPresent()) {
      return ByteBuffer.wrap(unwrapStored(blob, by));
    }

    byte[] wrapped = KeyCache.copyOf(blob);
    return ByteBuffer.wrap(
        by.isPinned()
            ? unwrapAt(by, wrapped)
            : new AzureVersionSearch(vault, config, wrapped, by).run());
  }

  private static WrappedKey withVersion(AzureVault.Result result) {
    byte[] version = result.version().getBytes(StandardCharsets.US_ASCII);
    byte[] body =
        ByteBuffer.allocate(1 + version.length + result.bytes().length)
            .put((byte) version.length)
            .put(version)
            .put(result.bytes())
            .array();
    return new WrappedKey(KMS, 0, body);
  }

  private byte[] unwrapStored(ByteBuffer blob, AzureKeyId by) {
    ByteBuffer body = ByteBuffer.wrap(WrappedKey.parse(blob, KMS, by.given()).body());
    int length = body.hasRemaining() ? Byte.toUnsignedInt(body.get()) : 0;
    if (length == 0 || body.remaining() <= length) {
      throw damaged(by, "it ends before its key");
    }

    byte[] id = new byte[length];
    body.get(id);
    String version = new String(id, StandardCharsets.US_ASCII);
    if (!VERSION.matcher(version).matches()) {
      throw damaged(by, "the key version in it is impossible");
    }

    if (by.isPinned() && !by.version().equalsIgnoreCase(version)) {
      throw new BadWrappedKeyException(
          String.format(
              "%s: a key to be unwrapped with key '%s' was wrapped by its version %s",
              config, by.given(), version),
          "Name that version, or the key without a version, as the table's key id.");
    }

    return unwrapAt(by.at(version), KeyCache.copyOf(body));
  }

  private byte[] unwrapAt(AzureKeyId version, byte[] wrapped) {
    try {
      return vault.unwrap(wrapped, version).bytes();
    } catch (KeyNotFoundException e) {
      throw e.ofKeyIf(isGone(version.at(""), wrapped));
    }
  }

  /** Whether the vault lacks the key: it says the same of a key that lacks only the version. */
  private boolean isGone(AzureKeyId key, byte[] wrapped) {
    try {
      vault.unwrap(wrapped, key);
      return false;
    } catch (KeyNotFoundException e) {
      return true;
    } catch (KmsUnavailableException e) {
      throw e; // both are asked again
    } catch (IcebergCryptoException e) {
      return false;
    }
  }

  private BadWrappedKeyException damaged(AzureKeyId by, String why) {
    return new BadWrappedKeyException(
        String.format(
            "%s: a key wrapped under '%s' with its key version is damaged: %s",
            config, by.given(), why),
        "The table's metadata was changed or damaged: restore it.");
  }
}
