package io.icebergcrypto.kms.http;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.DaemonThreads;
import io.icebergcrypto.kms.call.TimeLimit;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/**
 * Requests and answers in JSON over HTTP, for the KMSs that are asked without a library of theirs.
 * Nothing of a request or an answer is in an error's text: they hold keys and tokens.
 *
 * <p>Java's client keeps idle connections for 20 minutes, and firewalls and load balancers drop
 * them sooner, without a word. So no connection is used that was idle for longer than {@link
 * #MOST_IDLE_NANOS}, nor any after a failure: a healthy KMS gets a new one.
 *
 * <p>A proxy is the one of Java's system properties, as {@link Proxies} says.
 */
public final class JsonHttp {
  private static final long MOST_IDLE_NANOS = 30_000_000_000L;
  private static final int PROXY_LOGIN = 407;
  private static final int LONGEST_TEXT = 300;
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(new DaemonThreads("iceberg-crypto-kms-http"));

  private final String kms;
  private final TimeLimit limit;
  private final Supplier<HttpClient> newClient;
  private final LongSupplier nanoClock;
  private HttpClient client; // guarded by this, as the next
  private long usedNanos;

  /**
   * An answer with any status.
   *
   * @param status HTTP's status code
   * @param body of the answer, see {@link #object(String)}
   * @param location what the header of that name says, or empty
   */
  public record Answer(int status, JsonObject body, String location) {
    /** Whether it says that requests come too often (RFC 6585, section 4). */
    public boolean isThrottled() {
      return status == 429;
    }

    /** The names of what came, for nothing of it may be shown. */
    @Override
    public String toString() {
      return "HTTP " + status + " " + body.keySet();
    }
  }

  /**
   * Makes one that connects when it is asked.
   *
   * @param kms how errors name the KMS, such as "Vault at https://vault:8200"
   * @param limit for a whole answer; a connection has a third of it
   * @param caFile PEM certificates that are trusted instead of Java's own; or null
   * @throws InvalidConfigurationException when the file has no certificates
   */
  public JsonHttp(String kms, TimeLimit limit, Path caFile) {
    this(kms, limit, caFile, null);
  }

  /**
   * The same with a client certificate.
   *
   * @param keyManagers what shows it; or null
   */
  public JsonHttp(String kms, TimeLimit limit, Path caFile, KeyManager[] keyManagers) {
    this(kms, limit, caFile, keyManagers, System::nanoTime);
  }

  JsonHttp(
      String kms, TimeLimit limit, Path caFile, KeyManager[] keyManagers, LongSupplier nanoClock) {
    this.kms = kms;
    this.limit = limit;
    this.nanoClock = nanoClock;
    HttpClient.Builder builder =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .executor(THREADS)
            .connectTimeout(limit.toConnect());
    if (caFile != null || keyManagers != null) {
      builder.sslContext(context(keyManagers, caFile == null ? null : trusting(caFile)));
    }

    this.newClient = builder::build;
  }

  /** The client whose connections are used next. */
  private synchronized HttpClient client() {
    long now = nanoClock.getAsLong();
    if (client == null || now - usedNanos > MOST_IDLE_NANOS) {
      ClassLoader ours = JsonHttp.class.getClassLoader(); // the client's thread keeps it
      this.client = DaemonThreads.withLoader(ours, newClient::get);
    }

    this.usedNanos = now;
    return client;
  }

  /** Leaves a client's connections alone; they end with the requests that still use them. */
  private synchronized void giveUp(HttpClient failed) {
    if (client == failed) {
      this.client = null;
    }
  }

  /** Asks as {@link #ask(URI, Map, JsonObject)} does; errors name the key that it is about. */
  public Answer ask(String keyId, URI uri, Map<String, String> headers, JsonObject body) {
    try {
      return ask(uri, headers, body);
    } catch (KmsUnavailableException | InvalidConfigurationException e) {
      throw e.withProblem(e.problem() + " (for key '" + keyId + "')");
    }
  }

