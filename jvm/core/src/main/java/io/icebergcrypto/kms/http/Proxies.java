package io.icebergcrypto.kms.http;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.Causes;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The proxy on the way to a KMS. One rule for all KMSs: it is the one of Java's system properties
 * ({@code https.proxyHost}, {@code https.proxyPort}, {@code http.nonProxyHosts}).
 */
public final class Proxies {
  private static final Pattern LOGIN_ASKED = Pattern.compile("\\b407\\b"); // no part of an id

  private Proxies() {}

  /** The HTTP proxy that Java's properties name for an address; empty if there is no proxy. */
  public static Optional<InetSocketAddress> before(URI address) {
    ProxySelector selector = ProxySelector.getDefault();
    return selector == null
        ? Optional.empty()
        : selector.select(address).stream()
            .limit(1) // the others stand in for it, which no library does alike
            .filter(proxy -> proxy.type() == Proxy.Type.HTTP)
            .map(proxy -> (InetSocketAddress) proxy.address())
            .findFirst();
  }

  /** Host and port. */
  public static String text(InetSocketAddress proxy) {
    return proxy.getHostString() + ":" + proxy.getPort();
  }

  /** Whether a library failed because a proxy asks for a login; of that only the texts tell. */
  public static boolean askForLogin(Throwable failure) {
    return Causes.any(
        failure,
        cause -> {
          String text = String.valueOf(cause.getMessage()).toLowerCase(Locale.ROOT);
          return text.contains("proxy authentication required")
              || LOGIN_ASKED.matcher(text).find() && text.contains("proxy");
        });
  }

  /**
   * The error for a proxy that asks for a login. Without a cause: it may quote the request.
   *
   * @param problem what failed, for which KMS
   * @param address what was asked behind the proxy
   */
  public static InvalidConfigurationException loginAsked(String problem, URI address) {
    return new InvalidConfigurationException(
        String.format(
            "%s is behind a proxy that asks for a login (HTTP 407)%s",
            problem, before(address).map(proxy -> ": " + text(proxy)).orElse("")),
        "Bypass the proxy (Java's http.nonProxyHosts, on the driver and the executors), or let the"
            + " proxy pass the KMS's address without a login.");
  }
}
