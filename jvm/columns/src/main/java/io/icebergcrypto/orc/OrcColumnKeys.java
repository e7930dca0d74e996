package io.icebergcrypto.orc;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.kms.call.Causes;
import java.io.IOException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.DataMask;
import org.apache.orc.DataMaskDescription;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.CryptoUtils;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.impl.ParserUtils;

/**
 * Which columns of ORC files have which keys and masks, as ORC itself reads its properties; checked
 * before anything is written. ORC checks some of it too, in tasks, when an overwriting statement
 * has deleted what was there; the rest it ignores.
 */
public final class OrcColumnKeys {
  /** Providers of its own, which are there. */
  private static final Set<String> OF_ORC = Set.of("hadoop", "memory");

  private final OrcSettings settings;
  private final Configuration hadoop;
  private final String target;
  private final TypeDescription schema;
  private final Set<String> keyIds = new TreeSet<>();

  private OrcColumnKeys(Configuration hadoop, String target, TypeDescription schema) {
    this.settings = new OrcSettings(hadoop);
    this.hadoop = hadoop;
    this.target = target;
    this.schema = schema;
  }

  /**
   * Checks what would be written, and that the key provider wraps with its keys, if the settings
   * have anything to do with keys.
   *
   * @param hadoop with the options of the write
   * @param target the folder that is written, for errors
   * @param schema ORC's, of the files
   * @throws PlaintextException when no key is named, and plaintext is not allowed
   * @throws InvalidConfigurationException when a property is misspelt or wrong, or a column is not
   *     in the files
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  public static void checkWrite(Configuration hadoop, String target, String schema) {
    OrcSettings settings = new OrcSettings(hadoop);
    if (settings.concernKeys()) {
      new OrcColumnKeys(hadoop, target, TypeDescription.fromString(schema)).check();
    }
  }

  /**
   * Settings of a write into a table, of which those that the session sets itself count where they
   * are stricter: whoever may alter the table could turn encryption off.
   *
   * @param ofTable with the options that the table has
   * @return the table's if none is laxer
   */
  public static Configuration stricter(Configuration ofTable, Configuration session) {
    List<String> strict = new ArrayList<>();
    OrcSettings own = new OrcSettings(session);
    if (own.isOurs() && !own.plaintextWrites()) {
      strict.add(OrcSettings.PLAINTEXT_WRITES);
      if (new OrcSettings(ofTable).encrypt().isEmpty()) {
        strict.add(OrcSettings.PROVIDER); // otherwise the table's is the one that has the keys
      }
    }

    if (own.requireIntegrity()) {
      strict.add(OrcSettings.REQUIRE_INTEGRITY);
    }

    return SessionProperties.withOwn(ofTable, session, strict);
  }

  /**
   * Checks names and values of a session's settings, which may be for other files than those that
   * are written.
   *
   * @throws InvalidConfigurationException when a property is misspelt or wrong
   */
  public static void checkSession(Configuration hadoop) {
    OrcSettings settings = new OrcSettings(hadoop);
    if (settings.concernKeys()) {
      settings.checkNames();
      settings.keyIds();
      refuseEmptyList(OrcSettings.ENCRYPT, settings.encrypt());
    }
  }

  /**
   * The columns with keys, or with such in them, among those that are there: the settings of a
   * session may be meant for other files.
   *
   * @param hadoop with the options of a write or a table
   * @param schema ORC's, of the files
   * @throws InvalidConfigurationException when a property means nothing for any file
   */
  public static Set<String> keyed(Configuration hadoop, String schema) {
    List<String> named = new OrcSettings(hadoop).columns();
    if (named.isEmpty()) {
      return Set.of();
    }

    TypeDescription files = TypeDescription.fromString(schema);
    List<String> names = files.getFieldNames();
    return IntStream.range(0, names.size())
        .filter(
            i ->
                named.contains(names.get(i))
                    || named.stream().anyMatch(name -> isNumber(name, files.getChildren().get(i))))
        .mapToObj(names::get)
        .collect(Collectors.toSet());
  }

  /** Whether a session reads columns with keys, and not their masks. */
  public static boolean opens(Configuration hadoop) {
    return new OrcSettings(hadoop).isOurs();
  }

  /** Whether a name is ORC's number of a column, of one in it, or of all of a file: 0. */
  private static boolean isNumber(String name, TypeDescription column) {
    if (!name.matches("[0-9]{1,9}")) {
      return false;
    }

    int id = Integer.parseInt(name);
    return id == 0 || column.getId() <= id && id <= column.getMaximumId();
  }

