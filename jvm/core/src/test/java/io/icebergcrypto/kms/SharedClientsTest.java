package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.kms.call.DaemonThreads;
import io.icebergcrypto.testing.LakeFixture;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the clients of many sessions have in common, and what their threads keep. */
class SharedClientsTest {
  private static final InheritableThreadLocal<String> SESSION = new InheritableThreadLocal<>();
  private static final int SESSIONS = LakeFixture.NIGHTLY ? 200 : 50;

  @TempDir private Path folder;
  private HttpServer vault;

  @BeforeEach
  void vaultThatAllowsNothing() throws IOException {
    vault = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    vault.createContext(
        "/",
        exchange -> {
          boolean health = exchange.getRequestURI().getPath().endsWith("/health");
          byte[] answer =
              (health
                      ? "{\"initialized\": true, \"sealed\": false, \"standby\": false}"
                      : "{\"errors\": [\"permission denied\"]}")
                  .getBytes(StandardCharsets.UTF_8);
          exchange.sendResponseHeaders(health ? 200 : 403, answer.length);
          exchange.getResponseBody().write(answer);
          exchange.close();
        });
    vault.start();
  }

  @AfterEach
  void stop() {
    vault.stop(0);
  }

  private CachingKmsClient session(String token) throws IOException {
    Path file = folder.resolve(token);
    if (!Files.exists(file)) {
      Files.writeString(file, token);
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    }

    Map<String, String> properties = new HashMap<>();
    properties.put("encryption.kms-type", "vault");
    properties.put(
        "encryption.kms.vault.address", "http://127.0.0.1:" + vault.getAddress().getPort());
    properties.put("encryption.kms.vault.token-file", file.toString());
    return KmsClients.create(properties);
  }

  private static void use(CachingKmsClient client) {
    assertThatThrownBy(() -> client.wrapKey(ByteBuffer.wrap(new byte[16]), "k"))
        .hasMessageContaining("permission denied");
  }

  /** Java's client for HTTP has one each. */
  private static List<Thread> selectors() {
    return threads("HttpClient-");
  }

  private static List<Thread> threads(String name) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(name))
        .toList();
  }

  @Test
  void manySessionsHaveTheThreadsOfOne() throws IOException {
    List<CachingKmsClient> open = new ArrayList<>();
    open.add(session("token"));
    use(open.get(0));
    int before = selectors().size();
    for (int i = 1; i < SESSIONS; i++) {
      open.add(session("token"));
      use(open.get(i));
    }

    // others may run in this JVM at the same time
    assertThat(selectors()).hasSizeLessThanOrEqualTo(before + 10);
    open.subList(1, SESSIONS).forEach(CachingKmsClient::close);
    use(open.get(0)); // the others' end is not its own
    CachingKmsClient other = session("another");
    use(other);
    assertThat(selectors()).hasSizeLessThanOrEqualTo(before + 10);
    other.close();
    open.get(0).close();
  }

  @Test
  void whatNobodyHasIsClosed() throws IOException {
    ClientState here = usedOnce();
    for (int i = 0; i < 600 && !here.isClosed(); i++) {
      System.gc();
      LockSupport.parkNanos(100_000_000L);
    }

    assertThat(here.isClosed()).isTrue();
  }

  private ClientState usedOnce() throws IOException {
    CachingKmsClient client = session("garbage");
    use(client);
    return client.local();
  }

  @Test
  void threadsKeepNoSession() throws IOException, InterruptedException {
    ClassLoader ofSession = new URLClassLoader(new URL[0], getClass().getClassLoader());
    Thread.currentThread().setContextClassLoader(ofSession);
    SESSION.set("a session");
    CachingKmsClient client = session("third");
    try {
      use(client);
    } finally {
      SESSION.remove();
      Thread.currentThread().setContextClassLoader(getClass().getClassLoader());
    }

    for (String name : List.of("HttpClient-", "iceberg-crypto-")) {
      assertThat(threads(name))
          .isNotEmpty()
          .noneMatch(thread -> thread.getContextClassLoader() == ofSession);
    }

    AtomicReference<Object> inherited = new AtomicReference<>();
    SESSION.set("a session");
    Thread made = new DaemonThreads("of a pool").newThread(() -> inherited.set(SESSION.get()));
    SESSION.remove();
    made.start();
    made.join();
    assertThat(inherited).hasValue(null);
    client.close();
  }
}
