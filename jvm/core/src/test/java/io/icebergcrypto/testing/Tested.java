package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * Says for docs/tested-versions.md on which servers tests ran, as tests/harness/used.py does for
 * Python's: in system properties, which JUnit's report has.
 */
final class Tested {
  private Tested() {}

  /** A server is in use, of this version. */
  static void server(String name, String version) {
    System.setProperty("tested." + name, version);
  }

  /** A server is in use, of the version of a jar in the folder of its jars. */
  static void server(String name, Path jars, String artifact) throws IOException {
    try (Stream<Path> all = Files.list(jars)) {
      all.map(jar -> jar.getFileName().toString())
          .filter(jar -> jar.matches(artifact + "-\\d.*"))
          .forEach(jar -> server(name, jar.replaceAll(artifact + "-|(-runner)?\\.jar", "")));
    }
  }
}
