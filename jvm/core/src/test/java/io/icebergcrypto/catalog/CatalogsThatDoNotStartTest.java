package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.junit.jupiter.api.Test;

class CatalogsThatDoNotStartTest {
  private static void initialize(String type, String uri) throws IOException {
    try (EncryptedCatalog catalog = new EncryptedCatalog()) {
      catalog.initialize(
          "lake", Map.of(EncryptionProperties.CATALOG_TYPE, type, CatalogProperties.URI, uri));
    }
  }

  @Test
  void aTypeThatThereIsNot() {
    assertThatThrownBy(() -> initialize("hadop", "x"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("Catalog lake", "'hadop'", "hive, rest, jdbc, hadoop", "hint:");
  }

  @Test
  void aRestServerThatIsDownIsNamed() throws IOException {
    int port;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = socket.getLocalPort();
    }

    String server = "127.0.0.1:" + port;
    assertThatThrownBy(() -> initialize("rest", "http://me:s3cret@" + server + "/api"))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("Catalog lake", "http://" + server + "/api", "hint:")
        .hasMessageNotContaining("s3cret");
  }
}
