package io.icebergcrypto.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.parquet.tables.ColumnChoices;
import io.icebergcrypto.parquet.tables.HudiTable;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.parquet.crypto.ParquetCipher;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.schema.MessageType;

/**
 * What a Hadoop configuration says of keys in Parquet files: Parquet's own properties {@code
 * parquet.encryption.*}, and ours, {@code iceberg-crypto.*}. Parquet ignores what is misspelt, and
 * would write plaintext; here it is refused.
 */
final class ParquetSettings {
  /** Whether files may be written without any key: {@code refuse} (default) or {@code allow}. */
  static final String PLAINTEXT_WRITES = "iceberg-crypto.parquet.plaintext-writes";

  /** Whether files without any key may be read: {@code allow} (default) or {@code refuse}. */
  static final String PLAINTEXT_READS = "iceberg-crypto.parquet.plaintext-reads";

  /** Whether files must be written so that any change of them is noticed (default: false). */
  static final String REQUIRE_INTEGRITY = "iceberg-crypto.parquet.require-integrity";

  /**
   * Whether Hudi tables may be written whose rows or values Hudi leaves plaintext in other files
   * than Parquet: {@code refuse} (default) or {@code allow}.
   */
  static final String HUDI_PLAINTEXT = HudiTable.PLAINTEXT;

  /** Names below these are checked. */
  private static final List<String> PREFIXES =
      List.of("parquet.encryption.", KmsProperties.HADOOP_PREFIX);

  /** Parquet's name for it is of version 1.14. */
  private static final String COMPLETE = "parquet.encryption.complete.columns";

  /** Which factory gives Parquet the keys of a file. */
  static final String FACTORY = EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME;

  /** The older name of the level, which Parquet heeds where that is not set. */
  private static final String ENABLE_SUMMARIES = "parquet.enable.summary-metadata";

  private static final List<String> NAMES =
      List.of(
          PLAINTEXT_WRITES,
          PLAINTEXT_READS,
          REQUIRE_INTEGRITY,
          HUDI_PLAINTEXT,
          PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME,
          PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME,
          COMPLETE,
          PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME,
          PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME,
          PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME,
          KeyToolkit.KMS_CLIENT_CLASS_PROPERTY_NAME,
          KeyToolkit.KMS_INSTANCE_ID_PROPERTY_NAME,
          KeyToolkit.KMS_INSTANCE_URL_PROPERTY_NAME,
          KeyToolkit.KEY_ACCESS_TOKEN_PROPERTY_NAME,
          KeyToolkit.DOUBLE_WRAPPING_PROPERTY_NAME,
          KeyToolkit.CACHE_LIFETIME_PROPERTY_NAME,
          KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME,
          KeyToolkit.DATA_KEY_LENGTH_PROPERTY_NAME,
          KeyToolkit.KEK_LENGTH_PROPERTY_NAME);

  /** Parquet takes a value that is neither true nor false for the default. */
  private static final List<String> FLAGS =
      List.of(
          REQUIRE_INTEGRITY,
          COMPLETE,
          PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME,
          KeyToolkit.DOUBLE_WRAPPING_PROPERTY_NAME,
          KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME);

  private static final String COLUMN_KEYS = PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME;
  private static final String TOKEN = KeyToolkit.KEY_ACCESS_TOKEN_PROPERTY_NAME;
  private static final long MILLIS = 1000;

  private final Configuration hadoop;
  private final PropertyReader reader;
  private final Map<String, String> ours;
  private final boolean plaintextReads;
  private final boolean plaintextWrites;
  private final boolean hudiPlaintext;
  private final ColumnKeys columns;

  /**
   * Reads a configuration.
   *
   * @throws InvalidConfigurationException when a name or a value means nothing, or two contradict
   *     each other
   */
  ParquetSettings(Configuration hadoop) {
    this.hadoop = hadoop;
    Map<String, String> found = SessionProperties.below(hadoop, PREFIXES);
    SessionProperties properties = new SessionProperties(found, NAMES);
    this.reader = properties.reader();
    this.ours = hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX);
    FLAGS.forEach(name -> reader.flag(name, false));
    this.plaintextWrites = properties.choice(PLAINTEXT_WRITES, "refuse", "allow");
    this.plaintextReads = !properties.choice(PLAINTEXT_READS, "allow", "refuse");
    this.hudiPlaintext = properties.choice(HUDI_PLAINTEXT, "refuse", "allow");
    String token = found.get(TOKEN);
    if (token != null && !token.equals(scope())) {
      throw tokenRefused();
    }

