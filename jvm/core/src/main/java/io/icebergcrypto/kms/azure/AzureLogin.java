package io.icebergcrypto.kms.azure;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.core.credential.TokenRequestContext;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpClient;
import com.azure.core.http.HttpMethod;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.ProxyOptions;
import com.azure.core.http.policy.FixedDelay;
import com.azure.core.http.policy.HttpPipelineSyncPolicy;
import com.azure.core.http.policy.RetryPolicy;
import com.azure.core.util.Configuration;
import com.azure.core.util.HttpClientOptions;
import com.azure.identity.CredentialUnavailableException;
import com.azure.identity.DefaultAzureCredentialBuilder;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.HeldToken;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.kms.http.Proxies;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.azure.AdlsTokenCredentialProviders;

/**
 * The access token for a vault. It comes from where Iceberg's own client takes it: the class that
 * {@code adls.token-credential-provider} names, or else Azure's DefaultAzureCredential
 * (environment, workload identity, managed identity, developer tools). Nothing here travels.
 */
final class AzureLogin {
  /** A token that ends sooner is renewed: it must outlive the call, and clocks differ. */
  private static final Duration ENOUGH = Duration.ofMinutes(5);

  /** Which one of them it is, Azure's library knows; for what is said of a proxy. */
  private static final URI LOGIN_SERVICE = URI.create("https://login.microsoftonline.com");

  private static final String NEVER_BY_PROXY = "|localhost|127.*|169.254.*";

  private static final String CERTIFICATE = "AZURE_CLIENT_CERTIFICATE_PATH";
  private static final Pattern ENTRA_ERROR = Pattern.compile("AADSTS[0-9]+[^\\r\\n]*");

  private static final Pattern WRONG_CLOCK =
      Pattern.compile("AADSTS700024|AADSTS500133|not within its valid time range|not yet valid");

  private static final Pattern BUSY =
      Pattern.compile("AADSTS90033|AADSTS50196|AADSTS90055|status code: (?:429|5[0-9][0-9])");

  private static final Pattern TOO_OFTEN = Pattern.compile("AADSTS90055|status code: 429");

  private final AzureConfig config;
  private final ReentrantLock turn = new ReentrantLock();
  private final HeldToken<String> token;
  private TokenCredential credential;
  private String certificate = ""; // a hash of the file's, when it could last be read
  private volatile int status;

  AzureLogin(AzureConfig config) {
    this.config = config;
    this.token = new HeldToken<>(config, ENOUGH);
  }

  /**
   * A token that is still good for some minutes.
   *
   * @param keyId the master key that it is needed for, for errors
   * @throws LoginFailedException when there is no credential, or Entra ID refuses it
   * @throws KmsUnavailableException when Entra ID, or the machine's identity service, does not
   *     answer
   * @throws InvalidConfigurationException when the credential provider cannot be used
   */
  String token(String keyId) {
    String good = token.during(turn);
    return good != null
        ? good
        : alone(
            keyId,
            () -> {
              forgetWhatWasReplaced();
              return token.get(() -> ask(keyId));
            });
  }

  /**
   * Azure's library reads a certificate once. The token of a workload identity it reads again by
   * itself, which is replaced often. The old access token only bridges a login that fails, as with
   * a file that is half written. A file that is gone for a moment is not replaced.
   */
  private void forgetWhatWasReplaced() {
    if (!config.credential().isEmpty()) {
      return; // what it reads is up to it
    }

    SecretSource.requireUnwritable("AZURE_FEDERATED_TOKEN_FILE");
    SecretSource.requireUnwritable(CERTIFICATE);
    String file = System.getenv(CERTIFICATE);
    String now = file == null || file.isBlank() ? "" : SecretSource.contentHash(Path.of(file));
    if (!now.isEmpty() && !now.equals(certificate)) {
      this.certificate = now;
      this.credential = null;
      token.expectAnother();
    }
  }

  /**
   * A token in place of one that the vault refused. Azure's libraries keep tokens too: only a new
   * credential asks again.
   *
   * @return the refused one when there is no other
   */
  String renewed(String keyId, String refused) {
    return alone(
        keyId,
        () -> {
          if (token.isHeld(refused)) {
            token.forget();
            this.credential = null;
          }

          return token(keyId);
        });
  }

  /** One login at a time. */
  private String alone(String keyId, Supplier<String> work) {
    String problem = subject(keyId) + ": another thread's login did not finish";
    return config.timeLimit().alone(turn, problem, work);
  }

  private String ask(String keyId) {
    this.status = 0;
    try {
      if (credential == null) {
        this.credential = config.credential().isEmpty() ? standard() : provided();
      }

      AccessToken answer =
          credential.getTokenSync(new TokenRequestContext().addScopes(config.scope()));
      if (answer == null || answer.getToken() == null) {
        throw new LoginFailedException(
            subject(keyId) + ": the credential provider returned no token",
            "Check the credential provider.");
      }

      HeaderValues.require(subject(keyId), "Authorization", answer.getToken());
      token.hold(answer.getToken(), answer.getExpiresAt().toInstant());
      return answer.getToken();
    } catch (IcebergCryptoException e) {
      this.credential = null; // Azure's libraries would keep the token that is no good
      throw e;
    } catch (RuntimeException e) {
      throw failed(keyId, e);
    }
  }

