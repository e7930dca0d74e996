package io.icebergcrypto.io.cipher;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.testing.JavaCommand;
import io.icebergcrypto.testing.TestKeystore;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files are the same by Amazon Corretto Crypto Provider (ACCP) and by Java's own. */
class AesGcmTest {
  private static final Path ACCP = Path.of(System.getProperty("iceberg.crypto.accp"));

  @Test
  void filesAreTheSame(@TempDir Path folder) throws Exception {
    String platform = System.getProperty("os.name") + " " + System.getProperty("os.arch");
    assumeTrue(platform.equals("Linux amd64"), "the tests have the jar for linux-x86_64 alone");
    TestKeystore.create(folder, "k1");
    List<String> found =
        run(
                ACCP,
                System.getProperty("iceberg.crypto.plain-java"),
                List.of(),
                "tables",
                folder.toString())
            .lines()
            .filter(line -> line.startsWith(AccpProcess.MARK))
            .map(line -> line.substring(AccpProcess.MARK.length()))
            .toList();
    assertThat(found)
        .containsExactlyInAnyOrder(
            "first AmazonCorrettoCryptoProvider",
            "switched off: SunJCE, the same providers true",
            "another first: Another, the same true",
            "chosen: AmazonCorrettoCryptoProvider, before SunJCE, 1 more",
            "chosen: AmazonCorrettoCryptoProvider, before SunJCE, 1 more", // again
            "others the same true",
            "24 ciphertexts are the same: true",
            "16 streams are read: true",
            "byte 8 of a stream: TAMPERED",
            "byte 30 of a stream: TAMPERED",
            "byte 1048611 of a stream: TAMPERED",
            "byte 2097215 of a stream: TAMPERED",
            "12 avro tables are read: true",
            "12 parquet tables are read: true",
            // the data file, the manifest, the manifest list
            "avro, 1/3 of AGS1: TAMPERED",
            "avro, 2/3 of AGS1: TAMPERED",
            "avro, 1/3 of AGS1: TAMPERED",
            "avro, 2/3 of AGS1: TAMPERED",
            "avro, 1/3 of AGS1: TAMPERED",
            "avro, 2/3 of AGS1: TAMPERED",
            "parquet, 1/3 of PARE: org.apache.parquet.crypto.TagVerificationException",
            "parquet, 2/3 of PARE: org.apache.parquet.crypto.TagVerificationException",
            "parquet, 1/3 of AGS1: TAMPERED",
            "parquet, 2/3 of AGS1: TAMPERED",
            "parquet, 1/3 of AGS1: TAMPERED",
            "parquet, 2/3 of AGS1: TAMPERED");
  }

  @Test
  void withoutTheJarNothingChanges() {
    AesGcm.prepare();
    assertThat(AesGcm.provider()).isEqualTo("SunJCE");
  }

  /** As the jar of another platform. */
  @ParameterizedTest
  @ValueSource(strings = {"columns", "verification"})
  void aJarWhoseLibraryDoesNotLoadDoesNoHarm(String first, @TempDir Path folder) throws Exception {
    Path config = folder.resolve("log4j2.properties");
    try (InputStream own = AesGcmTest.class.getResourceAsStream("/log4j2.properties")) {
      String text = new String(own.readAllBytes(), UTF_8);
      Files.writeString(config, text.replace("rootLogger.level = off", "rootLogger.level = warn"));
    }

    String printed =
        run(
            withoutLibrary(folder.resolve("accp.jar")),
            System.getProperty("java.class.path"),
            List.of("-Dlog4j2.configurationFile=" + config),
            first);
    assertThat(printed.lines()).as(printed).contains(AccpProcess.MARK + "first SunJCE");
    assertThat(printed.lines().filter(line -> line.startsWith("WARN")))
        .as(printed)
        .singleElement(STRING)
        .contains("does not work", "UnsatisfiedLinkError", "SunJCE", "-Diceberg-crypto.use-accp");
  }

  private static Path withoutLibrary(Path broken) throws IOException {
    try (JarFile jar = new JarFile(ACCP.toFile());
        JarOutputStream out = new JarOutputStream(Files.newOutputStream(broken))) {
      for (JarEntry entry : jar.stream().toList()) {
        if (!entry.getName().matches("META-INF/.*\\.(MF|SF|RSA)")) {
          out.putNextEntry(new JarEntry(entry.getName()));
          try (InputStream in = jar.getInputStream(entry)) {
            out.write(entry.getName().endsWith(".so") ? new byte[100] : in.readAllBytes());
          }
        }
      }
    }

    return broken;
  }

  private static String run(Path jar, String classPath, List<String> options, String... arguments)
      throws IOException, InterruptedException {
    List<String> command = JavaCommand.of(jar + File.pathSeparator + classPath);
    command.addAll(options);
    command.add(AccpProcess.class.getName());
    command.addAll(List.of(arguments));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(printed).isZero();
    return printed;
  }
}