    String client = reader.optional(KeyToolkit.KMS_CLIENT_CLASS_PROPERTY_NAME);
    if (client != null && !client.equals(ParquetKmsClient.class.getName())) {
      throw new InvalidConfigurationException(
          String.format("%s=%s", KeyToolkit.KMS_CLIENT_CLASS_PROPERTY_NAME, client)
              + " is not this project's KMS client",
          "Leave it out. For your own KMS, set "
              + KmsProperties.HADOOP_PREFIX
              + KmsProperties.KMS_IMPL
              + ".");
    }

    this.columns = ColumnKeys.parse(text(COLUMN_KEYS));
  }

  static InvalidConfigurationException tokenRefused() {
    return new InvalidConfigurationException(
        "Property " + TOKEN + " would show a secret to anyone who can see the session",
        "Leave it out: the KMS's own properties name the variable or the file that has the login.");
  }

  /**
   * Refuses keys that do nothing, as no factory is set that would use them.
   *
   * @param files what the settings are for
   * @throws InvalidConfigurationException when keys are named, and there is no factory
   */
  static void checkFactory(Configuration hadoop, String files) {
    List<String> names =
        List.of(
            PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME,
            PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME,
            COLUMN_KEYS);
    boolean namesKeys =
        SessionProperties.below(hadoop, names).values().stream()
            .anyMatch(value -> !value.isBlank());
    if (namesKeys && hadoop.getTrimmed(FACTORY, "").isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Keys are named for %s, and %s is not set: files are plaintext", files, FACTORY),
          String.format(
              "Set %s=%s, as configure_spark(parquet_columns=...) does.",
              FACTORY, ParquetCryptoFactory.class.getName()));
    }
  }

  /**
   * Refuses settings without a KMS.
   *
   * @throws InvalidConfigurationException when they have none
   */
  void checkKms() {
    if (!KmsClients.isConfigured(KmsClients.ofKms(ours))) {
      throw new InvalidConfigurationException(
          FACTORY
              + " is set but no KMS is, so Parquet files with keys can be neither written nor"
              + " read",
          String.format(
              "Set %s%s and its settings, as configure_spark(parquet_columns=...) does.",
              KmsProperties.HADOOP_PREFIX, KmsProperties.KMS_TYPE));
    }
  }

  /** What Parquet's caches have these settings' keys by. */
  String scope() {
    return CacheScope.of(ours);
  }

  boolean plaintextReads() {
    return plaintextReads;
  }

  boolean plaintextWrites() {
    return plaintextWrites;
  }

  boolean hudiPlaintext() {
    return hudiPlaintext;
  }

  /** Whether any key is named: Parquet takes none for plaintext. */
  boolean namesKeys() {
    return !columns.isEmpty() || footerKey() != null || uniformKey() != null;
  }

  /** The master keys that are named. */
  List<String> keyIds() {
    return Stream.concat(Stream.of(uniformKey(), footerKey()), columns.keyIds().values().stream())
        .filter(Objects::nonNull)
        .map(ParquetKmsClient::keyId)
        .distinct()
        .toList();
  }

  /** What these say of the files of a table. */
  ColumnChoices choices() {
    String footer = plaintextFooter() ? null : footerKey() != null ? footerKey() : uniformKey();
    return new ColumnChoices(
        namesKeys(), columns.keyIds(), complete(), footer, keysBeside(), hudiPlaintext);
  }

  boolean plaintextFooter() {
    return reader.flag(PropertiesDrivenCryptoFactory.PLAINTEXT_FOOTER_PROPERTY_NAME, false);
  }

  /** Whether wrapped keys are in files beside the Parquet files. */
  boolean keysBeside() {
    return !reader.flag(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME, true);
  }

  private String footerKey() {
    return text(PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME);
  }

  private String uniformKey() {
    return text(PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME);
  }

  /** Null when it is empty: so an option of a write takes a key of the session's away. */
  private String text(String name) {
    String value = hadoop.getTrimmed(name, "");
    return value.isEmpty() ? null : value;
  }

  /** Whether columns without a key of their own have the footer's. */
  boolean complete() {
    return uniformKey() != null || reader.flag(COMPLETE, false);
  }

  /** Whether pages are encrypted with AES-CTR, which does not authenticate them. */
  boolean isCtr() {
    return ParquetCipher.AES_GCM_CTR_V1
        .name()
        .equals(reader.optional(PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME));
  }

  boolean requireIntegrity() {
    return reader.flag(REQUIRE_INTEGRITY, false);
  }

  /**
   * Refuses AES-CTR where integrity is required.
   *
   * @throws InvalidConfigurationException when it is
   */
  void checkIntegrity() {
    if (isCtr() && requireIntegrity()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s does not authenticate pages, and %s is true",
              PropertiesDrivenCryptoFactory.ENCRYPTION_ALGORITHM_PROPERTY_NAME,
              ParquetCipher.AES_GCM_CTR_V1,
              REQUIRE_INTEGRITY),
          "Leave the algorithm out: AES_GCM_V1 authenticates all of a file.");
    }
  }

  /**
   * Refuses pages of version 2: Parquet's Java writer leaves their levels in plaintext.
   *
   * @throws NotSupportedException when they are set
   */
  void checkPages() {
    String version = hadoop.getTrimmed(ParquetOutputFormat.WRITER_VERSION, "");
    if (version.equalsIgnoreCase(WriterVersion.PARQUET_2_0.name())
        || version.equalsIgnoreCase("v2")) {
      throw new NotSupportedException(
          String.format(
              "%s=%s: Parquet's Java writer leaves parts of such pages in plaintext: which values"
                  + " are null, and how long lists are",
              ParquetOutputFormat.WRITER_VERSION, version),
          "Leave it out: pages of version 1 are encrypted as a whole.");
    }
  }

  /**
   * Refuses the files in which Parquet's committer repeats the footers of all files of a folder in
   * plaintext, with the statistics of encrypted columns. Spark has none if neither property is set.
   *
   * @throws NotSupportedException when they are set
   */
  void checkSummaries() {
    String name = ParquetOutputFormat.JOB_SUMMARY_LEVEL;
    String value = hadoop.getTrimmed(name); // it decides, if both are set
    boolean isOff = "none".equalsIgnoreCase(value);
    if (value == null) {
      name = ENABLE_SUMMARIES;
      value = hadoop.getTrimmed(name);
      isOff = !"true".equalsIgnoreCase(value);
    }

    if (!isOff) {
      throw new NotSupportedException(
          String.format(
              "%s=%s: Parquet would write the footers of all files of the folder into _metadata, in"
                  + " plaintext, with the smallest and largest values of encrypted columns",
              name, value),
          "Leave it out: Spark does not need such files.");
    }
  }

  /** The columns of a file that have keys of their own. */
  ColumnKeys columnsIn(MessageType schema) {
    return columns.in(schema);
  }

  /**
   * These settings for a file without any of the columns that have keys, which Hudi or Delta writes
   * for itself: all of it has the footer's key.
   */
  ParquetSettings forOther(MessageType schema) {
    if (columns.isEmpty() || footerKey() == null || columns.namesOneOf(schema)) {
      return this;
    }

    Configuration own = new Configuration(hadoop);
    own.set(PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME, footerKey());
    own.unset(PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME);
    own.unset(COLUMN_KEYS);
    own.unset(COMPLETE);
    return new ParquetSettings(own);
  }

  /** These and all others of the file, which have the footer's. */
  ColumnKeys allColumnsIn(MessageType schema) {
    return columnsIn(schema).withOthers(schema, footerKey());
  }

  /** A configuration for Parquet's own factory, which keeps what it caches to these settings. */
  Configuration forParquet() {
    Configuration own = new Configuration(hadoop);
    own.set(KeyToolkit.KMS_CLIENT_CLASS_PROPERTY_NAME, ParquetKmsClient.class.getName());
    own.set(TOKEN, scope());
    // else a file would say which
    own.set(
        KeyToolkit.KMS_INSTANCE_ID_PROPERTY_NAME,
        own.getTrimmed(
            KeyToolkit.KMS_INSTANCE_ID_PROPERTY_NAME, KmsClient.KMS_INSTANCE_ID_DEFAULT));
    own.set(
        KeyToolkit.KMS_INSTANCE_URL_PROPERTY_NAME,
        own.getTrimmed(
            KeyToolkit.KMS_INSTANCE_URL_PROPERTY_NAME, KmsClient.KMS_INSTANCE_URL_DEFAULT));
    if (reader.optional(KeyToolkit.CACHE_LIFETIME_PROPERTY_NAME) == null) {
      own.setLong(KeyToolkit.CACHE_LIFETIME_PROPERTY_NAME, KmsClients.cacheTtlMs(ours) / MILLIS);
    }

    return own;
  }

  /** The same, for writing a file with these columns. */
  Configuration forParquet(ColumnKeys found) {
    Configuration own = forParquet();
    if (!found.isEmpty()) {
      own.set(COLUMN_KEYS, found.toString());
    }

    return own;
  }

  /** The names of all properties here, for a test. */
  static Stream<String> names() {
    return NAMES.stream();
  }
}