  /**
   * Asks by POST, or by GET when there is no body.
   *
   * @param body null: none
   * @throws KmsUnavailableException when there is no connection, or no whole answer in time
   * @throws InvalidConfigurationException when the server's certificate is not trusted, a header's
   *     value cannot be one, or the answer is longer than {@value LimitedBody#MOST_BYTES} bytes
   */
  public Answer ask(URI uri, Map<String, String> headers, JsonObject body) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(uri)
            .method(
                body == null ? "GET" : "POST",
                body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body.toString()))
            .header("Content-Type", "application/json")
            .header("Accept", "application/json")
            .header("User-Agent", CallContext.userAgent());
    headers.forEach((name, value) -> request.header(name, HeaderValues.require(kms, name, value)));
    HttpClient used = client();
    CompletableFuture<HttpResponse<String>> answer =
        used.sendAsync(request.build(), info -> new LimitedBody(info.statusCode()));
    try {
      // over all of it: the request's own time-out ends with the answer's headers
      HttpResponse<String> response = limit.await(answer, kms + " did not answer");
      if (response.statusCode() == PROXY_LOGIN) {
        throw Proxies.loginAsked(kms, uri);
      }

      String location = response.headers().firstValue("location").orElse("");
      return new Answer(response.statusCode(), object(response.body()), location);
    } catch (ExecutionException e) {
      giveUp(used);
      throw failed(e.getCause());
    } catch (KmsUnavailableException e) {
      giveUp(used);
      throw e;
    } finally {
      answer.cancel(true);
    }
  }

  private IcebergCryptoException failed(Throwable cause) {
    if (cause instanceof HttpConnectTimeoutException) {
      return unreached("no connection within " + limit.toConnect().toMillis() + " ms", cause);
    }

    if (cause instanceof HttpTimeoutException) {
      return limit.exceeded(kms + " did not answer", cause);
    }

    if (cause instanceof LimitedBody.TooLongException body) {
      return tooLong(body);
    }

    if (Causes.isUntrusted(cause)) {
      return new InvalidConfigurationException(
          String.format("%s: its TLS certificate is not trusted: %s", kms, cause.getMessage()),
          "Check the address, and trust the KMS's certificate authority (a private one: the"
              + " ca-file property, or Java's trust store).",
          cause);
    }

    return unreached(reason(cause), cause);
  }

  private KmsUnavailableException unreached(String why, Throwable cause) {
    return new KmsUnavailableException(
        String.format("%s cannot be reached: %s", kms, why),
        "Check the address, that the KMS runs, and the network between it and this host.",
        cause);
  }

  /**
   * A busy proxy's page may be long, too: that one is asked again. Without the cause, which would
   * say that the connection is broken.
   */
  private IcebergCryptoException tooLong(LimitedBody.TooLongException body) {
    String problem =
        String.format(
            "%s answers HTTP %d with more than %d bytes, which no KMS sends",
            kms, body.status(), LimitedBody.MOST_BYTES);
    String hint = "Check the address, and any proxy on the way there.";
    return body.status() == 429 || body.status() >= 500
        ? new KmsUnavailableException(problem, hint).throttledIf(body.status() == 429)
        : new InvalidConfigurationException(problem, hint);
  }

  /** A member that is an object; an empty one when it is not. */
  public static JsonObject object(JsonObject parent, String name) {
    return parent.get(name) instanceof JsonObject found ? found : new JsonObject();
  }

  /** A member that is text; empty when it is not. */
  public static String text(JsonObject parent, String name) {
    return parent.get(name) instanceof JsonPrimitive found && found.isString()
        ? found.getAsString()
        : "";
  }

  /** A member that is a number; 0 when it is not, or out of range. */
  public static long number(JsonObject parent, String name) {
    try {
      return parent.get(name) instanceof JsonPrimitive found && found.isNumber()
          ? found.getAsLong()
          : 0;
    } catch (NumberFormatException e) {
      return 0; // 1e99999, say
    }
  }

  /** Whether a member is there and true. */
  public static boolean isTrue(JsonObject parent, String name) {
    return parent.get(name) instanceof JsonPrimitive found
        && found.isBoolean()
        && found.getAsBoolean();
  }

  /** Text of an answer as errors show it: cut off where it is long. */
  public static String shortened(String text) {
    return text.length() > LONGEST_TEXT ? text.substring(0, LONGEST_TEXT) + "..." : text;
  }

  /**
   * The JSON object that a body is, or a list of it alone; an empty one when it is neither.
   *
   * @param body null: it has none, as in what Java makes of a proxy's refusal
   */
  public static JsonObject object(String body) {
    try {
      JsonElement parsed = JsonParser.parseString(body == null ? "" : body);
      JsonElement only =
          parsed instanceof JsonArray list && list.size() == 1 ? list.get(0) : parsed;
      return only.isJsonObject() ? only.getAsJsonObject() : new JsonObject();
    } catch (JsonParseException e) {
      return new JsonObject(); // a proxy's page, say: the status tells
    }
  }

  /** A failure's message; a refused connection has none. */
  private static String reason(Throwable e) {
    return Causes.of(e)
        .map(Throwable::getMessage)
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(
            e instanceof ConnectException
                ? "the connection was refused"
                : e.getClass().getSimpleName());
  }

  private static SSLContext context(KeyManager[] keyManagers, TrustManager[] trustManagers) {
    try {
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keyManagers, trustManagers, null);
      return context;
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has TLS", e);
    }
  }

  private static TrustManager[] trusting(Path caFile) {
    try (InputStream in = Files.newInputStream(caFile)) {
      Collection<? extends Certificate> certificates =
          CertificateFactory.getInstance("X.509").generateCertificates(in);
      if (certificates.isEmpty()) {
        throw new InvalidConfigurationException(
            "File " + caFile + " has no certificate", "Give a file of PEM certificates.");
      }

      KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
      trusted.load(null, null);
      int number = 0;
      for (Certificate certificate : certificates) {
        trusted.setCertificateEntry("ca-" + number++, certificate);
      }

      TrustManagerFactory factory =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      factory.init(trusted);
      return factory.getTrustManagers();
    } catch (IOException | GeneralSecurityException e) {
      throw new InvalidConfigurationException(
          String.format("File %s cannot be read as certificates: %s", caFile, e),
          "Give a file of PEM certificates that this user may read.",
          e);
    }
  }
}
