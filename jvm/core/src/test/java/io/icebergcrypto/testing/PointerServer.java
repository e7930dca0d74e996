package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** Servers of catalogs that keep a pointer only, each in a process of its own on 127.0.0.1. */
public enum PointerServer {
  /** AWS Glue, as moto has it, with the check of versions that moto lacks. */
  GLUE {
    @Override
    String start() throws IOException {
      return CheckingGlue.before(MotoServer.uri());
    }

    @Override
    Map<String, String> properties(String uri) {
      return Map.of("glue.endpoint", uri, "client.region", "eu-west-1");
    }
  },

  /** Nessie, in memory. */
  NESSIE {
    @Override
    String start() throws IOException {
      return NessieServer.start(Map.of());
    }

    @Override
    Map<String, String> properties(String uri) {
      return Map.of("uri", uri + "/api/v2", "ref", "main");
    }

    @Override
    public boolean isAvailable() {
      return NessieServer.isAvailable();
    }
  };

  private String uri;

  abstract String start() throws IOException;

  abstract Map<String, String> properties(String uri);

  /** Whether this machine can run it: Nessie's server needs Java 21. */
  public boolean isAvailable() {
    return true;
  }

  /** The properties of a stock catalog of this kind; the first call starts the server. */
  public synchronized Map<String, String> stock(Path folder) throws IOException {
    if (uri == null) {
      uri = start();
    }

    Map<String, String> all = new HashMap<>(properties(uri));
    all.put("type", name().toLowerCase(Locale.ROOT));
    all.put("warehouse", folder.resolve("warehouse").toString());
    all.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO");
    return all;
  }
}
