package io.icebergcrypto.testing;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** ministack, which imitates S3 and S3 Tables, in a process of its own that ends with this JVM. */
public final class MinistackServer {
  /** The bucket of all tables. */
  public static final String TABLE_BUCKET = "tables";

  private static String uri;

  private MinistackServer() {}

  /** The properties of a stock REST catalog on S3 Tables; the first call starts the server. */
  public static synchronized Map<String, String> stock() throws Exception {
    if (uri == null) {
      uri = start();
      ask("PUT", "/buckets", "s3tables", "{\"name\": \"" + TABLE_BUCKET + "\"}");
    }

    return Map.of(
        "type", "rest",
        "uri", uri + "/iceberg",
        "warehouse", "arn:aws:s3tables:us-east-1:000000000000:bucket/" + TABLE_BUCKET,
        "rest.auth.type", "sigv4",
        "rest.signing-name", "s3tables",
        "rest.signing-region", "us-east-1",
        "rest.access-key-id", "test",
        "rest.secret-access-key", "aws-secret-only-for-tests");
  }

  private static String start() throws IOException {
    int port = ServerProcess.freePort();
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    Path folder = Files.createTempDirectory("iceberg-crypto-ministack");
    Map<String, String> environment =
        Map.of(
            "BIND_HOST", "127.0.0.1",
            "GATEWAY_PORT", String.valueOf(port),
            "SERVICES", "s3,s3tables",
            "IOT_MTLS_ENABLED", "0", // it would listen on every address
            "TMPDIR", folder.toString());
    String program = root.resolve(".venv/bin/ministack").toString();
    return ServerProcess.listening(port, folder.resolve("log"), environment, program);
  }

  /** The list of the objects in the tables' bucket, as S3 gives it. */
  public static String objects() throws Exception {
    return ask("GET", "/" + TABLE_BUCKET + "?list-type=2", "s3", "");
  }

  /** It tells its services by whom a request is signed for, and checks no signature. */
  private static String ask(String method, String path, String service, String body)
      throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(uri + path))
            .header(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"
                    + service
                    + "/aws4_request, SignedHeaders=host, Signature=none")
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) {
      throw new IOException(path + ": " + answer.statusCode() + " " + answer.body());
    }

    return answer.body();
  }
}
