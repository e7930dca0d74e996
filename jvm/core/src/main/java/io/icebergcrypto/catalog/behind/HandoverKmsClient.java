package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.kms.config.KmsProperties;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Leads a catalog that makes its own KMS client (Iceberg's HiveCatalog does) to the client that the
 * encrypting catalog in front of it already has: one client, and one cache.
 */
public final class HandoverKmsClient implements KeyManagementClient {
  private static final long serialVersionUID = 1L;
  private static final String ID = "encryption.kms.shared-id";

  private KeyManagementClient client;

  /** Iceberg makes one by this constructor. */
  public HandoverKmsClient() {}

  /** What to set on the catalog behind, in place of its own KMS properties. */
  public static Map<String, String> propertiesFor(KeyManagementClient client) {
    return Map.of(
        KmsProperties.KMS_IMPL, HandoverKmsClient.class.getName(), ID, Handover.offer(client));
  }

  @Override
  public void initialize(Map<String, String> properties) {
    this.client = Handover.take(properties.get(ID), KeyManagementClient.class);
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return client.wrapKey(key, wrappingKeyId);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return client.unwrapKey(wrappedKey, wrappingKeyId);
  }

  @Override
  public String toString() {
    return String.valueOf(client);
  }
}