  /**
   * Checks that there is a key provider, and that it is this session's. ORC has one for all of a
   * JVM, and reads without end if it has none.
   *
   * @throws InvalidConfigurationException when it is not
   * @throws IcebergCryptoException when it does not start
   */
  public static void checkRead(Configuration hadoop) {
    OrcSettings settings = new OrcSettings(hadoop);
    if (!OF_ORC.contains(settings.provider())) {
      provider(settings, hadoop);
    }
  }

  /**
   * Checks a write by Hive's own writer, which ignores ORC's properties of keys: its files would be
   * plaintext.
   *
   * @param target what is written, for errors
   * @throws NotSupportedException when there are any
   */
  public static void checkHiveWrite(Configuration hadoop, String target) {
    OrcSettings settings = new OrcSettings(hadoop);
    if (settings.concernKeys() && !settings.plaintextWrites()) {
      throw new NotSupportedException(
          String.format(
              "ORC files of %s would be plaintext: Hive's own writer writes them", target),
          String.format(
              "Have Spark write them: with spark.sql.orc.impl=native and"
                  + " spark.sql.hive.convertMetastoreOrc=true, or into a table created with USING"
                  + " orc. To write plaintext, set %s=allow in a session of its own"
                  + " (spark.newSession()).",
              OrcSettings.PLAINTEXT_WRITES));
    }
  }

  private void check() {
    settings.check(target);
    if (settings.encrypt().isEmpty()) {
      checkPlaintext();
      return;
    }

    annotate();
    visit(schema, null);
    if (keyIds.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("%s=%s names no column", OrcSettings.ENCRYPT, settings.encrypt()),
          OrcSettings.SYNTAX);
    }

