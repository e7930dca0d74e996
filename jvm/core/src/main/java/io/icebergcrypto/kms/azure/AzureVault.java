package io.icebergcrypto.kms.azure;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.http.JsonHttp;
import java.net.URI;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A vault's REST API, as far as it is needed: wrapkey, unwrapkey, and the list of a key's versions.
 * One request is one attempt. Also what this JVM learnt of the vault: which version of a key
 * unwrapped last. Nothing here travels.
 *
 * <p>Azure's client library for keys could do the first two: its retries, its log of requests and
 * its cryptography in the process ({@code disableKeyCaching}, since the vault's checks of disabled
 * and expired keys count) can be turned off. But it is one more library for the user to add, hands
 * requests and answers, which hold keys, to every pipeline policy that it finds on the class path,
 * and asks for a token of the scope that the vault names. Only the login uses Azure's library.
 */
final class AzureVault {
  /** Generally available since 2023, in Key Vault and Managed HSM. */
  private static final String API_VERSION = "api-version=7.4";

  private static final Pattern KID =
      Pattern.compile("https://[^/]+/keys/(?<name>[0-9a-zA-Z-]+)/(?<version>[0-9a-zA-Z]+)");

  /** Of a key with more versions than 100 pages hold (25 each), the others are not listed. */
  private static final int MOST_PAGES = 100;

  private static final int MOST_REMEMBERED = 8;
  private static final Base64.Encoder ENCODER = Base64.getUrlEncoder().withoutPadding();
  private static final Base64.Decoder DECODER = Base64.getUrlDecoder();

  /**
   * What wrapping or unwrapping gave.
   *
   * @param bytes the wrapped key, or the key
   * @param version the version of the master key that did it
   */
  record Result(byte[] bytes, String version) {
    @Override
    public String toString() {
      return "by version " + version;
    }
  }

  /**
   * A version of a key.
   *
   * @param created in seconds since 1970
   */
  record Version(String id, boolean enabled, long created) {}

  /** A key's versions, page by page, as far as they have been listed. */
  static final class Listing {
    private final List<Version> found = new ArrayList<>();
    private URI next;
    private int pages;
  }

  private final AzureConfig config;
  private final AzureLogin login;
  private final JsonHttp http;
  private final ConcurrentMap<String, List<String>> worked = new ConcurrentHashMap<>();
  private final AzureSearches searches = new AzureSearches();

  AzureVault(AzureConfig config) {
    this.config = config;
    this.login = new AzureLogin(config);
    this.http = new JsonHttp(config.toString(), config.timeLimit(), null);
  }

  /** Wraps a key with the version that the key id names, or the current one. */
  Result wrap(byte[] key, AzureKeyId by) {
    return use("wrapkey", key, by);
  }

  /** Unwraps a key with the version that the key id names, or the current one. */
  Result unwrap(byte[] wrapped, AzureKeyId by) {
    return use("unwrapkey", wrapped, by);
  }

  /**
   * The versions of a key, in no order. Needs the permission to list.
   *
   * @param listing what was listed already; what is listed now is added to it
   */
  List<Version> versions(AzureKeyId key, Listing listing) {
    AzureErrors errors = new AzureErrors(config, key, "versions");
    URI page = listing.pages == 0 ? uri("/keys/" + key.name() + "/versions") : listing.next;
    while (page != null && listing.pages < MOST_PAGES) {
      JsonObject body = ask(page, null, errors);
      List<Version> found = new ArrayList<>();
      if (body.get("value") instanceof JsonArray values) {
        for (JsonElement value : values) {
          found.add(version(value, errors));
        }
      }

      page = next(body, errors);
      listing.next = page;
      listing.found.addAll(found);
      listing.pages++;
    }

    return new ArrayList<>(listing.found);
  }

  /** Searches that were cut short. */
  AzureSearches searches() {
    return searches;
  }

  /** The versions of a key that unwrapped something, the latest first. */
  List<String> worked(String name) {
    return worked.getOrDefault(name, List.of());
  }

