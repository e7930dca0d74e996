package io.icebergcrypto.config;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.Spelling;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;

/**
 * Properties for files that are in no catalog: those of a session, of one write, or of a table of
 * Spark's own. What is misspelt is refused: the format's own library would ignore it, and write
 * plaintext.
 */
public final class SessionProperties {
  /** What the names of settings begin with that decide on the keys of Parquet files. */
  public static final List<String> OF_PARQUET =
      List.of("parquet.encryption.", "parquet.crypto.", KmsProperties.HADOOP_PREFIX);

  /** The names that all formats have: those of the KMS. */
  private static final List<String> OF_KMS =
      List.of(
          KmsProperties.HADOOP_PREFIX + KmsProperties.KMS_TYPE,
          KmsProperties.HADOOP_PREFIX + KmsProperties.KMS_IMPL,
          KmsProperties.HADOOP_PREFIX + EncryptionProperties.ALLOWED_KEY_IDS);

  /** What the names of a format's own begin with. */
  private static final List<String> FORMATS =
      Stream.of("parquet.", "hudi.", "orc.").map(KmsProperties.HADOOP_PREFIX::concat).toList();

  private final PropertyReader reader;

  /**
   * Checks the names.
   *
   * @param properties only those whose names are to be checked
   * @param names the names that a format knows; the KMS's are known
   * @throws InvalidConfigurationException when another one is there
   */
  public SessionProperties(Map<String, String> properties, List<String> names) {
    this.reader = new PropertyReader(properties);
    List<String> known = Stream.concat(OF_KMS.stream(), names.stream()).toList();
    for (String name : properties.keySet()) {
      if (!known.contains(name) && !isOfClient(name) && !isOfAnother(name, names)) {
        throw new InvalidConfigurationException(
            "There is no property " + name,
            String.format(
                "Did you mean %s? A misspelt one would do nothing, and the file could be"
                    + " plaintext.",
                Spelling.nearest(name, known)));
      }
    }
  }

  /** Whether it is one of a KMS's, whose names its client checks. */
  private static boolean isOfClient(String name) {
    return name.startsWith(KmsProperties.HADOOP_PREFIX + KmsProperties.PREFIX)
        || name.startsWith(KmsProperties.HADOOP_PREFIX)
            && !PropertyReader.isBelow(name, KmsProperties.HADOOP_PREFIX + "encryption.")
            && KmsProperties.isOfKms(name.substring(KmsProperties.HADOOP_PREFIX.length()));
  }

  /** Whether it is another format's, which checks it. */
  private static boolean isOfAnother(String name, List<String> names) {
    return FORMATS.stream()
        .filter(name::startsWith)
        .anyMatch(format -> names.stream().noneMatch(one -> one.startsWith(format)));
  }

  /** Whether a setting is one of these; case does not count. */
  public static boolean isOfParquet(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return OF_PARQUET.stream().anyMatch(lower::startsWith);
  }

  /**
   * A configuration in which a session's own values of some properties count.
   *
   * @param names of properties; those that the session does not set stay as they are
   * @return the same object if it has these values
   */
  public static Configuration withOwn(
      Configuration hadoop, Configuration session, List<String> names) {
    List<String> different =
        names.stream()
            .filter(name -> session.get(name) != null)
            .filter(name -> !session.get(name).equals(hadoop.get(name)))
            .toList();
    if (different.isEmpty()) {
      return hadoop;
    }

    Configuration both = new Configuration(hadoop);
    different.forEach(name -> both.set(name, session.get(name)));
    return both;
  }

  /**
   * What a configuration has below some prefixes, ignoring case: formats look for names in small
   * letters, and would ignore the others.
   *
   * @param prefixes in small letters
   */
  public static Map<String, String> below(Configuration hadoop, List<String> prefixes) {
    Map<String, String> found = new TreeMap<>();
    for (Map.Entry<String, String> property : hadoop) {
      String name = property.getKey();
      if (prefixes.stream().anyMatch(prefix -> PropertyReader.isBelow(name, prefix))) {
        found.put(name, hadoop.get(name));
      }
    }

    return found;
  }

  /** Their values. */
  public PropertyReader reader() {
    return reader;
  }

  /**
   * Whether the value is the second of two; it is the first by default.
   *
   * @throws InvalidConfigurationException when it is neither
   */
  public boolean choice(String name, String first, String second) {
    String value = reader.optional(name, first);
    if (!value.equals(first) && !value.equals(second)) {
      throw new InvalidConfigurationException(
          String.format("Property %s is neither %s nor %s: '%s'", name, first, second, value),
          String.format("Write %s or %s.", first, second));
    }

    return value.equals(second);
  }
}
