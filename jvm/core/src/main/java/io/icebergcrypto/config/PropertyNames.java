package io.icebergcrypto.config;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsProperties;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.apache.iceberg.CatalogProperties;

/**
 * The names below {@code encryption.} that mean something. Any other is refused: Iceberg keeps a
 * misspelt property and does nothing about it, and the table is plaintext.
 */
public final class PropertyNames {
  private static final String PREFIX = "encryption.";

  /** The KMS clients know and check the names below this one. */
  private static final String KMS_PREFIX = "encryption.kms.";

  /** The catalog properties. */
  static final List<String> OF_CATALOGS =
      List.of(
          EncryptionProperties.CATALOG_TYPE,
          EncryptionProperties.CATALOG_IMPL,
          KmsProperties.KMS_TYPE,
          KmsProperties.KMS_IMPL,
          EncryptionProperties.REQUIRED,
          EncryptionProperties.ALLOWED_KEY_IDS,
          EncryptionProperties.MANAGER_IMPL,
          EncryptionProperties.STATISTICS,
          EncryptionProperties.PLAINTEXT_FILES,
          EncryptionProperties.PLAINTEXT_TABLES,
          EncryptionProperties.EXPOSE_KEY_METADATA,
          EncryptionProperties.METADATA_AUTHENTICATION);

  private PropertyNames() {}

  /**
   * Checks the names of a catalog's properties, and of those that it gives to new tables.
   *
   * @throws InvalidConfigurationException when one means nothing
   */
  static void checkCatalog(Map<String, String> properties) {
    for (String name : properties.keySet()) {
      String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
      if (lower.startsWith(CatalogProperties.TABLE_DEFAULT_PREFIX)) {
        checkTableName(name, name.substring(CatalogProperties.TABLE_DEFAULT_PREFIX.length()));
      } else if (lower.startsWith(CatalogProperties.TABLE_OVERRIDE_PREFIX)) {
        checkTableName(name, name.substring(CatalogProperties.TABLE_OVERRIDE_PREFIX.length()));
      } else if (ofTable(lower)) {
        throw new InvalidConfigurationException(
            String.format("Property %s is a table's, not a catalog's", name),
            String.format(
                "To have every new table get it, set %s%s.",
                CatalogProperties.TABLE_DEFAULT_PREFIX, lower));
      } else if (concernsEncryption(name, OF_CATALOGS)
          && !OF_CATALOGS.contains(lower)
          && !lower.startsWith(KMS_PREFIX)) {
        throw unknown("catalog property", name, OF_CATALOGS);
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
    after.forEach(
        (name, value) -> {
          if (!Objects.equals(value, before.get(name))) {
            try {
              checkTableName(name, name);
            } catch (InvalidConfigurationException e) {
              throw e.inTable(tableName);
            }
          }
        });
  }

  /**
   * Checks the names of a namespace's properties.
   *
   * @throws InvalidConfigurationException when one means nothing
   */
  public static void checkNamespace(String namespace, Map<String, String> properties) {
    List<String> known = List.of(EncryptionProperties.KEY_ID);
    for (String name : properties.keySet()) {
      if (known.contains(name) || !concernsEncryption(name, known)) {
        continue;
      }

      String whose =
          ofTable(name) || name.equals(EncryptionProperties.METADATA_MAC)
              ? "table's"
              : OF_CATALOGS.contains(name) || name.startsWith(KMS_PREFIX) ? "catalog's" : null;
      IcebergCryptoException refusal =
          whose == null
              ? unknown("namespace property", name, known)
              : new InvalidConfigurationException(
                  String.format("Property %s is a %s, not a namespace's", name, whose),
                  "A namespace's is " + EncryptionProperties.KEY_ID + ".");
      throw refusal.inNamespace(namespace);
    }
  }

  private static void checkTableName(String shown, String name) {
    if (ofTable(name) || name.equals(EncryptionProperties.METADATA_MAC)) {
      return;
    }

    if (OF_CATALOGS.contains(name) || name.startsWith(KMS_PREFIX)) {
      throw new InvalidConfigurationException(
          String.format("Property %s is a catalog's, not a table's", name),
          "Set it where the catalog is configured; a table's are " + ofTables() + ".");
    }

    if (concernsEncryption(name, EncryptionProperties.OF_TABLES)) {
      throw unknown("table property", shown, EncryptionProperties.OF_TABLES);
    }
  }

  private static boolean ofTable(String name) {
    return EncryptionProperties.OF_TABLES.contains(name);
  }

  private static String ofTables() {
    return String.join(", ", EncryptionProperties.OF_TABLES);
  }

  /** Below the prefix in any case, or a known name with other dots and dashes. */
  private static boolean concernsEncryption(String name, List<String> known) {
    return name.toLowerCase(Locale.ROOT).startsWith(PREFIX)
        || known.stream().anyMatch(other -> letters(other).equals(letters(name)));
  }

  private static InvalidConfigurationException unknown(
      String what, String name, List<String> known) {
    String nearest =
        known.stream().min(Comparator.comparingInt(other -> distance(name, other))).orElseThrow();
    return new InvalidConfigurationException(
        String.format("There is no %s %s", what, name),
        String.format(
            "Did you mean %s? Known are %s. A misspelt one would do nothing.",
            nearest, String.join(", ", known)));
  }

  /** How many letters must be put in, taken out or exchanged (Levenshtein), dots and case aside. */
  private static int distance(String one, String other) {
    String a = letters(one);
    String b = letters(other);
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }

    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int exchanged = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(exchanged, 1 + Math.min(row[j], row[j - 1]));
      }
    }

    return row[b.length()];
  }

  private static String letters(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
  }
}