  /** As Iceberg's own, but with one attempt and with time limits: the caller tries again. */
  private TokenCredential standard() {
    Duration timeout = config.timeLimit().duration();
    return new DefaultAzureCredentialBuilder()
        .httpClient(
            HttpClient.createDefault(
                new HttpClientOptions()
                    .setProxyOptions(proxy())
                    .setConfiguration(Configuration.NONE) // it would name another proxy
                    .setConnectTimeout(config.timeLimit().toConnect())
                    .setResponseTimeout(timeout)))
        // not retryOptions: with them the library refuses to ask a machine's metadata service
        .retryPolicy(new RetryPolicy(new FixedDelay(0, Duration.ofMillis(1))))
        .maxRetry(0)
        .credentialProcessTimeout(timeout)
        .addPolicy(
            new HttpPipelineSyncPolicy() {
              @Override
              protected HttpResponse afterReceivedResponse(
                  HttpPipelineCallContext context, HttpResponse response) {
                status = response.getStatusCode();
                if (status >= 500 && response.getRequest().getHttpMethod() == HttpMethod.POST) {
                  // Microsoft's library for logins at Entra ID would wait for a second, and ask
                  // again: nothing of Azure's builder turns that off, and the caller tries again
                  throw new HttpResponseException("The status code: " + status, response);
                }

                return response;
              }
            })
        .build();
  }

  /**
   * Java's proxy for https. Azure's library would reach a machine's metadata service by it, too.
   */
  private static ProxyOptions proxy() {
    return Proxies.before(LOGIN_SERVICE)
        .map(
            proxy ->
                new ProxyOptions(
                        ProxyOptions.Type.HTTP,
                        new InetSocketAddress(proxy.getHostString(), proxy.getPort()))
                    .setNonProxyHosts(
                        System.getProperty("http.nonProxyHosts", "") + NEVER_BY_PROXY))
        .orElse(null);
  }

  private TokenCredential provided() {
    try {
      return AdlsTokenCredentialProviders.from(config.credential()).credential();
    } catch (IllegalArgumentException e) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s=%s cannot be used: %s",
              AzureConfig.CREDENTIAL_PROVIDER,
              config.credential().get(AzureConfig.CREDENTIAL_PROVIDER),
              e.getMessage()),
          "Name a class on the class path that implements"
              + " org.apache.iceberg.azure.AdlsTokenCredentialProvider.",
          e);
    }
  }

  /** What Azure's libraries threw; only their texts tell a busy service from a wrong secret. */
  private IcebergCryptoException failed(String keyId, RuntimeException e) {
    String subject = subject(keyId);
    String text = String.valueOf(e.getMessage());
    if (status == 407 || Proxies.askForLogin(e)) {
      return Proxies.loginAsked(subject + ": the login service", LOGIN_SERVICE);
    }

    if (HeaderValues.areQuotedBy(e)) {
      return new LoginFailedException(
          subject + ": login failed: its request has a value that is not a valid header value",
          "Look for a line break in IDENTITY_HEADER, or in what the credential provider reads.");
    }

    if (e instanceof CredentialUnavailableException) {
      return new LoginFailedException(
          subject + ": login refused: no Azure credential was found on this host",
          "Give the machine or pod a managed or workload identity, or set AZURE_TENANT_ID,"
              + " AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or AZURE_CLIENT_CERTIFICATE_PATH) in the"
              + " environment of driver and executors; the cause lists what was tried.",
          e);
    }

    if (Causes.isUntrusted(e)) {
      return new InvalidConfigurationException(
          (subject + ": the login service's TLS certificate is not trusted: " + text).strip(),
          "Check AZURE_AUTHORITY_HOST and Java's trust store.",
          e);
    }

    Throwable outage = Causes.of(e).filter(AzureLogin::isOutage).findFirst().orElse(null);
    if (outage instanceof InterruptedException) {
      Thread.currentThread().interrupt();
      return notNow(subject + ": the login was interrupted", e);
    }

    if (outage != null) {
      return notNow(subject + ": the login service cannot be reached: " + outage, e);
    }

    if (status == 429 || status >= 500 || BUSY.matcher(text).find()) {
      String http = status == 0 ? "" : " (HTTP " + status + ")";
      return notNow(subject + ": the login service is busy" + http, e)
          .throttledIf(status == 429 || TOO_OFTEN.matcher(text).find());
    }

    boolean refused =
        e instanceof ClientAuthenticationException || ENTRA_ERROR.matcher(text).find();
    String problem = refused ? ": login refused: " : ": login failed: ";
    return new LoginFailedException(
        (subject + problem + entraError(text)).strip(),
        refused ? toBeCorrected(text) : "Check the credential; the cause says more.",
        e);
  }

  private static KmsUnavailableException notNow(String what, Throwable cause) {
    return new KmsUnavailableException(
        what.strip(),
        "Check the network between this host and Entra ID, or the machine's identity service;"
            + " encryption.kms.call-timeout-ms is the limit of one attempt.",
        cause);
  }

  private static String toBeCorrected(String text) {
    if (WRONG_CLOCK.matcher(text).find()) {
      return "Check this host's clock (NTP): what it signs is not valid at Entra ID's time.";
    }

    return text.contains("AADSTS7000222")
        ? "The application's client secret has expired: make a new one and put it into"
            + " AZURE_CLIENT_SECRET."
        : "Check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret, certificate or federated token on"
            + " this host, and that the application or identity exists in the tenant.";
  }

  private static boolean isOutage(Throwable e) {
    return e instanceof InterruptedException
        || e instanceof IOException
        || e instanceof TimeoutException;
  }

  /** Entra's own error line, or the first line of any other text. */
  private static String entraError(String text) {
    Matcher known = ENTRA_ERROR.matcher(text);
    return JsonHttp.shortened(known.find() ? known.group() : text.lines().findFirst().orElse(""));
  }

  private String subject(String keyId) {
    return String.format("%s, for key '%s'", config, keyId);
  }
}
