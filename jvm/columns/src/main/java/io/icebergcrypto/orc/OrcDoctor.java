package io.icebergcrypto.orc;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.parquet.ParquetDoctor;
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
   * @throws InvalidConfigurationException when keys or masks are set that do nothing, when a name
   *     or a value means nothing, or when the key provider does not start or lacks a key
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
    } else {
      OrcColumnKeys.checkKeys(settings, hadoop, keys, "ORC files");
    }

    return Map.of("keys", keys, "warnings", warnings(settings));
  }

  private static List<Map<String, String>> warnings(OrcSettings settings) {
    List<Map<String, String>> found = new ArrayList<>();
    if (!settings.encrypt().isEmpty()) {
      found.add(
          ParquetDoctor.warning(
              "ORC encrypts with AES-CTR: changes to data are not detected",
              "ORC offers nothing else. Where it matters, write Parquet files with keys for"
                  + " columns, or encrypted Iceberg tables."));
    }

    if (settings.plaintextWrites()) {
      found.add(
          ParquetDoctor.warning(
              OrcSettings.PLAINTEXT_WRITES + "=allow: a write without keys is plaintext",
              "Set it as an option of the writes that need it."));
    }

    return found;
  }
}
