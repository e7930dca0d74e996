package io.icebergcrypto.spark.operations;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.audit.MasterKeyUse.WrappedBy;
import io.icebergcrypto.spark.table.EachTable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Which versions of a master key tables need; for a value key that is the table that keeps it. */
final class KeyVersions {
  private static final String BRANCHES =
      "other branches, tags and hashes of Nessie may need versions that no table listed here needs";

  private final Map<Integer, Integer> tables = new TreeMap<>();
  private int untold;

  private KeyVersions() {}

  /**
   * Looks at each table of a catalog or a namespace.
   *
   * @return {@code tables}, how many, {@code keys}, the master keys by their ids, {@code left} and
   *     {@code skipped}. A key has {@code key_id, wraps_now} (the version that wraps; null: wrapped
   *     keys do not say), {@code in_use} (how many tables need a version, by version), {@code
   *     untold} (how many have keys that do not say) and {@code problem} (why the KMS did not
   *     answer; null: it did). {@code unlisted} is why tables that are not looked at may need
   *     versions, too; null: none is known
   */
  static Map<String, Object> of(Call call) {
    ManyTables tables = new ManyTables(call);
    EachTable<MasterKeyUse> found = tables.each(tables::use);
    Map<String, KeyVersions> keys = new TreeMap<>();
    found.done().values().forEach(use -> count(use, keys));
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("tables", found.done().size());
    values.put(
        "keys",
        keys.entrySet().stream().map(key -> key.getValue().toMap(key.getKey(), tables)).toList());
    values.put("left", ManyTables.left(found));
    values.put("skipped", ManyTables.skipped(found));
    values.put("unlisted", tables.isOfOneBranch() ? BRANCHES : null);
    return values;
  }

  private static void count(MasterKeyUse use, Map<String, KeyVersions> keys) {
    if (use.keyId() != null) {
      of(use.keyId(), keys);
    }

    record Needed(String keyId, Integer version) {}

    Stream.of(use.keks(), use.valueKeys())
        .flatMap(List<WrappedBy>::stream)
        .map(key -> new Needed(key.masterKeyId(), key.version()))
        .distinct()
        .forEach(needed -> of(needed.keyId(), keys).add(needed.version()));
  }

  private static KeyVersions of(String keyId, Map<String, KeyVersions> keys) {
    return keys.computeIfAbsent(keyId, id -> new KeyVersions());
  }

  private void add(Integer version) {
    if (version == null) {
      untold++;
    } else {
      tables.merge(version, 1, Integer::sum);
    }
  }

  private Map<String, Object> toMap(String keyId, ManyTables many) {
    Integer wrapsNow = null;
    String problem = null;
    try {
      OptionalInt version = many.wrappingVersion(keyId);
      wrapsNow = version.isPresent() ? version.getAsInt() : null;
    } catch (IcebergCryptoException e) {
      problem = e.problem();
    }

    Map<String, Object> values = new LinkedHashMap<>();
    values.put("key_id", keyId);
    values.put("wraps_now", wrapsNow);
    values.put("in_use", tables);
    values.put("untold", untold);
    values.put("problem", problem);
    return values;
  }
}
