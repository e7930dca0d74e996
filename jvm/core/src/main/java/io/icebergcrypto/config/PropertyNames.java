package io.icebergcrypto.config;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyTable;
import io.icebergcrypto.kms.config.Spelling;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.iceberg.CatalogProperties;

/**
 * The names below {@code encryption.} that mean something. Any other is refused: Iceberg keeps a
 * misspelt property and does nothing about it, and the table is plaintext.
 */
public final class PropertyNames {
  private static final String PREFIX = "encryption.";

  /** {@link KmsProperties} checks the names below this one. */
  private static final String KMS_PREFIX = "encryption.kms.";

  /** The catalog properties. */
  static final List<String> OF_CATALOGS =
      Stream.of("catalog", "kms", "rules")
          .flatMap(section -> PropertyTable.names(section).stream())
          .filter(name -> name.startsWith(PREFIX) && !name.startsWith(KMS_PREFIX))
          .toList();

  /** How far from a known name a misspelt one is. */
  private static final int SLIPS = 3;

  /** What people write for {@code encryption.key-id}. */
  private static final List<String> SHORT_KEY_IDS =
      List.of("key-id", "encryption-key", "encrypt.key-id", "kms.key-id", "master-key-id");

  private PropertyNames() {}

  /** Whether a property of a table is about encryption, or was meant to be. */
  public static boolean isOfEncryption(String name) {
    return name.toLowerCase(Locale.ROOT).startsWith(PREFIX);
  }

  /** What properties are set on, and which. */
  private enum Owner {
    CATALOG(OF_CATALOGS),
    TABLE(EncryptionProperties.OF_TABLES),
    NAMESPACE(List.of(EncryptionProperties.KEY_ID));

    private final List<String> names;

    Owner(List<String> names) {
      this.names = names;
    }

    private boolean owns(String name) {
      return names.contains(name)
          || this == CATALOG && name.startsWith(KMS_PREFIX)
          || this == TABLE && (isOwn(name) || name.startsWith(ValueKeyProperties.PREFIX));
    }

    private String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** Whether this is a table property that this catalog sets by itself. */
  private static boolean isOwn(String name) {
    return name.equals(EncryptionProperties.METADATA_MAC)
        || name.equals(EncryptionProperties.FORMER_KEY_ID)
        || EncryptionProperties.OF_PLAINTEXT.contains(name);
  }

  /**
   * Checks the names of a catalog's properties, and of those that it gives to new tables.
   *
   * @throws InvalidConfigurationException when one means nothing
   */
  static void checkCatalog(Map<String, String> properties) {
    for (String name : properties.keySet()) {
      String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
      String prefix =
          Stream.of(CatalogProperties.TABLE_DEFAULT_PREFIX, CatalogProperties.TABLE_OVERRIDE_PREFIX)
              .filter(lower::startsWith)
              .findFirst()
              .orElse(null);
      if (prefix == null) {
        check(Owner.CATALOG, name, lower, true);
      } else {
        check(Owner.TABLE, name, name.substring(prefix.length()), true);
      }
    }
  }

  /**
   * Checks the names of a table's properties that are new or changed.
   *
   * @throws InvalidConfigurationException when one means nothing
   */
  public static void checkTable(
      String tableName, Map<String, String> before, Map<String, String> after) {
    checkTable(tableName, before, after, true);
  }

  /**
   * Checks the names of the properties of a table that is registered. Other programs may have set
   * names that are like those that are known.
   *
   * @throws InvalidConfigurationException when one below {@code encryption.} means nothing
   */
  public static void checkRegistered(String tableName, Map<String, String> properties) {
    checkTable(tableName, Map.of(), properties, false);
  }

  private static void checkTable(
      String tableName, Map<String, String> before, Map<String, String> after, boolean given) {
    try {
      after.forEach(
          (name, value) -> {
            if (!Objects.equals(value, before.get(name))) {
              check(Owner.TABLE, name, name, given);
            }
          });
    } catch (InvalidConfigurationException e) {
      throw e.inTable(tableName);
    }
  }

  /**
   * Checks the names of a namespace's properties.
   *
   * @throws InvalidConfigurationException when one means nothing
   */
  public static void checkNamespace(String namespace, Map<String, String> properties) {
    checkNamespace(namespace, properties, true);
  }

  /** The same of properties that it has: other programs may have set names like the known ones. */
  public static void checkStoredNamespace(String namespace, Map<String, String> properties) {
    checkNamespace(namespace, properties, false);
  }

  private static void checkNamespace(
      String namespace, Map<String, String> properties, boolean given) {
    try {
      properties.keySet().forEach(name -> check(Owner.NAMESPACE, name, name, given));
    } catch (InvalidConfigurationException e) {
      throw e.inNamespace(namespace);
    }
  }

  /**
   * Checks one name; an error has it as the user wrote it.
   *
   * @param given whether a user sets it now, who may have meant another
   */
  private static void check(Owner owner, String written, String name, boolean given) {
    if (owner.owns(name)) {
      return;
    }

    for (Owner other : List.of(Owner.TABLE, Owner.CATALOG)) {
      if (other.owns(name)) {
        throw new InvalidConfigurationException(
            String.format(
                "Property %s belongs to a %s, not to a %s", written, other.word(), owner.word()),
            whatInstead(owner, name));
      }
    }

    if (concernsEncryption(name, owner.names, given)) {
      throw new InvalidConfigurationException(
          String.format("There is no %s property %s", owner.word(), written),
          String.format(
              "Did you mean %s? Known are %s. A misspelt one would do nothing.",
              Spelling.nearest(name, owner.names), String.join(", ", owner.names)));
    }
  }

  private static String whatInstead(Owner owner, String name) {
    return switch (owner) {
      case CATALOG ->
          isOwn(name)
              ? "Leave it out: commits set it."
              : String.format(
                  "To have every new table get it, set %s%s.",
                  CatalogProperties.TABLE_DEFAULT_PREFIX, name);
      case TABLE ->
          String.format(
              "Set it where the catalog is configured; a table's are %s.",
              String.join(", ", owner.names));
      case NAMESPACE -> "A namespace's is " + EncryptionProperties.KEY_ID + ".";
    };
  }

  /**
   * Below the prefix in any case, or a known name with a slip or two, or less than a known name.
   */
  private static boolean concernsEncryption(String name, List<String> known, boolean given) {
    int slips = given ? SLIPS : 0;
    return isOfEncryption(name)
        || known.stream().anyMatch(other -> Spelling.distance(name, other) <= slips)
        || given
            && known.contains(EncryptionProperties.KEY_ID)
            && SHORT_KEY_IDS.stream().anyMatch(other -> Spelling.distance(name, other) == 0);
  }
}
