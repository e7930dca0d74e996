package io.icebergcrypto.testing;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The beginning of a command line that runs a class, or a source file, in a JVM of its own. */
public final class JavaCommand {
  private JavaCommand() {}

  /** Of the Java that runs the tests; options, the class and its arguments are to be added. */
  public static List<String> of(String classPath) {
    return new ArrayList<>(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classPath));
  }
}
