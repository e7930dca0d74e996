package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.IcebergCryptoException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Hudi's own file of settings for all of its tables, at each place where Hudi looks for one. */
public final class HudiDefaults {
  private static final String NAME = "hudi-defaults.conf";
  private static final Path DEFAULT_FOLDER = Path.of("/etc/hudi/conf");

  private HudiDefaults() {}

  /**
   * Reads all such files on this machine.
   *
   * @param folder what the variable HUDI_CONF_DIR says; may be null
   * @throws IcebergCryptoException when there is one that cannot be read
   */
  public static Map<String, String> read(String folder) {
    Map<String, String> found = new LinkedHashMap<>();
    try {
      URL onClassPath = Thread.currentThread().getContextClassLoader().getResource(NAME);
      if (onClassPath != null) {
        read(onClassPath.openStream(), found);
      }

      for (Path file : files(folder)) {
        if (Files.exists(file)) {
          read(Files.newInputStream(file), found);
        }
      }
    } catch (IOException e) {
      throw new IcebergCryptoException(
          String.format("Hudi's %s cannot be read: %s", NAME, e),
          "It may have Hudi keep values in plaintext, so nothing was written. Allow reading it.",
          e);
    }

    return found;
  }

  private static List<Path> files(String folder) {
    List<Path> files = new ArrayList<>(List.of(DEFAULT_FOLDER.resolve(NAME)));
    Optional.ofNullable(folder).map(dir -> Path.of(dir, NAME)).ifPresent(files::add);
    return files;
  }

  /** As Hudi does: a name, white space or an equals sign, a value; or another file to include. */
  private static void read(InputStream file, Map<String, String> found) throws IOException {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] parts = line.trim().split("\\s*=\\s*|\\s+", 2);
        if (!parts[0].isEmpty() && !parts[0].startsWith("#")) {
          found.put(parts[0], parts.length > 1 ? parts[1] : "");
        }
      }
    }
  }
}
