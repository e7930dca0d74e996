package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.BindingKms;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.http.JsonHttp;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a KMS is told about its caller. */
class CallContextTest {
  private static final ByteBuffer KEY = ByteBuffer.wrap(new byte[16]);

  /** Asks over HTTP, as the clients of Vault, Google Cloud and Azure do. */
  public static final class HttpKms implements KeyManagementClient {
    private static final long serialVersionUID = 1L;
    private static final List<String> ASKED_FOR = new CopyOnWriteArrayList<>();
    private URI address;

    @Override
    public void initialize(Map<String, String> properties) {
      this.address = URI.create(properties.get("test.address"));
    }

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      ASKED_FOR.add(String.valueOf(CallContext.table()));
      new JsonHttp("the KMS", new TimeLimit(20_000), null).ask(address, Map.of(), new JsonObject());
      return key;
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      return wrapKey(wrappedKey, wrappingKeyId);
    }
  }

  @Test
  void requestsOverHttpNameProgramAndApplication() throws IOException {
    List<String> agents = new CopyOnWriteArrayList<>();
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext(
        "/",
        exchange -> {
          agents.add(exchange.getRequestHeaders().getFirst("User-Agent"));
          byte[] answer = "{}".getBytes(StandardCharsets.US_ASCII);
          exchange.sendResponseHeaders(200, answer.length);
          exchange.getResponseBody().write(answer);
          exchange.close();
        });
    server.start();
    String address = "http://127.0.0.1:" + server.getAddress().getPort() + "/x";
    Map<String, String> properties =
        Map.of("encryption.kms-impl", HttpKms.class.getName(), "test.address", address);
    HttpKms.ASKED_FOR.clear();
    try (CachingKmsClient known =
            KmsClients.create(with(properties, "application_1700000000000_0001"));
        CachingKmsClient unknown = KmsClients.create(properties)) {
      CallContext.forTable("lake.db.t", () -> known.wrapKey(KEY, "k1"));
      unknown.wrapKey(KEY, "k1");
    } finally {
      server.stop(0);
    }

    assertThat(agents)
        .containsExactly("iceberg-crypto app/application_1700000000000_0001", "iceberg-crypto");
    assertThat(HttpKms.ASKED_FOR).containsExactly("lake.db.t", "null");
    assertThat(CallContext.table()).as("afterwards").isNull();
    assertThat(CallContext.application()).as("afterwards").isNull();
  }

  @Test
  void aCallForNoTableIsRefusedWhereItsUuidIsAskedFor() {
    try (CachingKmsClient client =
        KmsClients.create(Map.of("encryption.kms-impl", BindingKms.class.getName()))) {
      BindingKms.CALLS.clear();
      client.check("k1");
      assertThat(BindingKms.CALLS).containsExactly("wrap none", "unwrap none");
      for (KeyManagementClient nobodys : List.of(client, new BoundKmsClient(null, client))) {
        assertThatThrownBy(
                () -> CallContext.forTable("lake.db.t", () -> nobodys.wrapKey(KEY, "k1")))
            .isInstanceOf(InvalidConfigurationException.class)
            .hasMessageContaining("asks for the table's UUID");
      }

      assertThat(BindingKms.CALLS).as("nothing more was asked").hasSize(2);
      assertThat(CallContext.tableUuid()).as("afterwards").isNull();
    }
  }

  private static Map<String, String> with(Map<String, String> properties, String application) {
    Map<String, String> all = new HashMap<>(properties);
    all.put("encryption.kms.application-id", application);
    return all;
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "a b", "a\nb", "a/b", "ä"})
  void anIdThatCannotStandInAHeaderIsRefused(String id) {
    assertThatThrownBy(() -> CallContext.application(Map.of("encryption.kms.application-id", id)))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("encryption.kms.application-id");
  }

  @Test
  void anIdIsMadeOfAnyName() {
    assertThat(CallContext.applicationId("app one/2\n")).isEqualTo("app-one-2-");
    assertThat(CallContext.applicationId("a".repeat(200))).hasSize(100);
  }
}
