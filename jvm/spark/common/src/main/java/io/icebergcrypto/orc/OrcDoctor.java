package io.icebergcrypto.orc;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.parquet.WrappedDataKeys;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** What is wrong with the settings of a session for keys in ORC files. */
public final class OrcDoctor {
  private OrcDoctor() {}

  /**
   * Examines settings, and has each master key that they name wrap and unwrap a trial key.
   *
   * @return null when the settings say nothing of keys; else {@code keys}: the master keys that
   *     were tried, and {@code warnings}: what is weaker than it could be, each a {@code problem}
   *     with a {@code hint}
   * @throws InvalidConfigurationException when keys or masks are set that do nothing, or a name or a
   *     value means nothing, or the key provider does not start
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  public static Map<String, Object> examine(Configuration hadoop) {
    OrcSettings settings = new OrcSettings(hadoop);
    OrcColumnKeys.checkRead(hadoop);
    if (!settings.concernKeys()) {
      return null;
    }

    settings.check("ORC files");
    List<String> keys = settings.keyIds();
    if (settings.isOurs()) {
      keys.forEach(new WrappedDataKeys(hadoop)::check);
    }

    return Map.of("keys", settings.isOurs() ? keys : List.of(), "warnings", warnings(settings));
  }

  private static List<Map<String, String>> warnings(OrcSettings settings) {
    List<Map<String, String>> found = new ArrayList<>();
    if (!settings.isOurs()) {
      found.add(
          warning(
              String.format(
                  "%s=%s is none of this project, so its keys were not tried",
                  OrcSettings.PROVIDER, settings.provider()),
              String.format(
                  "Set it to %s for the KMSs of this project.", OrcKeyProvider.NAME)));
    }

    if (!settings.encrypt().isEmpty()) {
      found.add(
          warning(
              "ORC encrypts with AES-CTR: nobody notices when data is changed",
              "ORC has nothing else. Where it matters, write Parquet files with keys for columns, or"
                  + " encrypted Iceberg tables."));
    }

    if (settings.plaintextWrites()) {
      found.add(
          warning(
              OrcSettings.PLAINTEXT_WRITES + "=allow: a write without keys is plaintext",
              "Set it as an option of the writes that need it."));
    }

    return found;
  }

  private static Map<String, String> warning(String problem, String hint) {
    return Map.of("problem", problem, "hint", hint);
  }
}
