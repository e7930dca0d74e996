package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.audit.EncryptionKeys;
import io.icebergcrypto.audit.KeyEntry;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.lifecycle.repair.Defect.Kind;
import io.icebergcrypto.metadata.Kek;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/** A table's key id against the master keys that wrapped its KEKs. */
final class KeyIdDefects {
  private final EncryptedCatalog catalog;
  private final String name;
  private final TableMetadata metadata;
  private final EncryptionKeys keys;
  private final String keyId;
  private final Set<String> masters; // of the KEKs that something needs

  /**
   * Looks at nothing yet.
   *
   * @param keys what the KMS says of the keys; null: nothing, and so nothing can be mended
   */
  KeyIdDefects(EncryptedCatalog catalog, BaseTable table, EncryptionKeys keys) {
    this.catalog = catalog;
    this.name = table.name();
    this.metadata = table.operations().current();
    this.keys = keys;
    this.keyId = EncryptionProperties.keyId(metadata.properties());
    Set<String> unneeded = KeyRetention.unneeded(metadata, System.currentTimeMillis());
    this.masters =
        Kek.all(metadata).stream()
            .filter(kek -> !unneeded.contains(kek.keyId()))
            .map(EncryptedKey::encryptedById)
            .filter(Objects::nonNull)
            .collect(Collectors.toCollection(TreeSet::new));
  }

  void addTo(List<Defect> found) {
    if (masters.isEmpty()) {
      withoutKek(found);
    } else if (keyId == null) {
      found.add(
          another(
              Kind.KEY_ID_REMOVED,
              String.format(
                  "%s is gone, and the table's KEKs are wrapped by %s: a client without"
                      + " encryption, or somebody with access to the metadata, removed it",
                  EncryptionProperties.KEY_ID, quoted())));
    } else if (keyId.isBlank()) {
      found.add(
          another(
              Kind.KEY_ID_EMPTY,
              String.format(
                  "%s is '%s', and the table's KEKs are wrapped by %s: a client without"
                      + " encryption set it",
                  EncryptionProperties.KEY_ID, keyId, quoted())));
    } else if (!masters.contains(keyId)) {
      found.add(
          another(
              Kind.KEY_ID_CHANGED,
              String.format(
                  "%s is '%s', and the table's KEKs are wrapped by %s: a client without"
                      + " encryption set it, without wrapping them anew",
                  EncryptionProperties.KEY_ID, keyId, quoted())));
    } else if (masters.size() > 1) {
      found.add(
          Defect.of(
              Kind.OTHER_MASTER_KEY,
              String.format(
                  "%s is '%s', and the table's KEKs are wrapped by %s: a client that had loaded"
                      + " the table before a rotation brought one, or somebody changed the key id",
                  EncryptionProperties.KEY_ID, keyId, quoted()),
              String.format(
                  "Make sure which is the right one; then have all KEKs wrapped by it: %s.",
                  rotation(keyId))));
    }
  }

  /** A table that a client without encryption made, or whose keys are gone. */
  private void withoutKek(List<Defect> found) {
    boolean hadKeys = metadata.snapshots().stream().anyMatch(one -> one.keyId() != null);
    if (hadKeys) {
      return; // each of these keys is missed by itself
    }

    if (keyId != null && keyId.isBlank()) {
      found.add(
          Defect.of(
              Kind.KEY_ID_EMPTY,
              String.format(
                  "%s is '%s', and the table has no KEK: a client without encryption made it",
                  EncryptionProperties.KEY_ID, keyId),
              metadata.snapshots().isEmpty()
                  ? "No key tells which one is meant. Give it the one that you want: "
                      + rotation("<master key id>")
                      + "."
                  : "No key tells which one is meant. See what is said of its plaintext."));
    } else if (keyId != null
        && metadata.snapshots().isEmpty()
        && !catalog
            .context()
            .behind()
            .isHive()) { // whose stock catalog makes a KEK with the first snapshot
      found.add(noKek());
    }
  }

  private Defect noKek() {
    String detail =
        String.format(
            "it has %s '%s', no KEK and no snapshot: a client without encryption made it, or gave"
                + " the key id to an empty table",
            EncryptionProperties.KEY_ID, keyId);
    String remedy = "It gets its first KEK. Give the client that made it this catalog class.";
    boolean usable = keys != null && keys.keys().stream().noneMatch(KeyIdDefects::isRefused);
    return usable
        ? new Defect(Kind.NO_KEK, detail, remedy, builder -> {}, false) // a step of each commit
        : Defect.of(
            Kind.NO_KEK,
            detail,
            String.format(
                "%s The master key has to be usable for that. For another one: %s.",
                remedy, rotation("<master key id>")));
  }

  private static boolean isRefused(KeyEntry key) {
    return Boolean.FALSE.equals(key.kmsAnswers());
  }

  /** The key id is to be another one: the master key of the KEKs. */
  private Defect another(Kind kind, String detail) {
    String found = masters.iterator().next();
    String refusal = refusal(found);
    String alter =
        masters.size() > 1 && keyId != null
            ? rotation("<the right one>")
            : String.format(
                "ALTER TABLE %s SET TBLPROPERTIES ('%s'='%s')",
                name, EncryptionProperties.KEY_ID, masters.size() == 1 ? found : "<the right one>");
    String afterwards =
        " Find out who changed it, and since when; then verify the table, with all snapshots.";
    if (refusal != null) {
      return Defect.of(kind, detail, refusal + " Then: " + alter + "." + afterwards);
    }

    String or = kind == Kind.KEY_ID_CHANGED ? " If '" + keyId + "' is wanted: " : "";
    return new Defect(
        kind,
        detail,
        String.format(
            "'%s' is put back, as by %s.%s%s%s",
            found, alter, afterwards, or, or.isEmpty() ? "" : rotation(keyId) + "."),
        builder -> builder.setProperties(Map.of(EncryptionProperties.KEY_ID, found)),
        false);
  }

  /** Why the master key of the KEKs is not simply put back, or null. */
  private String refusal(String master) {
    if (masters.size() > 1) {
      return "Make sure which of these keys is the right one.";
    }

    if (!catalog.context().allowedKeyIds().allows(master)) {
      return String.format(
          "The catalog does not allow '%s' (%s): make sure that it is the right one, and have it"
              + " added.",
          master, EncryptionProperties.ALLOWED_KEY_IDS);
    }

    if (keys == null) {
      return "It cannot be told whether these KEKs are genuine as long as the KMS does not answer.";
    }

    boolean proven =
        keys.keys().stream()
            .filter(key -> key.kind() != KeyEntry.Kind.MASTER && key.kind() != KeyEntry.Kind.DEAD)
            .noneMatch(key -> isRefused(key) || isBroken(key));
    return proven
        ? null
        : "The KEKs do not prove that it is the right one: a key is missing, cannot be had, or"
            + " does not decrypt with them. See encryption_keys.";
  }

  /** The keys of snapshots show whether the KEKs are theirs. */
  private static boolean isBroken(KeyEntry key) {
    return key.kind() == KeyEntry.Kind.MANIFEST_LIST && key.problem() != null;
  }

  private String quoted() {
    return masters.stream().map(id -> "'" + id + "'").collect(Collectors.joining(" and "));
  }

  private String rotation(String newKeyId) {
    return SqlNames.call("rotate_master_key", name, SqlNames.argument("new_key_id", newKeyId));
  }
}
