package io.icebergcrypto.kms;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Leads a catalog that makes its own KMS client (Iceberg's HiveCatalog does) to the client that the
 * encrypting catalog in front of it already has. So that there is one client, and one cache.
 */
public final class SharedKmsClient implements KeyManagementClient {
  private static final long serialVersionUID = 1L;
  private static final String SHARED_ID = "encryption.kms.shared-id";
  private static final ConcurrentMap<String, KeyManagementClient> OFFERED = new ConcurrentHashMap<>();

  private KeyManagementClient client;

  /** Iceberg makes one by this constructor. */
  public SharedKmsClient() {}

  /** A client on offer to the catalogs that are started before it is closed. */
  public static final class Offer implements AutoCloseable {
    private final String id;

    private Offer(String id) {
      this.id = id;
    }

    /** What to set on the catalog behind, in place of its own KMS properties. */
    public Map<String, String> properties() {
      return Map.of(KmsProperties.KMS_IMPL, SharedKmsClient.class.getName(), SHARED_ID, id);
    }

    @Override
    public void close() {
      OFFERED.remove(id);
    }
  }

  /** Offers a client while a catalog starts. */
  public static Offer offer(KeyManagementClient client) {
    String id = UUID.randomUUID().toString();
    OFFERED.put(id, client);
    return new Offer(id);
  }

  @Override
  public void initialize(Map<String, String> properties) {
    this.client = OFFERED.get(properties.get(SHARED_ID));
    if (client == null) {
      throw new IllegalStateException(
          SharedKmsClient.class.getName() + " is internal to EncryptedCatalog: use encryption.kms-type");
    }
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