  /** Notes that a version wrapped or unwrapped. */
  void itWorked(String name, String version) {
    worked.compute(
        name,
        (ignored, before) -> {
          List<String> now = new ArrayList<>(List.of(version));
          if (before != null) {
            before.stream()
                .filter(other -> !other.equals(version))
                .limit(MOST_REMEMBERED - 1)
                .forEach(now::add);
          }

          return List.copyOf(now);
        });
  }

  private Result use(String operation, byte[] input, AzureKeyId key) {
    // without a version the path has two slashes, as Azure's own clients write it
    URI uri = uri("/keys/" + key.name() + "/" + key.version() + "/" + operation);
    String value = ENCODER.encodeToString(input);
    JsonObject body = new JsonObject();
    body.addProperty("alg", config.algorithm());
    body.addProperty("value", value);
    AzureErrors errors = new AzureErrors(config, key, operation, value);
    return result(ask(uri, body, errors), errors);
  }

  /** What an answer of 200 to wrapkey or unwrapkey gives. */
  static Result result(JsonObject answer, AzureErrors errors) {
    Matcher kid = KID.matcher(JsonHttp.text(answer, "kid"));
    String output = JsonHttp.text(answer, "value");
    if (output.isEmpty()
        || !kid.matches()
        || !kid.group("name").equalsIgnoreCase(errors.key().name())) {
      throw errors.notVault(200);
    }

    try {
      return new Result(DECODER.decode(output), kid.group("version"));
    } catch (IllegalArgumentException e) {
      throw errors.notVault(200);
    }
  }

  /** Asks with a token, and again with a new one where the vault does not accept the first. */
  private JsonObject ask(URI uri, JsonObject body, AzureErrors errors) {
    String keyId = errors.key().given();
    String token = login.token(keyId);
    JsonHttp.Answer answer = ask(uri, body, token, keyId);
    if (answer.status() == 401) {
      String renewed = login.renewed(keyId, token);
      if (!renewed.equals(token)) {
        token = renewed;
        answer = ask(uri, body, token, keyId);
      }
    }

    if (answer.status() != 200) {
      throw errors.hiding(token).of(answer);
    }

    return answer.body();
  }

  private JsonHttp.Answer ask(URI uri, JsonObject body, String token, String keyId) {
    return http.ask(keyId, uri, Map.of("Authorization", "Bearer " + token), body);
  }

  /** An entry of the list of versions. */
  static Version version(JsonElement value, AzureErrors errors) {
    JsonObject item = value.isJsonObject() ? value.getAsJsonObject() : new JsonObject();
    Matcher kid = KID.matcher(JsonHttp.text(item, "kid"));
    if (!kid.matches() || !(item.get("attributes") instanceof JsonObject attributes)) {
      throw errors.notVault(200);
    }

    return new Version(
        kid.group("version"),
        !(attributes.get("enabled") instanceof JsonPrimitive enabled)
            || !enabled.getAsString().equals("false"),
        JsonHttp.number(attributes, "created"));
  }

  /** The next page; only of the same vault, for the token goes with the request. */
  static URI next(JsonObject body, AzureErrors errors) {
    String link = JsonHttp.text(body, "nextLink");
    if (link.isEmpty()) {
      return null;
    }

    try {
      return HttpsAddress.parse(link)
          .filter(next -> HttpsAddress.isHttps(next) && next.getRawPath().startsWith("/"))
          .filter(next -> AzureConfig.origin(next).equals(errors.config().vault()))
          .map(next -> uri(errors.config(), next.getRawPath(), next.getRawQuery()))
          .orElseThrow(() -> errors.notVault(200));
    } catch (IllegalArgumentException e) { // a port out of range, say
      throw errors.notVault(200);
    }
  }

  private URI uri(String path) {
    return uri(config, path, API_VERSION);
  }

  private static URI uri(AzureConfig config, String path, String query) {
    return URI.create(config.vault() + path + "?" + query);
  }
}
