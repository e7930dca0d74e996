package io.icebergcrypto.orc;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.parquet.WrappedDataKeys;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.OrcConf;

/**
 * What a Hadoop configuration says of keys in ORC files: ORC's own properties {@code orc.encrypt},
 * {@code orc.mask} and {@code orc.key.provider}, and ours, {@code iceberg-crypto.*}.
 */
final class OrcSettings {
  /** Which columns are encrypted with which keys. */
  static final String ENCRYPT = OrcConf.ENCRYPTION.getAttribute();

  /** What readers without the keys see in place of them. */
  static final String MASK = OrcConf.DATA_MASK.getAttribute();

  /** Who has the keys. */
  static final String PROVIDER = OrcConf.KEY_PROVIDER.getAttribute();

  /** Whether files may be written without any key: {@code refuse} (default) or {@code allow}. */
  static final String PLAINTEXT_WRITES = "iceberg-crypto.orc.plaintext-writes";

  /** Whether files must be written so that any change of them is noticed (default: false). */
  static final String REQUIRE_INTEGRITY = "iceberg-crypto.orc.require-integrity";

  /** The length of files' keys in bits: 128 (default) or 256. */
  static final String DATA_KEY_LENGTH = "iceberg-crypto.orc.data-key-length";

  /** What a column shows whose key may not be used: {@code mask} (default), or {@code fail}. */
  static final String MISSING_KEYS = "iceberg-crypto.orc.missing-keys";

  private static final List<String> OURS =
      List.of(PLAINTEXT_WRITES, REQUIRE_INTEGRITY, DATA_KEY_LENGTH, MISSING_KEYS);

  /** Names below these are checked. */
  private static final List<String> PREFIXES =
      List.of("iceberg-crypto.orc.", KmsProperties.HADOOP_PREFIX + "encryption.");

  private final Configuration hadoop;
  private final SessionProperties properties;
  private final PropertyReader reader;

  /**
   * Reads a configuration.
   *
   * @throws InvalidConfigurationException when a name or a value means nothing
   */
  OrcSettings(Configuration hadoop) {
    this.hadoop = hadoop;
    Map<String, String> found = new TreeMap<>();
    for (String prefix : PREFIXES) {
      hadoop.getPropsWithPrefix(prefix).forEach((name, v) -> found.put(prefix + name, v));
    }

    this.properties = new SessionProperties(found, OURS);
    this.reader = properties.reader();
    plaintextWrites();
    requireIntegrity();
    missingKeysFail();
    algorithm();
  }

  /** ORC's own list of keys and columns; empty: none. */
  String encrypt() {
    return value(OrcConf.ENCRYPTION);
  }

  /** ORC's own list of masks and columns; empty: none. */
  String mask() {
    return value(OrcConf.DATA_MASK);
  }

  String provider() {
    return value(OrcConf.KEY_PROVIDER);
  }

  private String value(OrcConf property) {
    String value = property.getString(hadoop);
    return value == null ? "" : value.trim();
  }

  /** Whether our key provider is the one that ORC asks. */
  boolean isOurs() {
    return OrcKeyProvider.isNamedBy(provider());
  }

  boolean plaintextWrites() {
    return properties.choice(PLAINTEXT_WRITES, "refuse", "allow");
  }

  boolean requireIntegrity() {
    return reader.flag(REQUIRE_INTEGRITY, false);
  }

  boolean missingKeysFail() {
    return properties.choice(MISSING_KEYS, "mask", "fail");
  }

  EncryptionAlgorithm algorithm() {
    return properties.choice(DATA_KEY_LENGTH, "128", "256")
        ? EncryptionAlgorithm.AES_CTR_256
        : EncryptionAlgorithm.AES_CTR_128;
  }

  /** A text that is the same for those who may share a key provider. */
  String scope() {
    return String.join(
        "-",
        new WrappedDataKeys(hadoop).scope(),
        algorithm().name(),
        missingKeysFail() ? "fail" : "mask");
  }

  /**
   * Refuses names below {@code orc.} that ORC does not have.
   *
   * @throws InvalidConfigurationException when there is one
   */
  void checkNames() {
    List<String> known = new ArrayList<>();
    for (OrcConf property : OrcConf.values()) {
      known.add(property.getAttribute());
      if (property.getHiveConfName() != null) {
        known.add(property.getHiveConfName());
      }
    }

    for (String name : hadoop.getPropsWithPrefix("orc.").keySet()) {
      if (!known.contains("orc." + name)) {
        throw new InvalidConfigurationException(
            "ORC has no property orc." + name,
            String.format(
                "Did you mean %s? A misspelt one does nothing, and the file could be plaintext.",
                PropertyNames.nearest("orc." + name, known)));
      }
    }
  }

  /** The names of all properties here, for a test. */
  static Stream<String> names() {
    return Stream.concat(Stream.of(ENCRYPT, MASK, PROVIDER), OURS.stream());
  }
}
