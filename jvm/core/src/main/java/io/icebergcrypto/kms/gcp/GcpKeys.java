package io.icebergcrypto.kms.gcp;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.JsonHttp;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.CRC32C;

/**
 * The master keys of Google Cloud KMS, by its REST interface over the JDK's HTTP client.
 *
 * <p>Not by Google's client library for KMS: that one's messages are Protobuf, which
 * iceberg-gcp-bundle relocates, so one class file cannot be right both with and without the bundle
 * (Iceberg's client needs reflection for it); it also brings gRPC and Netty. What REST needs of
 * Google's code is the login alone, com.google.auth, which is small and which the bundle does not
 * relocate.
 *
 * <p>Checksums (CRC32C) go with everything sent and are checked on everything received; a key that
 * was damaged on its way counts as {@link KmsUnavailableException}, for the next attempt may get
 * through whole.
 */
final class GcpKeys implements MasterKeys {
  private final GcpConfig config;
  private final JsonHttp http;
  private final GcpCredentials credentials;

  GcpKeys(GcpConfig config) {
    this.config = config;
    this.http = new JsonHttp(config.toString(), config.timeLimit(), null);
    this.credentials = new GcpCredentials(config);
  }

  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    GcpKeyName name = GcpKeyName.parse(keyId);
    JsonObject request = new JsonObject();
    put(request, "plaintext", key);
    putAad(request, name);
    JsonObject answer = ask(name.asGiven(), "encrypt", request, keyId);
    byte[] ciphertext = bytes(config, answer, "ciphertext", keyId);
    if (!JsonHttp.isTrue(answer, "verifiedPlaintextCrc32c")
        || config.aad() != GcpConfig.Aad.NONE
            && !JsonHttp.isTrue(answer, "verifiedAdditionalAuthenticatedDataCrc32c")) {
      throw damaged(config, "did not confirm the checksum of what it was to wrap", keyId);
    }

    return ByteBuffer.wrap(ciphertext);
  }

  @Override
  public ByteBuffer unwrap(ByteBuffer wrapped, String keyId) {
    GcpKeyName name = GcpKeyName.parse(keyId);
    WrappedKey.refuseHeader(wrapped, "gcp", keyId);
    if (!wrapped.hasRemaining()) {
      throw new BadWrappedKeyException(
          String.format("A key wrapped under '%s' by %s is empty", keyId, config),
          "The table's metadata was changed or damaged: restore it.");
    }

    JsonObject request = new JsonObject();
    put(request, "ciphertext", KeyCache.copyOf(wrapped));
    putAad(request, name);
    JsonObject answer = ask(name.key(), "decrypt", request, keyId);
    return ByteBuffer.wrap(bytes(config, answer, "plaintext", keyId));
  }

  private JsonObject ask(String resource, String verb, JsonObject body, String keyId) {
    URI uri = URI.create(config.endpoint() + "/v1/" + resource + ":" + verb);
    JsonHttp.Answer answer = http.ask(keyId, uri, credentials.headers(uri, keyId), body);
    if (answer.status() == 401) {
      // the token was revoked, or expired earlier than it said: again with a new one
      answer = http.ask(keyId, uri, credentials.renewedHeaders(uri, keyId), body);
    }

    if (answer.status() != 200) {
      throw new GcpErrors(config, keyId).of(verb, answer);
    }

    return answer.body();
  }

  private void putAad(JsonObject request, GcpKeyName name) {
    String data =
        switch (config.aad()) {
          case NONE -> null;
          case KEY_ID -> name.key();
          case TABLE_UUID -> CallContext.requireTableUuid(GcpConfig.AAD + "=table-uuid");
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
  static byte[] bytes(GcpConfig config, JsonObject answer, String field, String keyId) {
    JsonElement value = answer.get(field);
    if (value == null || !value.isJsonPrimitive()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s answered for key '%s' without a %s: it is not Cloud KMS", config, keyId, field),
          "Check " + GcpConfig.ENDPOINT + ", and any proxy on the way there.");
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

    throw damaged(config, "answered with a " + field + " that does not fit its checksum", keyId);
  }

  private static KmsUnavailableException damaged(GcpConfig config, String what, String keyId) {
    return new KmsUnavailableException(
        String.format("%s %s (key '%s'): it was damaged in transit", config, what, keyId),
        "If it happens again, look for a proxy between here and Cloud KMS that changes requests.");
  }

  private static long crc32c(byte[] value) {
    CRC32C checksum = new CRC32C();
    checksum.update(value);
    return checksum.getValue();
  }
}
