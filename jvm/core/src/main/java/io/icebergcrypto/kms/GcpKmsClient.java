package io.icebergcrypto.kms;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsCaller;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.Settings;
import io.icebergcrypto.kms.gcp.GcpCredentials;
import io.icebergcrypto.kms.gcp.GcpErrors;
import io.icebergcrypto.kms.gcp.GcpKeyName;
import io.icebergcrypto.kms.http.JsonHttp;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in Google Cloud KMS: symmetric keys (purpose {@code ENCRYPT_DECRYPT}), named by their
 * full resource name.
 *
 * <p>A wrapped key is the ciphertext that Cloud KMS answers, byte for byte, as Iceberg's own {@code
 * GcpKeyManagementClient} stores it: each of the two unwraps what the other wrapped. The exception
 * is the user's choice: with {@code encryption.kms.gcp.additional-authenticated-data=key-id} Cloud
 * KMS authenticates the key's name (without a version) as additional data, with {@code table-uuid}
 * the table's UUID, and Iceberg's client, which sends none, cannot unwrap.
 *
 * <p>It speaks Cloud KMS's REST interface over the JDK's HTTP client, and not through Google's
 * client library for KMS: that one's messages are Protobuf, which iceberg-gcp-bundle relocates, so
 * one class file cannot be right both with and without the bundle (Iceberg's client needs
 * reflection for it); it also brings gRPC and Netty. What REST needs of Google's code is the login
 * alone, com.google.auth, which is small and which the bundle leaves at its place.
 *
 * <p>Checksums (CRC32C) go with everything sent and are checked on everything received; a key that
 * was damaged on its way counts as {@link KmsUnavailableException}, for the next attempt may get
 * through whole.
 *
 * <p>Also works as {@code encryption.kms-impl} under a stock catalog.
 */
