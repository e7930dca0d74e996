package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.aws.AwsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.Proxies;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a cloud's own client does about Java's proxy; JsonHttpTest has the project's own. */
class ProxiesTest {
  private static final Map<String, String> AWS =
      Map.of("encryption.kms.aws.region", "eu-central-1");

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<String> asked = new CopyOnWriteArrayList<>();
  private final ProxySelector usual = ProxySelector.getDefault();
  private final Map<String, String> changed = new TreeMap<>();
  private ServerSocket proxy;

  @BeforeEach
  void startProxy() throws IOException {
    this.proxy = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    threads.submit(this::askForLogins);
    ProxySelector.setDefault(
        ProxySelector.of(new InetSocketAddress("127.0.0.1", proxy.getLocalPort())));
    set("aws.accessKeyId", "only-for-tests");
    set("aws.secretAccessKey", "only-for-tests");
  }

  @AfterEach
  void stopProxy() throws IOException {
    ProxySelector.setDefault(usual);
    changed.forEach(
        (name, value) -> {
          if (value.isEmpty()) {
            System.clearProperty(name);
          } else {
            System.setProperty(name, value);
          }
        });
    proxy.close();
    threads.shutdownNow();
  }

  private void set(String name, String value) {
    changed.putIfAbsent(name, System.getProperty(name, ""));
    System.setProperty(name, value);
  }

  private Void askForLogins() throws IOException {
    while (true) {
      try (Socket client = proxy.accept()) {
        asked.add(
            new BufferedReader(
                    new InputStreamReader(client.getInputStream(), StandardCharsets.US_ASCII))
                .readLine());
        client
            .getOutputStream()
            .write(
                ("HTTP/1.1 407 Proxy Authentication Required\r\n"
                        + "Proxy-Authenticate: Basic realm=\"out\"\r\n"
                        + "Content-Length: 0\r\n\r\n")
                    .getBytes(StandardCharsets.US_ASCII));
      }
    }
  }

  private static void wrap(Map<String, String> properties) {
    try (MasterKeys keys = AwsConfig.of(properties).open()) {
      keys.wrap(new byte[16], "alias/k");
    }
  }

  @Test
  void awsUsesJavasProxyAndSaysThatItAsksForALogin() {
    assertThatThrownBy(() -> wrap(AWS))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(
            "AWS KMS in eu-central-1",
            "'alias/k'",
            "behind a proxy that asks for a login (HTTP 407)",
            "127.0.0.1:" + proxy.getLocalPort(),
            "http.nonProxyHosts");
    assertThat(asked)
        .isNotEmpty()
        .allMatch(line -> line.startsWith("CONNECT kms.eu-central-1.amazonaws.com:443 "));
  }

  /** The SDK alone would use it for https, too. */
  @Test
  void awsUsesNoProxyOfOtherAddresses() {
    ProxySelector.setDefault(usual);
    set("http.proxyHost", "127.0.0.1");
    set("http.proxyPort", String.valueOf(proxy.getLocalPort()));
    Map<String, String> nobody =
        Map.of(
            "encryption.kms.aws.region", "eu-central-1",
            "encryption.kms.aws.endpoint", "https://kms.invalid",
            "http-client.apache.max-connections", "7"); // Iceberg keeps clients with equal settings
    assertThatThrownBy(() -> wrap(nobody)).hasMessageContaining("cannot be reached");
    assertThat(asked).isEmpty();
  }

  /** Of a library's failure only the text tells, which may have ids and ports in it. */
  @ParameterizedTest
  @CsvSource({
    "true, Proxy Authentication Required",
    "true, 'Unable to tunnel through proxy. Proxy returns \"HTTP/1.1 407 x\"'",
    "true, 'status 407 of the proxy'",
    "false, 'the proxy closed the connection (request id 9f84075e-1c)'",
    "false, 'no connection to proxy 10.0.0.1:14070'",
    "false, 'key 407 is disabled'",
  })
  void aProxyThatAsksForALoginIsKnownByItsText(boolean asks, String text) {
    assertThat(Proxies.askForLogin(new IOException("failed", new IOException(text))))
        .isEqualTo(asks);
  }

  @Test
  void awsUsesTheProxyOfIcebergsPropertyInstead() {
    ProxySelector.setDefault(usual);
    Map<String, String> named = new TreeMap<>(AWS);
    named.put("http-client.proxy-endpoint", "http://127.0.0.1:" + proxy.getLocalPort());
    assertThatThrownBy(() -> wrap(named))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("(HTTP 407)");
    assertThat(asked).isNotEmpty();
  }
}
