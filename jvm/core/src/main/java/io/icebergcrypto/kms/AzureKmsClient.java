package io.icebergcrypto.kms;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.azure.AzureConfig;
import io.icebergcrypto.kms.azure.AzureKeyId;
import io.icebergcrypto.kms.azure.AzureLogin;
import io.icebergcrypto.kms.azure.AzureVault;
import io.icebergcrypto.kms.azure.AzureVersionSearch;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Azure Key Vault and Managed HSM.
 *
 * <p>A wrapped key is exactly what the vault's wrapkey gives, as in Iceberg's own
 * AzureKeyManagementClient: either reads what the other wrote. Unlike that client's, a rotation of
 * the master key leaves old tables readable ({@link AzureVersionSearch}). With {@value
 * AzureConfig#STORE_KEY_VERSION} the version is stored with the wrapped key, which then unwraps in
 * one call and which only this client reads: {@link WrappedKey} with the body length of the
 * version's id (1 byte) | the id (ASCII) | what wrapkey gave. Both forms are read whatever the
 * setting.
 *
 * <p>It speaks the vault's REST API with java.net.http, and has Azure's identity library for the
 * access token alone. The SDK's CryptographyClient fetches the key before each use, which needs
 * another permission and a second call, encrypts in the process where it can, past the vault's
 * checks (disabled, expired), and retries by itself.
 */
public final class AzureKmsClient implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;
  private static final String KMS = "azure";
  private static final Pattern VERSION = Pattern.compile("[0-9a-zA-Z]{1,64}");

  private AzureConfig config;
  private transient volatile AzureVault vault;

  /** Required by Iceberg; {@link #initialize} follows. */
  public AzureKmsClient() {}

  /**
   * Reads the properties. Nothing is asked.
   *
   * @throws InvalidConfigurationException when one is missing, wrong, or contradicts another
   */
  @Override
  public void initialize(Map<String, String> properties) {
    AzureLogin.requireLibrary();
    this.config = AzureConfig.of(properties);
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    AzureKeyId by = AzureKeyId.of(wrappingKeyId, config);
    byte[] plaintext = KeyCache.copyOf(key);
    try {
      if (config.wrapsWithAes() && (plaintext.length < 16 || plaintext.length % 8 != 0)) {
        throw new NotSupportedException(
            String.format(
                "%s: %s cannot wrap %d bytes under key '%s'",
                config, config.algorithm(), plaintext.length, wrappingKeyId),
            "AES key wrap takes 16 bytes or more, in eights: keys of 128, 192 or 256 bits.");
      }

      AzureVault.Result result = vault().wrap(plaintext, by);
      if (config.storeKeyVersion()) {
        return withVersion(result).encode();
      }

      vault().itWorked(by.name(), result.version());
      return ByteBuffer.wrap(result.bytes());
    } finally {
      Arrays.fill(plaintext, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    AzureKeyId by = AzureKeyId.of(wrappingKeyId, config);
    if (WrappedKey.kmsOf(wrappedKey, wrappingKeyId).isPresent()) {
      return ByteBuffer.wrap(unwrapStored(wrappedKey, by));
    }

    byte[] wrapped = KeyCache.copyOf(wrappedKey);
    return ByteBuffer.wrap(
        by.isPinned()
            ? vault().unwrap(wrapped, by).bytes()
            : new AzureVersionSearch(vault(), config, wrapped, by).run());
  }

  /** Whether it is AES key wrap: with RSA anybody with the public half wraps. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return config.wrapsWithAes();
  }

  @Override
  public void close() {
    this.vault = null;
  }

  @Override
  public String toString() {
    return config == null ? "Azure Key Vault" : config.toString();
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
      throw damaged(by, "the key version in it cannot be");
    }

    if (by.isPinned() && !by.version().equalsIgnoreCase(version)) {
      throw new BadWrappedKeyException(
          String.format(
              "%s: a key that is to be unwrapped with key '%s' was wrapped by its version %s",
              config, by.given(), version),
          "Name that version, or the key without a version, as the table's key id.");
    }

    byte[] wrapped = new byte[body.remaining()];
    body.get(wrapped);
    return vault().unwrap(wrapped, by.at(version)).bytes();
  }

  private BadWrappedKeyException damaged(AzureKeyId by, String why) {
    return new BadWrappedKeyException(
        String.format(
            "%s: a key wrapped under '%s' with its key version is damaged: %s",
            config, by.given(), why),
        "The table's metadata was changed or damaged: restore it.");
  }

  private AzureVault vault() {
    AzureVault here = vault;
    if (here == null) {
      synchronized (this) {
        here = vault;
        if (here == null) {
          here = new AzureVault(config);
          this.vault = here;
        }
      }
    }

    return here;
  }
}