public final class GcpKmsClient
    implements KeyManagementClient, AuthenticatedWrapping, TableBinding {
  private static final long serialVersionUID = 1L;

  public static final String ENDPOINT = "encryption.kms.gcp.endpoint";
  static final String CREDENTIALS_FILE = "encryption.kms.gcp.credentials-file";
  public static final String AAD = "encryption.kms.gcp.additional-authenticated-data";

  private static final String TYPE = "gcp";
  private static final String DEFAULT_ENDPOINT = "https://cloudkms.googleapis.com";
  private static final Pattern LOOPBACK_HTTP =
      Pattern.compile("http://(127\\.0\\.0\\.1|localhost|\\[::1])(:\\d+)?");
  private static final Pattern HTTPS = Pattern.compile("https://[A-Za-z0-9.-]+(:\\d+)?");

  /** What Cloud KMS authenticates with each wrapped key. */
  private enum Aad {
    NONE,
    KEY_ID,
    TABLE_UUID
  }

  private String endpoint;
  private String credentialsFile;
  private Aad aad = Aad.NONE;
  private long timeoutMs;
  private transient volatile JsonHttp http;
  private transient volatile GcpCredentials credentials;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(Map)}. */
  public GcpKmsClient() {}

  /**
   * Reads the properties. Nothing is asked of the network, and no credential is read.
   *
   * @param properties the catalog's properties
   * @throws InvalidConfigurationException when a property's value cannot be
   */
  @Override
  public void initialize(Map<String, String> properties) {
    Settings settings = new Settings(properties);
    this.endpoint = endpoint(settings.optional(ENDPOINT, DEFAULT_ENDPOINT));
    this.credentialsFile = settings.optional(CREDENTIALS_FILE);
    this.aad = aad(settings.optional(AAD, "none"));
    this.timeoutMs =
        settings.millis(KmsProperties.CALL_TIMEOUT_MS, KmsProperties.CALL_TIMEOUT_MS_DEFAULT);
    GcpCredentials.requireLibrary();
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    GcpKeyName name = GcpKeyName.parse(wrappingKeyId);
    JsonObject request = new JsonObject();
    put(request, "plaintext", KeyCache.copyOf(key));
    putAad(request, name);
    JsonObject answer = ask(name.asGiven(), "encrypt", request, wrappingKeyId);
    byte[] ciphertext = bytes(answer, "ciphertext", wrappingKeyId);
    if (!isTrue(answer, "verifiedPlaintextCrc32c")
        || aad != Aad.NONE && !isTrue(answer, "verifiedAdditionalAuthenticatedDataCrc32c")) {
      throw damaged("did not confirm the checksum of what it was to wrap", wrappingKeyId);
    }

    return ByteBuffer.wrap(ciphertext);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    GcpKeyName name = GcpKeyName.parse(wrappingKeyId);
    WrappedKey.refuseHeader(wrappedKey, TYPE, wrappingKeyId);
    if (!wrappedKey.hasRemaining()) {
      throw new BadWrappedKeyException(
          String.format("A key wrapped under '%s' by %s is empty", wrappingKeyId, this),
          "The table's metadata was changed or damaged: restore it.");
    }

    JsonObject request = new JsonObject();
    put(request, "ciphertext", KeyCache.copyOf(wrappedKey));
    putAad(request, name);
    JsonObject answer = ask(name.key(), "decrypt", request, wrappingKeyId);
    return ByteBuffer.wrap(bytes(answer, "plaintext", wrappingKeyId));
  }

  /** Whether the table's UUID is the additional authenticated data. */
  @Override
  public boolean bindsTable() {
    return aad == Aad.TABLE_UUID;
  }

  /** Yes: decrypt takes keys of purpose ENCRYPT_DECRYPT alone, which are symmetric. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  @Override
  public void close() {
    // the HTTP client's connections close by themselves; the token is forgotten here
    this.http = null;
    this.credentials = null;
  }

  /** The KMS and its address. */
  @Override
  public String toString() {
    return "Google Cloud KMS at " + endpoint;
  }

  private JsonObject ask(String resource, String verb, JsonObject body, String keyId) {
    URI uri = URI.create(endpoint + "/v1/" + resource + ":" + verb);
    JsonHttp.Answer answer = post(uri, credentials().headers(uri, keyId), body, keyId);
    if (answer.status() == 401) {
      // the token was revoked, or expired earlier than it said: once more with a new one
      answer = post(uri, credentials().renewedHeaders(uri, keyId), body, keyId);
    }

    if (answer.status() != 200) {
      throw new GcpErrors(toString(), keyId).of(answer, verb, aad != Aad.NONE);
    }

    return answer.body();
  }

  private JsonHttp.Answer post(
      URI uri, Map<String, String> headers, JsonObject body, String keyId) {
    try {
      return http().post(uri, headers, body);
    } catch (KmsUnavailableException e) {
      throw new KmsUnavailableException(e.problem() + " (for key '" + keyId + "')", e.hint(), e);
    } catch (InvalidConfigurationException e) {
      throw new InvalidConfigurationException(
          e.problem() + " (for key '" + keyId + "')", e.hint(), e);
    }
  }

  private void putAad(JsonObject request, GcpKeyName name) {
    String data =
        switch (aad) {
          case NONE -> null;
          case KEY_ID -> name.key();
          case TABLE_UUID -> KmsCaller.requireTableUuid(AAD + "=table-uuid");
        };
    if (data != null) {
      put(request, "additionalAuthenticatedData", data.getBytes(StandardCharsets.UTF_8));
    }
  }

  private static void put(JsonObject request, String field, byte[] value) {
    request.addProperty(field, Base64.getEncoder().encodeToString(value));
    // an int64 is a string in Protobuf's JSON
    request.addProperty(field + "Crc32c", Long.toString(crc32c(value)));
  }

  /** A field of bytes, found whole by the checksum beside it. */
  byte[] bytes(JsonObject answer, String field, String keyId) {
    JsonElement value = answer.get(field);
    if (value == null || !value.isJsonPrimitive()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s answered for key '%s' without a %s: it is not Cloud KMS", this, keyId, field),
          "Check " + ENDPOINT + ", and any proxy on the way there.");
    }

    try {
      byte[] found = Base64.getDecoder().decode(value.getAsString());
      JsonElement checksum = answer.get(field + "Crc32c");
      if (checksum != null && checksum.getAsLong() == crc32c(found)) {
        return found;
      }
    } catch (IllegalArgumentException | UnsupportedOperationException | IllegalStateException e) {
      // neither Base64 nor a number: damaged like a wrong checksum; not the cause, for it may
      // quote what it could not read
    }

    throw damaged("answered with a " + field + " that does not fit its checksum", keyId);
  }

  private static boolean isTrue(JsonObject answer, String field) {
    JsonElement value = answer.get(field);
    return value != null && value.isJsonPrimitive() && value.getAsBoolean();
  }

  private KmsUnavailableException damaged(String what, String keyId) {
    return new KmsUnavailableException(
        String.format("%s %s (key '%s'): it was damaged on its way", this, what, keyId),
        "If it happens again, look for a proxy between here and Cloud KMS that changes requests.");
  }

  private static long crc32c(byte[] value) {
    CRC32C checksum = new CRC32C();
    checksum.update(value);
    return checksum.getValue();
  }

  private static String endpoint(String value) {
    String address = value.endsWith("/") ? value.substring(0, value.length() - 1) : value;
    if (!HTTPS.matcher(address).matches() && !LOOPBACK_HTTP.matcher(address).matches()) {
      throw new InvalidConfigurationException(
          String.format("Property %s is not an address of Cloud KMS: '%s'", ENDPOINT, value),
          "Give https:// and a host, such as "
              + DEFAULT_ENDPOINT
              + ", or leave it out; http:// is for tests on 127.0.0.1 only.");
    }

    return address;
  }

  private static Aad aad(String value) {
    return switch (value) {
      case "key-id" -> Aad.KEY_ID;
      case "table-uuid" -> Aad.TABLE_UUID;
      case "none" -> Aad.NONE;
      default ->
          throw new InvalidConfigurationException(
              String.format("Property %s is neither key-id, table-uuid nor none: '%s'", AAD, value),
              "Leave it out (none), unless all who read the tables set it to the same.");
    };
  }

  private JsonHttp http() {
    JsonHttp here = http;
    if (here == null) {
      here = new JsonHttp(toString(), timeoutMs, null);
      this.http = here;
    }

    return here;
  }

  private GcpCredentials credentials() {
    GcpCredentials here = credentials;
    if (here == null) {
      synchronized (this) {
        here = credentials;
        if (here == null) {
          here = new GcpCredentials(toString(), credentialsFile, CREDENTIALS_FILE, timeoutMs);
          this.credentials = here;
        }
      }
    }

    return here;
  }
}
