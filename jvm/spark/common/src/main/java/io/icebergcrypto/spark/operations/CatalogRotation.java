package io.icebergcrypto.spark.operations;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.EachTable.Left;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/** Other keys for all tables of a catalog or a namespace: those that have the wanted key stay. */
final class CatalogRotation {
  private static final long DAY_MS = 86_400_000;
  private static final String VALUE_KEYS_LEFT = "value_keys_left";
  private static final Object CURRENT = new Object();

  private CatalogRotation() {}

  /**
   * Rotates.
   *
   * @param rotateKek what is done to a table with kek
   * @param rotateMasterKey what is done to it without
   * @return {@code done}, what that gave, {@code left}, {@code skipped} (views, and tables that are
   *     not encrypted) and {@code current}
   */
  static Map<String, Object> of(Call call, Operation rotateKek, Operation rotateMasterKey) {
    boolean isKek = call.flag("kek");
    String newKeyId = call.text("new_key_id");
    String from = call.text("from_catalog");
    double days = call.share("older_than_days", Double.NaN); // which no caller can give
    if (isKek && (newKeyId != null || from != null) || call.flag("rewrap") && !isKek) {
      throw new InvalidConfigurationException(
          "nothing was done: kek, or new_key_id without rewrap: these are two rotations",
          "Call rotate_catalog for one of them.");
    }

    boolean anyAge = Double.isNaN(days);
    if (!anyAge && (days <= 0 || !isKek)) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: older_than_days is %s", days),
          "It is a number of days, such as 30, and for the rotation of KEKs.");
    }

    ManyTables tables = new ManyTables(call);
    boolean all = call.flag("again") || from != null || isKek && anyAge;
    Predicate<MasterKeyUse> isCurrent =
        isKek
            ? use -> use.hasKekSince(since(days), call.flag("rewrap"))
            : use -> use.isCurrent(newKeyId, tables::wrappingVersion);
    Operation rotate = isKek ? rotateKek : rotateMasterKey;
    Map<String, Object> given = call.given(rotate);
    EachTable<Object> found =
        tables.each(
            table ->
                !all && isCurrent.test(tables.use(table))
                    ? CURRENT
                    : tables.run(rotate, table, given));
    return toMap(found, newKeyId == null ? List.of() : tables.another(newKeyId));
  }

  private static long since(double days) {
    return System.currentTimeMillis() - (long) (days * DAY_MS);
  }

  /**
   * The answer.
   *
   * @param others what would give new tables another master key
   */
  private static Map<String, Object> toMap(EachTable<Object> found, List<Left> others) {
    List<Object> done = new ArrayList<>();
    List<Left> left = new ArrayList<>(ManyTables.left(found));
    List<String> current = new ArrayList<>();
    found
        .done()
        .forEach(
            (table, answer) -> {
              if (answer == CURRENT) {
                current.add(table);
                return;
              }

              done.add(answer);
              if (answer instanceof Map<?, ?> rotation && rotation.get(VALUE_KEYS_LEFT) != null) {
                left.add(valueKeysLeft(table, rotation));
              }
            });
    left.addAll(others);
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("done", done);
    values.put("left", left);
    values.put("skipped", ManyTables.skipped(found));
    values.put("current", current);
    return values;
  }

  private static Left valueKeysLeft(String table, Map<?, ?> rotation) {
    Object keyId = rotation.get("new_key_id");
    return new Left(
        table,
        String.format(
            "value keys that other master keys than '%s' wrap are as they were: %s",
            keyId, rotation.get(VALUE_KEYS_LEFT)),
        String.format(
            "Who may use these decides who may decrypt; if that is to be '%s', CALL"
                + " rotate_value_key(name => ..., new_key_id => ...) for each.",
            keyId));
  }
}
