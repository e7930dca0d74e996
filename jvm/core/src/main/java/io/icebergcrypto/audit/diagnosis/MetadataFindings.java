package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;

/** What the metadata of an encrypted table tells by itself, and what its keys prove of it. */
final class MetadataFindings {
  private static final int NAMED = 10; // snapshots

  private final String name;
  private final TableMetadata metadata;
  private final boolean hive;
  private final AllowedKeyIds allowed;
  private final EncryptionKeys keys;
  private final boolean asked;
  private final String keyId;
  private final Set<String> masters; // of the KEKs that something needs
  private final List<Finding> found = new ArrayList<>();

  /**
   * Looks at nothing yet.
   *
   * @param name the table's full name
   * @param hive whether it is a table of Hive, whose stock catalog makes a KEK with the first
   *     snapshot
   * @param allowed the master keys that the catalog allows; null: nobody says
   * @param keys what the KMS says of the keys; null: nothing, and so nothing can be repaired
   * @param asked whether the KMS was asked; if not, the call to repair is what there is to do
   */
  MetadataFindings(
      String name,
      TableMetadata metadata,
      boolean hive,
      AllowedKeyIds allowed,
      EncryptionKeys keys,
      boolean asked) {
    this.name = name;
    this.metadata = metadata;
    this.hive = hive;
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

  /** Finds what is wrong. */
  List<Finding> search() {
    keyId();
    lostKeys();
    properties();
    Finding left = Finding.ofPlaintextLeft(name, metadata);
    if (left != null) {
      found.add(left);
    }

    return found;
  }

  /** The table's key id against the master keys that wrapped its KEKs. */
  private void keyId() {
    if (masters.isEmpty()) {
      withoutKek();
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
  private void withoutKek() {
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
    String master = masters.iterator().next();
    String refusal = refusal(master);
    String other =
        kind == Kind.KEY_ID_CHANGED
            ? String.format(" If '%s' is wanted: %s.", keyId, rotation(keyId))
            : "";
    String alter =
        masters.size() > 1 && keyId != null
            ? rotation("<the right one>")
            : String.format(
                "ALTER TABLE %s SET TBLPROPERTIES ('%s'='%s')",
                name,
                EncryptionProperties.KEY_ID,
                masters.size() == 1 ? master : "<the right one>");
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
              call(), master, afterwards, other));
    }

    return Finding.repairable(
        kind,
        detail,
        String.format("'%s' is put back, as by %s.%s%s", master, alter, afterwards, other),
        builder -> builder.setProperties(Map.of(EncryptionProperties.KEY_ID, master)));
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

  /** Keys that snapshots name and the metadata does not have. */
  private void lostKeys() {
    Set<String> known =
        metadata.encryptionKeys().stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    List<Long> lost =
        metadata.snapshots().stream()
            .filter(one -> one.keyId() != null && !known.contains(one.keyId()))
            .map(Snapshot::snapshotId)
            .toList();
    if (!lost.isEmpty()) {
      String snapshots =
          lost.stream().limit(NAMED).map(String::valueOf).collect(Collectors.joining(", "));
      found.add(
          Finding.of(
              Kind.KEY_LOST,
              String.format(
                  "the keys of %d of its %d snapshots are not in the metadata: %s%s",
                  lost.size(),
                  metadata.snapshots().size(),
                  snapshots,
                  lost.size() > NAMED ? " and more" : ""),
              FileProblem.hint(ProblemCode.NO_KEY, FileKind.MANIFEST_LIST)));
    }
  }

  /** Table properties that a client without this project has set. */
  private void properties() {
    Map<String, String> properties = metadata.properties();
    try {
      EncryptionProperties.dataKeyLength(name, properties);
    } catch (InvalidConfigurationException e) {
      dataKeyLength(e);
    }

    for (String property :
        List.of(TableProperties.DEFAULT_FILE_FORMAT, TableProperties.DELETE_DEFAULT_FILE_FORMAT)) {
      if (properties.getOrDefault(property, "").toLowerCase(Locale.ROOT).equals("orc")) {
        unset(Kind.FILE_FORMAT, property, "orc", "Iceberg cannot encrypt ORC files");
      }
    }

    for (String property : EncryptionProperties.PAGE_VERSIONS) {
      String version = properties.get(property);
      if (EncryptionProperties.hasPlaintextPages(version)) {
        unset(
            Kind.PAGE_VERSION,
            property,
            version,
            "Parquet's Java writer leaves parts of such pages in plaintext");
      }
    }
  }

  /** The length goes back to that of the table's KEKs. */
  private void dataKeyLength(InvalidConfigurationException refusal) {
    Integer length =
        keys == null
            ? null
            : keys.keys().stream()
                .filter(key -> key.kind() == KeyEntry.Kind.KEK && key.keyLength() != null)
                .map(KeyEntry::keyLength)
                .filter(UnwrappedKek.LENGTHS::contains)
                .findFirst() // the newest
                .orElse(null);
    if (length == null) {
      found.add(Finding.of(Kind.DATA_KEY_LENGTH, refusal));
    } else {
      found.add(
          Finding.repairable(
              Kind.DATA_KEY_LENGTH,
              refusal.problem(),
              String.format("It is set to %d bytes, the length of the table's newest KEK.", length),
              builder ->
                  builder.setProperties(
                      Map.of(EncryptionProperties.DATA_KEY_LENGTH, String.valueOf(length)))));
    }
  }

  private void unset(Kind kind, String property, String value, String why) {
    found.add(
        Finding.repairable(
            kind,
            String.format("%s=%s, and %s", property, value, why),
            call() + " removes the property.",
            builder -> builder.removeProperties(Set.of(property))));
  }
}
