package io.icebergcrypto.orc;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.Spelling;
import io.icebergcrypto.parquet.WrappedDataKeys;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.OrcConf;
import org.apache.orc.impl.ParserUtils;
import org.apache.orc.impl.ParserUtils.StringPosition;

/**
 * What a Hadoop configuration says of keys in ORC files: ORC's own properties {@code orc.encrypt},
 * {@code orc.mask} and {@code orc.key.provider}, and ours, {@code iceberg-crypto.*}.
 */
final class OrcSettings {
  /** Which columns are encrypted with which keys. */
  static final String ENCRYPT = OrcConf.ENCRYPTION.getAttribute();

  /** What readers without the keys see in place of them. */
  static final String MASK = OrcConf.DATA_MASK.getAttribute();

  /** Which provider has the keys. */
  static final String PROVIDER = OrcConf.KEY_PROVIDER.getAttribute();

  /** Whether files may be written without any key: {@code refuse} (default) or {@code allow}. */
  static final String PLAINTEXT_WRITES = "iceberg-crypto.orc.plaintext-writes";

  /** Whether files must be written so that any change of them is noticed (default: false). */
  static final String REQUIRE_INTEGRITY = "iceberg-crypto.orc.require-integrity";

  /** The length of files' keys in bits: 128 (default) or 256. */
  static final String DATA_KEY_LENGTH = "iceberg-crypto.orc.data-key-length";

  /** What a column shows whose key may not be used: {@code mask} (default), or {@code fail}. */
  static final String MISSING_KEYS = "iceberg-crypto.orc.missing-keys";

  /** What to write for {@link #ENCRYPT}. */
  static final String SYNTAX =
      "Write a key id, a colon, and its columns separated by commas; separate keys by semicolons."
          + " Put names with anything but letters, digits and underscores in backquotes:"
          + " `arn:aws:kms`:ssn,address.street.";

  private static final String QUOTED = "`(?:[^`]++|``)++`(?!`)";

  /** One key of {@link #ENCRYPT}, with its columns. */
  private static final Pattern KEYS =
      Pattern.compile(
          "(\\w++|Q):((?:[^`;:]++|Q)++)(?:;|$)".replace("Q", QUOTED),
          Pattern.UNICODE_CHARACTER_CLASS);

  /** One column of a key: the first part of its name, and those of what is in it. */
  private static final Pattern COLUMNS =
      Pattern.compile(
          "(\\w++|Q)(?:\\.(?:\\w++|Q))*+(?:,|$)".replace("Q", QUOTED),
          Pattern.UNICODE_CHARACTER_CLASS);

  private static final List<String> OURS =
      List.of(PLAINTEXT_WRITES, REQUIRE_INTEGRITY, DATA_KEY_LENGTH, MISSING_KEYS);

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
    this.properties =
        new SessionProperties(
            SessionProperties.below(hadoop, List.of(KmsProperties.HADOOP_PREFIX)), OURS);
    this.reader = properties.reader();
    plaintextWrites();
    requireIntegrity();
    missingKeysFail();
    algorithm();
    checkNames(List.of(ENCRYPT, MASK, PROVIDER));
  }

  /** ORC's own list of keys and columns; empty: none. */
  String encrypt() {
    return value(OrcConf.ENCRYPTION);
  }

  /**
   * The master keys that {@link #encrypt} names. Whether there are such columns shows only with the
   * columns of a write.
   *
   * @throws InvalidConfigurationException when it is not ORC's list
   */
  List<String> keyIds() {
    return parts(KEYS, encrypt()).stream().map(OrcSettings::firstName).distinct().toList();
  }

  /**
   * The columns of the whole file that {@link #encrypt} names, or names a part of; a number means
   * one, too.
   *
   * @throws InvalidConfigurationException when it is not ORC's list
   */
  List<String> columns() {
    return parts(KEYS, encrypt()).stream()
        .flatMap(key -> parts(COLUMNS, key.group(2)).stream())
        .map(OrcSettings::firstName)
        .distinct()
        .toList();
  }

  private List<MatchResult> parts(Pattern one, String list) {
    List<MatchResult> found = new ArrayList<>();
    Matcher parts = one.matcher(list);
    int end = 0;
    while (parts.lookingAt()) {
      found.add(parts.toMatchResult());
      end = parts.end();
      parts.region(end, list.length());
    }

    if (end < list.length()) {
      throw new InvalidConfigurationException(
          String.format("%s=%s cannot be read", ENCRYPT, encrypt()), SYNTAX);
    }

    return found;
  }

  private static String firstName(MatchResult part) {
    return ParserUtils.parseName(new StringPosition(part.group(1)));
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

  /** Whether anything here is about keys. */
  boolean concernKeys() {
    return isOurs() || !encrypt().isEmpty() || !mask().isEmpty();
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
   * Checks what does not depend on the columns of a write.
   *
   * @param target what is written, for errors
   * @throws InvalidConfigurationException when a property is misspelt, or two contradict each other
   */
  void check(String target) {
    checkNames();
    if (encrypt().isEmpty() && !mask().isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s is set for %s, and %s is not: nothing would be encrypted, nor masked",
              MASK, target, ENCRYPT),
          String.format("Name the columns in %s too.", ENCRYPT));
    }

    if (!encrypt().isEmpty() && requireIntegrity()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s would be encrypted with AES-CTR, which authenticates nothing, and %s is true",
              target, REQUIRE_INTEGRITY),
          "ORC offers nothing else. Write Parquet files with keys for columns, or an encrypted"
              + " Iceberg table.");
    }
  }

  /** Refuses names that ORC does not have. */
  void checkNames() {
    checkNames(List.of("orc."));
  }

  /** Refuses names below some prefixes that ORC does not have: case matters to it. */
  private void checkNames(List<String> prefixes) {
    List<String> known = new ArrayList<>();
    for (OrcConf property : OrcConf.values()) {
      known.add(property.getAttribute());
      if (property.getHiveConfName() != null) {
        known.add(property.getHiveConfName());
      }
    }

    for (String name : SessionProperties.below(hadoop, prefixes).keySet()) {
      if (!known.contains(name)) {
        throw new InvalidConfigurationException(
            "ORC has no property " + name,
            String.format(
                "Did you mean %s? A misspelt one does nothing, and the file could be plaintext.",
                Spelling.nearest(name, known)));
      }
    }
  }

  /** The names of all properties here, for a test. */
  static Stream<String> names() {
    return Stream.concat(Stream.of(ENCRYPT, MASK, PROVIDER), OURS.stream());
  }
}
