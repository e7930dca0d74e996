package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;

/** What is wrong with the settings of a session for keys in Parquet files. */
public final class ParquetDoctor {
  private ParquetDoctor() {}

  /**
   * Examines settings, and has each master key that they name wrap and unwrap a trial key.
   *
   * @return null when the settings say nothing of keys; else {@code keys}: the master keys that
   *     were tried, and {@code warnings}: what is weaker than it could be, each a {@code problem}
   *     with a {@code hint}
   * @throws InvalidConfigurationException when keys are set that do nothing, or a name or a value
   *     means nothing
   * @throws NotSupportedException when every write would be refused
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  public static Map<String, Object> examine(Configuration hadoop) {
    ParquetSettings settings = new ParquetSettings(hadoop);
    String factory = hadoop.getTrimmed(ParquetSettings.FACTORY, "");
    if (factory.isEmpty()) {
      ParquetSettings.checkFactory(hadoop, "Parquet files");
      return null;
    }

    Map<String, Object> found = new LinkedHashMap<>();
    if (!ParquetCryptoFactory.isSet(hadoop)) {
      found.put("keys", List.of());
      found.put(
          "warnings",
          List.of(
              warning(
                  ParquetSettings.FACTORY + " is " + factory + ", which is unknown to this project",
                  "Parquet's own takes a misspelt property or a missing key for no encryption: set"
                      + " "
                      + ParquetCryptoFactory.class.getName()
                      + ".")));
      return found;
    }

    settings.checkKms();
    settings.checkIntegrity();
    settings.checkSummaries();
    if (settings.namesKeys()) {
      settings.checkPages();
    }

    List<String> keys = settings.keyIds();
    keys.forEach(new WrappedDataKeys(hadoop)::check);
    found.put("keys", keys);
    found.put("warnings", warnings(settings));
    return found;
  }

  private static List<Map<String, String>> warnings(ParquetSettings settings) {
    List<Map<String, String>> found = new ArrayList<>();
    if (settings.isCtr()) {
      found.add(
          warning(
              PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME
                  + "=AES_GCM_CTR_V1: changes to pages are not detected",
              "Leave it out: AES_GCM_V1 authenticates all of a file."));
    }

    if (settings.plaintextFooter()) {
      found.add(
          warning(
              PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME
                  + "=true: schema, row counts and key ids can be read",
              "Leave it out, unless readers without keys need the schema."));
    }

    if (settings.namesKeys() && !settings.complete()) {
      found.add(
          warning(
              "columns that are not named are plaintext",
              "Set parquet.encryption.complete.columns=true: they then have the footer's key."));
    }

    if (settings.plaintextWrites()) {
      found.add(
          warning(
              ParquetSettings.PLAINTEXT_WRITES + "=allow: a write without keys is plaintext",
              "Set it as an option of the writes that need it."));
    }

    if (settings.hudiPlaintext()) {
      found.add(
          warning(
              ParquetSettings.HUDI_PLAINTEXT + "=allow: Hudi's logs and indexes are plaintext",
              "It counts for all Hudi tables of the application: start Spark without it where none"
                  + " needs it."));
    }

    return found;
  }

  /** A warning of a doctor. */
  public static Map<String, String> warning(String problem, String hint) {
    return Map.of("problem", problem, "hint", hint);
  }
}
