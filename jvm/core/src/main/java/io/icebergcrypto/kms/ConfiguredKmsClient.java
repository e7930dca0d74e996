package io.icebergcrypto.kms;

import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.SharedKeys;
import io.icebergcrypto.kms.call.TableBinding;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.SettingsGuard;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * What this project's KMS clients have in common. Iceberg makes one by its constructor without
 * arguments, and then calls {@link #initialize}. The configuration travels to executors; the login
 * and the connections are made by the first call in each JVM, and stay there.
 */
abstract class ConfiguredKmsClient
    implements KeyManagementClient, AuthenticatedWrapping, TableBinding {
  private static final long serialVersionUID = 1L;

  private KmsConfig config;
  private transient SharedKeys.Hold open;

  @Override
  public void initialize(Map<String, String> properties) {
    // both here, for a catalog of Iceberg's own makes clients, too
    SettingsGuard.ALL.forEach(guard -> guard.check(properties));
    KmsType type = KmsType.ofClient(getClass().getName()).orElseThrow();
    KmsProperties.check(type.word(), properties);
    KmsConfig read = type.read(properties);
    close();
    this.config = read;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    byte[] plaintext = KeyCache.copyOf(key);
    try {
      return keys().wrap(plaintext, wrappingKeyId);
    } finally {
      Arrays.fill(plaintext, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return keys().unwrap(wrappedKey.asReadOnlyBuffer(), wrappingKeyId);
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return config.authenticatesWrapping();
  }

  @Override
  public boolean bindsTable() {
    return config.bindsTable();
  }

  boolean limitsRequests() {
    return config.limitsRequests();
  }

  boolean mayCloseWhenIdle() {
    return config.mayCloseWhenIdle();
  }

  /**
   * Gives up the login and the connections of this JVM; they end with the last client that has
   * them. Another call makes new ones.
   */
  @Override
  public synchronized void close() {
    SharedKeys.Hold before = open;
    this.open = null;
    if (before != null) {
      before.release();
    }
  }

  /** The KMS and where it is; no secret. */
  @Override
  public String toString() {
    return config == null ? getClass().getSimpleName() : config.toString();
  }

  synchronized MasterKeys keys() {
    if (open == null) {
      this.open = SharedKeys.of(config, this);
    }

    return open.keys();
  }
}
