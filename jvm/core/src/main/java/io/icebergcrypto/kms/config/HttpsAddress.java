package io.icebergcrypto.kms.config;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Optional;

/**
 * The addresses of KMSs. Keys and tokens are sent there, so they are https; http is for a KMS on
 * this machine only.
 */
public final class HttpsAddress {
  private HttpsAddress() {}

  /** A URL with a host, by https or http; empty when the text is something else. */
  public static Optional<URI> parse(String text) {
    return unfit(text) == null ? Optional.of(URI.create(text)) : Optional.empty();
  }

  /** What is wrong with an address of scheme, host, port and path alone; null: nothing. */
  public static String problem(String text) {
    String problem = unfit(text);
    return problem == null && hasMoreThanPath(URI.create(text))
        ? "has more than a host, a port and a path"
        : problem;
  }

  private static String unfit(String text) {
    try {
      URI uri = new URI(text);
      if (!isHttps(uri) && !"http".equalsIgnoreCase(uri.getScheme())) {
        return "does not start with https://";
      }

      return uri.getHost() == null ? "names no host" : null;
    } catch (URISyntaxException e) {
      return "is not a URL";
    }
  }

  /** Whether nobody on the network reads what is sent there: by https, or to this machine. */
  public static boolean isPrivate(URI uri) {
    String host = uri.getHost();
    return isHttps(uri)
        || host.equals("localhost")
        || host.equals("[::1]")
        || host.matches("127(\\.\\d{1,3}){3}");
  }

  public static boolean isHttps(URI uri) {
    return "https".equalsIgnoreCase(uri.getScheme());
  }

  private static boolean hasMoreThanPath(URI uri) {
    return uri.getRawUserInfo() != null || uri.getQuery() != null || uri.getFragment() != null;
  }
}
