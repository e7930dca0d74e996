package io.icebergcrypto.spark.operations;

import io.icebergcrypto.format.Json;
import io.icebergcrypto.values.ValueKeyEntry;
import io.icebergcrypto.values.ValueKeyTable;
import java.util.List;
import java.util.Map;

/**
 * The keys that encrypt values: each operation gives the versions of keys that it concerns, {@code
 * drop_value_key} those that are left. See {@link ValueKeyTable}.
 */
final class ValueKeyOperations {
  private static final String COLUMNS =
      "name STRING NOT NULL, version STRING NOT NULL, master_key_id STRING NOT NULL, created_at"
          + " TIMESTAMP_LTZ NOT NULL";

  static final List<Operation> ALL =
      List.of(
          Operation.procedure(
              "create_value_key",
              "Creates a key that encrypts values, wrapped by a master key",
              "name STRING NOT NULL, key_id STRING NOT NULL",
              COLUMNS,
              call -> rows(List.of(keys(call).create(call.word("name"), call.word("key_id"))))),
          Operation.procedure(
              "value_keys",
              "Lists the keys that encrypt values",
              "",
              COLUMNS,
              call -> rows(keys(call).entries())),
          Operation.procedure(
              "rotate_value_key",
              "Rewraps a value key, or adds a version that encrypts from now on",
              "name STRING NOT NULL, new_key_id STRING, new_version BOOLEAN",
              COLUMNS,
              ValueKeyOperations::rotate),
          Operation.procedure(
              "drop_value_key",
              "Drops an older version of a value key: nobody can decrypt what it encrypted",
              "name STRING NOT NULL, version STRING NOT NULL, confirm BOOLEAN",
              COLUMNS,
              call ->
                  rows(
                      keys(call)
                          .drop(call.word("name"), call.word("version"), call.flag("confirm")))));

  private ValueKeyOperations() {}

  private static ValueKeyTable keys(Call call) {
    return new ValueKeyTable(call.catalog());
  }

  private static Answer rotate(Call call) {
    String name = call.word("name");
    String newKeyId = call.text("new_key_id") == null ? null : call.word("new_key_id");
    return rows(
        call.flag("new_version")
            ? List.of(keys(call).addVersion(name, newKeyId))
            : keys(call).rewrap(name, newKeyId));
  }

  private static Answer rows(List<ValueKeyEntry> keys) {
    List<Map<String, Object>> rows = keys.stream().map(Json::map).toList();
    return new Answer(rows, rows);
  }
}
