package io.icebergcrypto.parquet;

import io.icebergcrypto.format.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * How a file that has keys for columns is protected, as its footer says.
 *
 * @param algorithm of Parquet AES_GCM_V1 or AES_GCM_CTR_V1, of ORC AES_CTR_128 or AES_CTR_256
 * @param footerEncrypted or else plaintext, which Parquet signs
 * @param footerKey the master key of the footer; null: the file does not say
 * @param columns null: the footer is encrypted, and its key was not to be had
 * @param unknown why the columns are not known; null: they are
 */
public record FileProtection(
    String algorithm,
    boolean footerEncrypted,
    String footerKey,
    List<Column> columns,
    String unknown) {
  /** ORC's mask that replaces all values. */
  private static final String NOTHING_LEFT = "nullify";

  /** What protects a column, in the words of {@link #toMap}. */
  public enum By {
    COLUMN_KEY,
    FOOTER_KEY,
    NOTHING
  }

  /**
   * A column, by its whole name in the file.
   *
   * @param keyId the master key; null: none, or the file does not say
   * @param mask what a reader without the key sees, which is in the file in plaintext; null: it
   *     sees nothing
   */
  public record Column(String name, By protectedBy, String keyId, String mask) {}

  /** Whether a reader with its keys notices a change of the file's data. */
  public boolean authenticated() {
    return algorithm.equals("AES_GCM_V1");
  }

  /** Whether the footer is encrypted, and no column is known to be plaintext. */
  public boolean encrypted() {
    return footerEncrypted && names(By.NOTHING).isEmpty();
  }

  /**
   * What is wrong with it, in words; null: all of it is encrypted and authenticated. It says
   * nothing of a file whose columns are not known.
   */
  public String problem() {
    List<String> found = new ArrayList<>();
    String plaintext = names(By.NOTHING);
    if (!plaintext.isEmpty()) {
      found.add("columns that are plaintext: " + plaintext);
    }

    if (!footerEncrypted) {
      found.add("its footer is plaintext: schema, row counts and key ids can be read");
    }

    if (!authenticated()) {
      found.add("its data is encrypted with AES-CTR, which does not authenticate it");
    }

    if (columns != null) {
      String masked =
          columns.stream()
              .filter(column -> column.mask() != null && !column.mask().equals(NOTHING_LEFT))
              .map(column -> column.name() + " (" + column.mask() + ")")
              .collect(Collectors.joining(", "));
      if (!masked.isEmpty()) {
        found.add("masked values are plaintext: " + masked);
      }
    }

    return found.isEmpty() ? null : String.join("; ", found);
  }

  private String names(By by) {
    return columns == null
        ? ""
        : columns.stream()
            .filter(column -> column.protectedBy() == by)
            .map(Column::name)
            .collect(Collectors.joining(", "));
  }

  /**
   * For JSON: {@code algorithm, pages_authenticated, footer, footer_key, columns, unknown}; of each
   * column {@code name, protected_by, key_id, mask}.
   */
  public Map<String, Object> toMap() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("algorithm", algorithm);
    map.put("pages_authenticated", authenticated());
    map.put("footer", footerEncrypted ? "encrypted" : "plaintext");
    map.put("footer_key", footerKey);
    map.put("columns", columns == null ? null : columns.stream().map(Json::map).toList());
    map.put("unknown", unknown);
    return map;
  }
}
