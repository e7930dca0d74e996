package io.icebergcrypto.kms.hadoop;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.http.JsonHttp;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Hadoop KMS's REST interface: which of the servers is asked, and as whom. */
final class HadoopHttp {
  private final HadoopConfig config;
  private final HadoopErrors errors;
  private final URI[] servers;
  private final JsonHttp http;

  /** Which server is asked: the next one when this one fails, for the next attempt. */
  private final AtomicInteger current = new AtomicInteger();

  HadoopHttp(HadoopConfig config) {
    this.config = config;
    this.errors = new HadoopErrors(config);
    this.servers = config.servers();
    Path caFile = config.caFile() == null ? null : Path.of(config.caFile());
    this.http = new JsonHttp(config.toString(), config.timeLimit(), caFile);
  }

  /**
   * Makes one request of one server.
   *
   * @param operation what the KMS's access control lists call it
   * @param path behind {@code v1/}, with a query
   * @param body null: by GET
   * @throws IcebergCryptoException when the answer's status is not 200
   */
  JsonObject ask(String operation, String keyId, String path, JsonObject body) {
    int asked = current.get();
    try {
      JsonHttp.Answer answer = ask(servers[asked % servers.length], keyId, path, body);
      if (answer.status() != 200) {
        throw errors.of(answer, operation, keyId);
      }

      return answer.body();
    } catch (KmsUnavailableException e) {
      current.compareAndSet(asked, (asked + 1) % servers.length);
      throw e;
    }
  }

  /** The error for an answer of 200 that no Hadoop KMS returns. */
  IcebergCryptoException noHadoopKms(String operation, String keyId) {
    return errors.of(new JsonHttp.Answer(200, new JsonObject(), ""), operation, keyId);
  }

  private JsonHttp.Answer ask(URI server, String keyId, String path, JsonObject body) {
    String query = "";
    Map<String, String> headers = Map.of();
    if (config.user() != null) {
      query = "&user.name=" + URLEncoder.encode(config.user(), StandardCharsets.UTF_8);
    } else {
      HadoopLogin login = HadoopLogin.of(config, server, keyId);
      query = login.query();
      headers = login.headers();
    }

    return http.ask(keyId, URI.create(server + "/v1/" + path + query), headers, body);
  }
}
