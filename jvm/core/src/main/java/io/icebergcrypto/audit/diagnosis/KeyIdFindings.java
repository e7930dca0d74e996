package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.metadata.Kek;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/** A table's key id against the master keys that wrapped its KEKs. */
final class KeyIdFindings {
  private final String name;
  private final TableMetadata metadata;
  private final AllowedKeyIds allowed;
  private final EncryptionKeys keys;
  private final boolean asked;
  private final String keyId;
  private final Set<String> masters; // of the KEKs that something needs

  /**
   * Looks at nothing yet.
   *
   * @param name the table's full name
   * @param allowed the master keys that the catalog allows; null: nobody says
   * @param keys what the KMS says of the keys; null: nothing, and so nothing can be repaired
   * @param asked whether the KMS was asked; if not, the call to repair is what there is to do
   */
  KeyIdFindings(
      String name,
      TableMetadata metadata,
      AllowedKeyIds allowed,
      EncryptionKeys keys,
      boolean asked) {
    this.name = name;
    this.metadata = metadata;
    this.allowed = allowed;
    this.keys = keys;
    this.asked = asked;
    this.keyId = EncryptionProperties.keyId(metadata.properties());
    Set<String> unneeded = KeyRetention.unneeded(metadata, System.currentTimeMillis());
    this.masters =
        Kek.all(metadata).stream()
            .filter(kek -> !unneeded.contains(kek.keyId()))
            .map(EncryptedKey::encryptedById)
            .filter(Objects::nonNull)
            .collect(Collectors.toCollection(TreeSet::new));
  }

  /**
   * Adds what is wrong.
   *
   * @param hive whether it is a table of Hive, whose stock catalog makes a KEK with the first
   *     snapshot
   */
  void addTo(List<Finding> found, boolean hive) {
    if (masters.isEmpty()) {
      withoutKek(found, hive);
    } else if (keyId == null) {
      found.add(
          another(
              Kind.KEY_ID_REMOVED,
              String.format(
                  "%s is gone, and the table's KEKs are wrapped by %s: a client without"
                      + " encryption, or someone with access to the metadata, removed it",
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
                      + " encryption set it, without rewrapping them",
                  EncryptionProperties.KEY_ID, keyId, quoted())));
    } else if (masters.size() > 1) {
      found.add(
          Finding.of(
              Kind.OTHER_MASTER_KEY,
              String.format(
                  "%s is '%s', and the table's KEKs are wrapped by %s: a client that had loaded"
                      + " the table before a rotation added one, or the key id was changed",
                  EncryptionProperties.KEY_ID, keyId, quoted()),
              String.format(
                  "Find out which is the right one; then rewrap all KEKs with it: %s.",
                  rotation(keyId))));
    }
  }

  /** A table that a client without encryption made, or whose keys are gone. */
  private void withoutKek(List<Finding> found, boolean hive) {
    if (metadata.snapshots().stream().anyMatch(one -> one.keyId() != null)) {
      if (keyId == null) { // each of its keys is missed by itself
        found.add(
            Finding.of(
                Kind.KEY_ID_REMOVED,
                EncryptionProperties.KEY_ID + " is gone, and so are the table's keys",
                "A client without encryption, or someone with access to the metadata, removed"
                    + " them: find out who. Restore the metadata from a backup or an object"
                    + " version."));
      }

      return;
    }

    if (keyId != null && keyId.isBlank()) {
      found.add(
          Finding.of(
              Kind.KEY_ID_EMPTY,
              String.format(
                  "%s is '%s', and the table has no KEK: a client without encryption created it",
                  EncryptionProperties.KEY_ID, keyId),
              metadata.snapshots().isEmpty()
                  ? "No key shows which one is meant. Give it the one that you want: "
                      + rotation("<master key id>")
                      + "."
                  : "No key shows which one is meant. See the finding on its plaintext."));
    } else if (keyId != null && metadata.snapshots().isEmpty() && !hive) {
      found.add(noKek());
    }
  }

  private Finding noKek() {
    String detail =
        String.format(
            "it has %s '%s', no KEK and no snapshot: a client without encryption created it, or"
                + " gave the key id to an empty table",
            EncryptionProperties.KEY_ID, keyId);
    String remedy =
        (asked ? "It gets" : call() + " adds")
            + " its first KEK. Give the client that created it this catalog class.";
    boolean usable = keys != null && keys.keys().stream().noneMatch(KeyEntry::isRefused);
    return usable
        ? Finding.repairable(Kind.NO_KEK, detail, remedy, builder -> {}) // a step of each commit
        : Finding.of(
            Kind.NO_KEK,
            detail,
            String.format(
                "%s The master key has to be usable for that. For another one: %s.",
                remedy, rotation("<master key id>")));
  }

  /** The key id is to be another one: the master key of the KEKs. */
  private Finding another(Kind kind, String detail) {
    String found = masters.iterator().next();
    String refusal = refusal(found);
    String other =
        kind == Kind.KEY_ID_CHANGED
            ? String.format(" If '%s' is wanted: %s.", keyId, rotation(keyId))
            : "";
    String alter =
        masters.size() > 1 && keyId != null
            ? rotation("<the right one>")
            : String.format(
                "ALTER TABLE %s SET TBLPROPERTIES ('%s'='%s')",
                name, EncryptionProperties.KEY_ID, masters.size() == 1 ? found : "<the right one>");
    String afterwards =
        " Find out who changed it, and since when; then verify the table, with all snapshots.";
    if (refusal != null) {
      return Finding.of(kind, detail, refusal + " Then: " + alter + "." + afterwards);
    } else if (!asked) {
      return Finding.of(
          kind,
          detail,
          String.format(
              "%s puts '%s' back if the KMS and the table's keys show that it is right.%s%s",
              call(), found, afterwards, other));
    }

    return Finding.repairable(
        kind,
        detail,
        String.format("'%s' is put back, as by %s.%s%s", found, alter, afterwards, other),
        builder -> builder.setProperties(Map.of(EncryptionProperties.KEY_ID, found)));
  }

  /** Why the master key of the KEKs is not simply put back, or null. */
  private String refusal(String master) {
    if (masters.size() > 1) {
      return "Find out which of these keys is the right one.";
    }

    if (allowed != null && !allowed.allows(master)) {
      return String.format(
          "The catalog does not allow '%s' (%s): make sure that it is the right one, and add it.",
          master, EncryptionProperties.ALLOWED_KEY_IDS);
    }

    if (!asked) {
      return null;
    } else if (keys == null) {
      return "It is not known whether these KEKs are genuine until the KMS answers.";
    }

    boolean proven =
        keys.keys().stream()
            .filter(key -> key.kind() != KeyEntry.Kind.MASTER && key.kind() != KeyEntry.Kind.DEAD)
            .noneMatch(key -> key.isRefused() || isBroken(key));
    return proven
        ? null
        : "The KEKs do not prove that it is the right one: a key is missing, is not available, or"
            + " does not decrypt with them. See encryption_keys.";
  }

  /** The keys of snapshots show whether the KEKs are theirs. */
  private static boolean isBroken(KeyEntry key) {
    return key.kind() == KeyEntry.Kind.MANIFEST_LIST && key.problem() != null;
  }

  private String quoted() {
    return masters.stream().map(id -> "'" + id + "'").collect(Collectors.joining(" and "));
  }

  private String call() {
    return SqlNames.call("repair_table", name, "confirm => true");
  }

  private String rotation(String newKeyId) {
    return SqlNames.call("rotate_master_key", name, SqlNames.argument("new_key_id", newKeyId));
  }
}
