package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
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
  private final EncryptionKeys keys;
  private final List<Finding> found = new ArrayList<>();

  private MetadataFindings(String name, TableMetadata metadata, EncryptionKeys keys) {
    this.name = name;
    this.metadata = metadata;
    this.keys = keys;
  }

  /**
   * What is wrong.
   *
   * @param name the table's full name
   * @param hive whether it is a table of Hive
   * @param allowed the master keys that the catalog allows; null: nobody says
   * @param keys what the KMS says of the keys; null: nothing
   * @param asked whether the KMS was asked
   */
  static List<Finding> of(
      String name,
      TableMetadata metadata,
      boolean hive,
      AllowedKeyIds allowed,
      EncryptionKeys keys,
      boolean asked) {
    MetadataFindings search = new MetadataFindings(name, metadata, keys);
    new KeyIdFindings(name, metadata, allowed, keys, asked).addTo(search.found, hive);
    search.lostKeys();
    search.properties();
    Finding left = Finding.ofPlaintextLeft(name, metadata);
    if (left != null) {
      search.found.add(left);
    }

    return search.found;
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
                .filter(Set.of(16, 24, 32)::contains)
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
            SqlNames.call("repair_table", name, "confirm => true") + " removes the property.",
            builder -> builder.removeProperties(Set.of(property))));
  }
}
