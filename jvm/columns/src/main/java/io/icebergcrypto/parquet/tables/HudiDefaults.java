package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.IcebergCryptoException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Hudi's own file of settings for all of its tables, at each place where Hudi looks for one. Which
 * of several counts differs between versions of Hudi and their class paths, so each of them does.
 */
public final class HudiDefaults {
  private static final String NAME = "hudi-defaults.conf";
  private static final String DEFAULT_FOLDER = "/etc/hudi/conf";

  private HudiDefaults() {}

  /**
   * Reads all such files.
   *
   * @param folder what the variable HUDI_CONF_DIR says; may be null
   * @return settings with their values; where files differ, all of these in one, which is not known
   *     to be safe. The metadata table is off only if each file says so: Hudi's own default is on.
   * @throws IcebergCryptoException when there is one that cannot be read
   */
  public static Map<String, String> read(String folder, Configuration hadoop) {
    List<Map<String, String>> files = new ArrayList<>();
    try {
      URL onClassPath = Thread.currentThread().getContextClassLoader().getResource(NAME);
      if (onClassPath != null) {
        files.add(read(onClassPath.openStream()));
      }

      readFrom(DEFAULT_FOLDER, hadoop, files);
      if (folder != null) {
        readFrom(folder, hadoop, files);
      }
    } catch (IOException | IllegalArgumentException e) { // of what is not a folder
      throw new IcebergCryptoException(
          String.format("Hudi's %s cannot be read: %s", NAME, e),
          "It may make Hudi keep values in plaintext, so nothing was written. Let this user read"
              + " it.",
          e);
    }

    Map<String, String> found = new LinkedHashMap<>();
    files.forEach(
        file -> file.forEach((name, value) -> found.merge(name, value, HudiSettings::both)));
    if (HudiSettings.turnMetadataOff(found)
        && !files.stream().allMatch(HudiSettings::turnMetadataOff)) {
      found.remove(HudiSettings.METADATA);
    }

    return found;
  }

  /** As Hudi does: a folder without a scheme is one of this machine. */
  private static void readFrom(String folder, Configuration hadoop, List<Map<String, String>> files)
      throws IOException {
    boolean isLocal = URI.create(folder).getScheme() == null;
    Path file = new Path((isLocal ? "file://" : "") + folder, NAME);
    FileSystem storage = file.getFileSystem(hadoop);
    if (storage.exists(file)) {
      files.add(read(storage.open(file)));
    }
  }

  /** As Hudi does: a name, white space or an equals sign, a value; or another file to include. */
  private static Map<String, String> read(InputStream file) throws IOException {
    Map<String, String> found = new LinkedHashMap<>();
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] parts = line.trim().split("\\s*=\\s*|\\s+", 2);
        if (!parts[0].isEmpty() && !parts[0].startsWith("#")) {
          found.put(parts[0], parts.length > 1 ? parts[1] : "");
        }
      }
    }

    return found;
  }
}
