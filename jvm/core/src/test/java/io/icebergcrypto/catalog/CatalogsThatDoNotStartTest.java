package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.testing.PlainKms;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.junit.jupiter.api.Test;

class CatalogsThatDoNotStartTest {
  /** One whose library is not there. */
  public static final class WithoutLibrary extends InMemoryCatalog {
    @Override
    public void initialize(String name, Map<String, String> properties) {
      throw new NoClassDefFoundError("org/example/Client");
    }
  }

  /** Counts how often it is closed. */
  public static final class ClosedKms extends PlainKms {
    private static final long serialVersionUID = 1L;
    private static final AtomicInteger CLOSED = new AtomicInteger();

    @Override
    public void close() {
      CLOSED.incrementAndGet();
    }
  }

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

  /** Spark tries again with each statement. */
  @Test
  void aCatalogWithoutItsLibraryLeavesNoKmsClientOpen() throws IOException {
    Map<String, String> properties =
        Map.of(
            EncryptionProperties.CATALOG_IMPL, WithoutLibrary.class.getName(),
            CatalogProperties.ENCRYPTION_KMS_IMPL, ClosedKms.class.getName());
    int before = ClosedKms.CLOSED.get();
    try (EncryptedCatalog catalog = new EncryptedCatalog()) {
      assertThatThrownBy(() -> catalog.initialize("lake", properties))
          .isInstanceOf(NoClassDefFoundError.class);
      assertThat(ClosedKms.CLOSED).hasValue(before + 1);
    }
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