    checkKeys(settings, hadoop, keyIds, target);
  }

  private void checkPlaintext() {
    if (settings.isOurs() && !settings.plaintextWrites()) {
      throw new PlaintextException(
          String.format("%s would be plaintext: no key is named for it", target),
          String.format(
              "Set %s for the session or as an option of the write or of the table. To write"
                  + " plaintext, set %s=allow as an option of that write; into a table that exists,"
                  + " in a session of its own (spark.newSession()).",
              OrcSettings.ENCRYPT, OrcSettings.PLAINTEXT_WRITES));
    }
  }

  private void annotate() {
    refuseEmptyList(OrcSettings.ENCRYPT, settings.encrypt());
    refuseEmptyList(OrcSettings.MASK, settings.mask());
    try {
      schema.annotateEncryption(settings.encrypt(), settings.mask());
    } catch (IllegalArgumentException e) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s%s does not fit the columns of %s: %s",
              OrcSettings.ENCRYPT,
              settings.encrypt(),
              settings.mask().isEmpty() ? "" : ", " + OrcSettings.MASK + "=" + settings.mask(),
              target,
              e.getMessage()),
          OrcSettings.SYNTAX
              + " Case matters. A column that the table is partitioned by is not in its files: its"
              + " values are in the names of folders, in plaintext. Nothing was written.",
          e);
    }

    for (String name : schema.getFieldNames()) {
      if (name.matches("[0-9]+")) {
        throw new InvalidConfigurationException(
            String.format("Column '%s' of %s has a number as its name", name, target),
            String.format(
                "ORC would take it for the number of another column in %s: rename it.",
                OrcSettings.ENCRYPT));
      }
    }
  }

  /** ORC takes a key without columns for none. */
  private static void refuseEmptyList(String property, String list) {
    if (list.endsWith(":")) {
      throw new InvalidConfigurationException(
          String.format("%s=%s names no column at its end", property, list), OrcSettings.SYNTAX);
    }
  }

  /**
   * Collects keys, and refuses what ORC does not take, or ignores.
   *
   * @param above the column around this one that has a key; null: none has
   */
  private void visit(TypeDescription type, TypeDescription above) {
    String keyId = type.getAttributeValue(TypeDescription.ENCRYPT_ATTRIBUTE);
    if (keyId != null && above != null) {
      throw new InvalidConfigurationException(
          String.format(
              "Column '%s' of %s has two keys: '%s', and '%s' of '%s', which it is in",
              type.getFullFieldName(),
              target,
              keyId,
              above.getAttributeValue(TypeDescription.ENCRYPT_ATTRIBUTE),
              above.getFullFieldName()),
          "Name one of the two in " + OrcSettings.ENCRYPT + ".");
    }

    TypeDescription encrypted = keyId == null ? above : type;
    String mask = type.getAttributeValue(TypeDescription.MASK_ATTRIBUTE);
    if (mask != null) {
      checkMask(type, mask, encrypted);
    }

    if (keyId != null) {
      keyIds.add(keyId);
    }

    if (type.getChildren() != null) {
      type.getChildren().forEach(child -> visit(child, encrypted));
    }
  }

  /** The third parameter of redact says which characters or digits stay as they are. */
  private void refuseRange(TypeDescription type, String mask) {
    DataMaskDescription parsed = ParserUtils.buildMaskDescription(mask);
    if (List.of(RedactAny.ORCS, RedactAny.NAME).contains(parsed.getName())
        && parsed.getParameters().length > 2) {
      throw new InvalidConfigurationException(
          String.format(
              "Mask '%s' of column '%s' of %s has a range that it leaves as it is: its masked copy"
                  + " would be partly plaintext",
              mask, type.getFullFieldName(), target),
          "Leave the range, its third parameter, out.");
    }
  }

  private void checkMask(TypeDescription type, String mask, TypeDescription encrypted) {
    if (encrypted == null) {
      throw new InvalidConfigurationException(
          String.format(
              "Column '%s' of %s has mask '%s' and no key: it would be plaintext, and not masked",
              type.getFullFieldName(), target, mask),
          String.format("Name it in %s, or leave its mask out.", OrcSettings.ENCRYPT));
    }

    DataMask made;
    try {
      made =
          DataMask.Factory.build(
              ParserUtils.buildMaskDescription(mask), type, OrcColumnKeys::maskOf);
    } catch (RuntimeException e) { // numbers and dates among a mask's parameters, too
      throw new InvalidConfigurationException(
          String.format(
              "Mask '%s' of column '%s' cannot be created: %s",
              mask, type.getFullFieldName(), e.getMessage()),
          "Use nullify, redact, sha256 or " + RedactAny.NAME + ".",
          e);
    }

    refuseRange(type, mask);
    String left;
    try {
      left = MaskTrial.run(made, type);
    } catch (RuntimeException e) {
      throw new InvalidConfigurationException(
          String.format(
              "Mask '%s' fails on column '%s' of %s, of type %s: %s",
              mask, type.getFullFieldName(), target, type, e),
          mask.startsWith(RedactAny.ORCS)
              ? String.format(
                  "ORC's %s works neither on text nor on short decimals: write %s.",
                  RedactAny.ORCS, RedactAny.NAME)
              : "Use another mask.",
          e);
    }

    if (left != null) {
      throw new InvalidConfigurationException(
          String.format(
              "Mask '%s' leaves %s of column '%s' of %s as they are: its masked copy would be"
                  + " plaintext",
              mask, left, type.getFullFieldName(), target),
          String.format(
              "Where %s has an underscore, nothing is replaced: write another character, or use"
                  + " nullify. Nothing was written.",
              RedactAny.NAME));
    }
  }

  private static DataMaskDescription maskOf(TypeDescription type) {
    String mask = type.getAttributeValue(TypeDescription.MASK_ATTRIBUTE);
    return mask == null ? null : ParserUtils.buildMaskDescription(mask);
  }

  /**
   * As a writer will: makes one local key for each master key.
   *
   * @throws InvalidConfigurationException when the key provider cannot
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  static void checkKeys(
      OrcSettings settings, Configuration hadoop, Collection<String> keyIds, String target) {
    KeyProvider provider = provider(settings, hadoop);
    for (String keyId : keyIds) {
      try {
        provider.createLocalKey(provider.getCurrentKeyVersion(keyId));
      } catch (IcebergCryptoException e) {
        throw e.withHint("Nothing was written to " + target + ".");
      } catch (IOException | RuntimeException e) {
        throw new InvalidConfigurationException(
            String.format(
                "Key provider '%s' (%s) has no key '%s', or cannot use it, so %s cannot be"
                    + " encrypted: %s",
                settings.provider(), OrcSettings.PROVIDER, keyId, target, e),
            String.format(
                "Set %s=%s for the KMSs of this project, or configure that provider.",
                OrcSettings.PROVIDER, OrcKeyProvider.NAME),
            e);
      }
    }
  }

  private static KeyProvider provider(OrcSettings settings, Configuration hadoop) {
    KeyProvider provider;
    try {
      provider = CryptoUtils.getKeyProvider(hadoop, new SecureRandom());
    } catch (IOException | RuntimeException e) {
      throw Causes.typed(e).orElseGet(() -> unusable(settings, "does not start: " + e, e));
    }

    if (provider == null) {
      throw unusable(settings, "is not known to ORC", null);
    }

    if (provider instanceof OrcKeyProvider ours) {
      ours.checkScope(settings);
    }

    return provider;
  }

  private static IcebergCryptoException unusable(
      OrcSettings settings, String what, Exception cause) {
    return new InvalidConfigurationException(
        String.format("Key provider %s=%s %s", OrcSettings.PROVIDER, settings.provider(), what),
        String.format(
            "Set it to %s, for the KMSs of this project, or leave it out.", OrcKeyProvider.NAME),
        cause);
  }
}
