package io.icebergcrypto.kms.gcp;

import com.google.auth.oauth2.AccessToken;
import com.google.auth.oauth2.GoogleCredentials;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.TimedCalls;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.HeldToken;
import io.icebergcrypto.kms.http.JsonHttp;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The login at Google: the headers with an access token, which Google's library gets and renews.
 *
 * <p>Credentials come from a file that a property names, in any of the formats that Google's
 * library reads (service account, authorized user, external account, impersonated service account),
 * or else from the application default credentials. Nothing here travels.
 */
final class GcpCredentials {
  /** Enough for Cloud KMS, and for nothing else of the project. */
  private static final String SCOPE = "https://www.googleapis.com/auth/cloudkms";

  private static final String NAMED = "GOOGLE_APPLICATION_CREDENTIALS";
  private static final String QUOTA_PROJECT = "GOOGLE_CLOUD_QUOTA_PROJECT";

  /** A token that ends sooner is renewed: Google's library begins to a little later. */
  private static final Duration ENOUGH = Duration.ofMinutes(4);

  /**
   * What makes a credentials file a secret. An external account's may not have any of these
   * members.
   */
  private static final List<String> SECRETS =
      List.of("private_key", "refresh_token", "client_secret");

  /** Google's library has time-outs of its own, which are long and cannot be interrupted. */
  private static final TimedCalls CALLS = new TimedCalls("gcp-kms-login");

  private final GcpConfig config;
  private final String file; // null: application default credentials
  private final HeldToken<Map<String, String>> held;
  private volatile GoogleCredentials login;
  private volatile Path subjectToken;
  private volatile String content = ""; // a hash of the file's, when it could last be read

  /** Logs in when it is asked for headers. */
  GcpCredentials(GcpConfig config) {
    this.config = config;
    this.file = config.credentialsFile();
    this.held = new HeldToken<>(config, ENOUGH);
  }

  /**
   * The headers that a request needs, with a token that is still good.
   *
   * @param keyId the master key that the request is about, for errors
   * @throws LoginFailedException when there are no credentials, or Google refuses them
   * @throws InvalidConfigurationException when the file cannot be used
   * @throws KmsUnavailableException when Google's login cannot be reached, or not in time
   */
  Map<String, String> headers(URI uri, String keyId) {
    forgetIfReplaced();
    if (subjectToken != null) {
      SecretSource.requireUnwritable(subjectToken, "file " + path());
    }

    return held.get(() -> inTime(keyId, () -> metadata(uri, login())));
  }

  /** The same with a new token, in place of one that was refused. */
  Map<String, String> renewedHeaders(URI uri, String keyId) {
    return inTime(
        keyId,
        () -> {
          forget();
          GoogleCredentials renewed = login();
          renewed.refresh();
          return metadata(uri, renewed);
        });
  }

  private void forget() {
    this.login = null;
    held.forget();
  }

  /**
   * A file that was replaced means another login, now. The old token only bridges one that fails,
   * as with a file that is half written. A file that is gone for a moment is not replaced.
   */
  private synchronized void forgetIfReplaced() {
    String now = SecretSource.contentHash(path());
    if (now.equals(content)) {
      return;
    }

    this.login = null;
    if (!now.isEmpty()) {
      this.content = now;
      held.expectAnother();
    }
  }

  /** The file of credentials, which may not be there; without a property Google's own places. */
  private Path path() {
    if (file != null) {
      return Path.of(file);
    }

    String named = System.getenv(NAMED);
    if (named != null && !named.isBlank()) {
      return Path.of(named);
    }

    String settings = System.getenv("CLOUDSDK_CONFIG");
    return (settings == null || settings.isBlank()
            ? Path.of(System.getProperty("user.home"), ".config", "gcloud")
            : Path.of(settings))
        .resolve("application_default_credentials.json");
  }

