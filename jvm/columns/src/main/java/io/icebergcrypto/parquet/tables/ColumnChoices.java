package io.icebergcrypto.parquet.tables;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What settings say of the keys of a table's Parquet files.
 *
 * @param namesKeys whether any key is named
 * @param columnKeys the master keys of columns, by the names that the settings have
 * @param complete whether all other columns have a key, too
 * @param footerKey the master key of footers; null where they are readable without a key
 * @param keysBeside whether wrapped keys are in files beside the Parquet files
 * @param hudiPlaintext whether Hudi may leave rows and values in plaintext in other files
 */
public record ColumnChoices(
    boolean namesKeys,
    Map<String, String> columnKeys,
    boolean complete,
    String footerKey,
    boolean keysBeside,
    boolean hudiPlaintext) {

  /** The key that is named for a column, or for the struct that it is in; null if none is. */
  public String key(String column) {
    for (String name = column; !name.isEmpty(); name = name.replaceFirst("\\.?[^.]*$", "")) {
      String keyId = columnKeys.get(name);
      if (keyId != null) {
        return keyId;
      }
    }

    return null;
  }

  /**
   * Whether a column, a column in it, or the one that it is in has a key.
   *
   * @param column in any case
   */
  public boolean encrypts(String column) {
    String name = column.toLowerCase(Locale.ROOT);
    return complete
        || columnKeys.keySet().stream()
            .map(keyed -> keyed.toLowerCase(Locale.ROOT))
            .anyMatch(
                keyed ->
                    keyed.equals(name)
                        || keyed.startsWith(name + ".")
                        || name.startsWith(keyed + "."));
  }

  /**
   * The columns with keys, or with such in them; all of them where a key is for all.
   *
   * @param columns the names of a table's columns
   */
  public Set<String> keyed(List<String> columns) {
    return columns.stream()
        .filter(column -> namesKeys && (columnKeys.isEmpty() || encrypts(column)))
        .collect(Collectors.toSet());
  }
}