  private Map<String, String> inTime(String keyId, Callable<Map<String, String>> how) {
    try {
      return CALLS.within(
          config.timeLimit(),
          String.format("%s: the login for key '%s' did not finish", config, keyId),
          how);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }

      IcebergCryptoException failure =
          e.getCause() instanceof IcebergCryptoException known
              ? known
              : new GcpErrors(config, keyId).login(source(), e.getCause());
      if (!(failure instanceof KmsUnavailableException)) {
        this.login = null; // read again the next time: it may have been fixed by then
      }

      throw failure;
    }
  }

  private Map<String, String> metadata(URI uri, GoogleCredentials login) throws IOException {
    Map<String, String> headers =
        login.getRequestMetadata(uri).entrySet().stream()
            .collect(
                Collectors.toMap(
                    Map.Entry::getKey,
                    header ->
                        HeaderValues.require(
                            config.toString(), header.getKey(), header.getValue().get(0))));
    AccessToken token = login.getAccessToken();
    hold(
        login,
        headers,
        token == null || token.getExpirationTime() == null
            ? null
            : token.getExpirationTime().toInstant());
    return headers;
  }

  /** A login that took long may be one of a file that has been replaced since. */
  private synchronized void hold(
      GoogleCredentials from, Map<String, String> headers, Instant ends) {
    if (from == login) {
      held.hold(headers, ends);
    }
  }

  /** One for all threads: its token is then asked for once. */
  private synchronized GoogleCredentials login() throws IOException {
    GoogleCredentials here = login;
    if (here == null) {
      // our own retries are enough
      here = load().createScoped(SCOPE).createWithCustomRetryStrategy(false);
      this.login = here;
    }

    return here;
  }

  private GoogleCredentials load() throws IOException {
    if (file == null && content.isEmpty() && !Files.exists(path())) {
      return applicationDefault();
    }

    String json = read();
    try {
      GoogleCredentials found =
          GoogleCredentials.fromStream(
              new ByteArrayInputStream(json.getBytes(StandardCharsets.UTF_8)));
      String project = file == null ? System.getenv(QUOTA_PROJECT) : null;
      return project == null || project.isBlank() ? found : found.createWithQuotaProject(project);
    } catch (IOException | RuntimeException e) {
      // without the cause: what failed to read a private key may quote it
      throw notCredentials(e.getMessage());
    }
  }

  private GoogleCredentials applicationDefault() {
    try {
      return GoogleCredentials.getApplicationDefault();
    } catch (IOException e) {
      throw new LoginFailedException(
          String.format("%s: there are no application default credentials: %s", config, first(e)),
          "Name a credentials file with "
              + GcpConfig.CREDENTIALS_FILE
              + ", or set GOOGLE_APPLICATION_CREDENTIALS on the driver and the executors, or run"
              + " `gcloud auth application-default login`; on Google's machines attach a service"
              + " account.");
    }
  }

  /**
   * The file's text. It must be private if there is a secret in it and a property of ours names it;
   * and others may not write it, nor the file with another service's token that it names.
   */
  private String read() {
    Path path = path();
    SecretSource.requireUnwritable(path, named());
    JsonObject content;
    try {
      JsonElement parsed = JsonParser.parseString(Files.readString(path));
      content = parsed.isJsonObject() ? parsed.getAsJsonObject() : new JsonObject();
    } catch (JsonParseException e) {
      throw notCredentials("it is not JSON");
    } catch (IOException e) {
      SecretSource.file(path.toString(), named()).readText(); // throws, and knows why
      return read(); // it is back
    }

    if (!content.has("type")) {
      throw notCredentials("it has no \"type\"");
    }

    String subject = JsonHttp.text(JsonHttp.object(content, "credential_source"), "file");
    this.subjectToken = subject.isEmpty() ? null : Path.of(subject);
    if (subjectToken != null) {
      SecretSource.requireUnwritable(subjectToken, "file " + path);
    }

    boolean secret =
        Stream.concat(Stream.of(content), sourceOf(content))
            .anyMatch(part -> SECRETS.stream().anyMatch(part::has));
    return secret && file != null
        ? SecretSource.file(file, GcpConfig.CREDENTIALS_FILE).readText()
        : content.toString();
  }

  /** The credentials within, of which an impersonated service account's are made. */
  private static Stream<JsonObject> sourceOf(JsonObject content) {
    JsonElement source = content.get("source_credentials");
    return source != null && source.isJsonObject()
        ? Stream.of(source.getAsJsonObject())
        : Stream.empty();
  }

  private InvalidConfigurationException notCredentials(String why) {
    return new InvalidConfigurationException(
        String.format("File %s, which %s names, has no credentials: %s", path(), named(), why),
        "Give a JSON file that `gcloud iam service-accounts keys create`, `gcloud auth"
            + " application-default login` or `gcloud iam workload-identity-pools"
            + " create-cred-config` wrote.");
  }

  private String source() {
    return file == null ? "the application default credentials" : "file " + file;
  }

  /** What names the file, for errors. */
  private String named() {
    return file == null
        ? "the environment (" + NAMED + ", CLOUDSDK_CONFIG)"
        : GcpConfig.CREDENTIALS_FILE;
  }

  private static String first(IOException e) {
    return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
  }
}
