package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.EncryptionKeys;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.Finding;
import io.icebergcrypto.audit.KeyEntry;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.lifecycle.repair.Defect.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;

/** Looks for what is wrong with one table, as the catalog behind has it. It changes nothing. */
final class DefectSearch {
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final List<Defect> found = new ArrayList<>();
  private String name;
  private String metadataFile;

  DefectSearch(EncryptedCatalog catalog, TableIdentifier identifier) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.name = catalog.context().fullName(identifier);
  }

  /** The table's full name. */
  String name() {
    return name;
  }

  /** The metadata file that was looked at; null before that, and where it could not be had. */
  String metadataFile() {
    return metadataFile;
  }

  /**
   * What is wrong.
   *
   * @throws NotSupportedException when the table is not encrypted, and never was
   */
  List<Defect> run() {
    BaseTable table = load();
    if (table == null) {
      return found;
    }

    TableMetadata metadata = table.operations().current();
    this.metadataFile = metadata.metadataFileLocation();
    if (!EncryptionProperties.wasEncrypted(metadata)) {
      encryptionBegun(table);
      return found;
    }

    String refused = checkMetadata(table);
    EncryptionKeys keys = refused == null ? keys() : null;
    new KeyIdDefects(catalog, table, keys).addTo(found);
    properties(metadata.properties(), keys);
    plaintextSnapshots(table);
    Finding left = Finding.ofPlaintextLeft(name, metadata);
    if (left != null) {
      add(Kind.PLAINTEXT_LEFT, left.problem(), left.hint());
    }

    if (refused == null) {
      if (keys != null) {
        MissingLengths.addTo(found, catalog, identifier);
      }

      return found;
    }

    found.replaceAll(
        defect ->
            defect.mendable() ? defect.afterwards("First see to what is above; then:") : defect);
    return found;
  }

  /** A table of which nothing can be wrong but that its encryption has not come to its end. */
  private void encryptionBegun(BaseTable table) {
    String log = CopyLog.begun(table);
    if (log == null) {
      throw new NotEncryptedException(
              "Verify it to see its files; encrypt_table encrypts it in place.")
          .inTable(name);
    }

    add(
        Kind.ENCRYPTION_BEGUN,
        String.format(
            "encrypt_table has begun, and has not ended: what it has copied is in %s", log),
        String.format(
            "If it does not run any more, call it again, with the same key: it goes on. %s. To give"
                + " it up, delete that folder. remove_orphan_files then deletes the copies; where"
                + " other tables share the table's location, it deletes their files, too.",
            SqlNames.call("encrypt_table", name, "key_id => '<master key id>'")));
  }

  private void plaintextSnapshots(BaseTable table) {
    boolean usable =
        !catalog.context().behind().isHive()
            || EncryptionProperties.hasDataKeyLength(table.properties());
    if (usable) {
      new PlaintextSnapshots(table, table.io()).addTo(found);
    } else { // Iceberg's operations of a Hive table have no FileIO then
      try (FileIO io = catalog.context().behind().newFileIO()) {
        new PlaintextSnapshots(table, io).addTo(found);
      }
    }
  }

  /** The table of the catalog behind; null: there is one, and it cannot be loaded. */
  private BaseTable load() {
    try {
      BaseTable table = catalog.context().unchecked(identifier);
      this.name = table.name();
      table.operations().current();
      return table;
    } catch (TamperedException e) {
      add(Kind.METADATA_REFUSED, e);
    } catch (NotFoundException e) {
      add(
          Kind.UNREADABLE,
          "its metadata file is gone: " + e.getMessage(),
          FileProblem.hint(ProblemCode.MISSING, FileKind.METADATA_FILE));
    } catch (NumberFormatException e) {
      if (!catalog.context().behind().isHive()) {
        throw e;
      }

      add(
          Kind.DATA_KEY_LENGTH,
          String.format(
              "%s is no number, and Iceberg's Hive catalog cannot load the table: %s",
              EncryptionProperties.DATA_KEY_LENGTH, e.getMessage()),
          String.format(
              "In the Hive metastore, with Hive's own ALTER TABLE ... SET TBLPROPERTIES, set '%s'"
                  + " to 16, 24 or 32 (bytes); then call repair_table again.",
              EncryptionProperties.DATA_KEY_LENGTH));
    }

    return null;
  }

  private void add(Kind kind, IcebergCryptoException e) {
    add(kind, e.problem(), e.hint());
  }

  private void add(Kind kind, String detail, String remedy) {
    found.add(Defect.of(kind, detail, remedy));
  }

  /** Why the metadata cannot be believed, or null. */
  private String checkMetadata(BaseTable table) {
    try {
      catalog.context().checkMetadata(table);
      return null;
    } catch (TamperedException e) {
      add(Kind.METADATA_REFUSED, e);
      return e.problem();
    } catch (KmsUnavailableException | LoginFailedException e) {
      add(Kind.UNCHECKED, e);
      return e.problem();
    } catch (AccessDeniedException e) {
      add(Kind.KEY_UNUSABLE, e);
      return catalog.context().authenticatesMetadata() ? e.problem() : null;
    } catch (IcebergCryptoException e) { // no such key, or not one that authenticates
      add(Kind.KEY_UNUSABLE, e);
      return e.problem();
    }
  }

  /** What the KMS says of the table's keys; null: it did not answer. */
  private EncryptionKeys keys() {
    EncryptionKeys keys = EncryptionKeys.of(catalog, identifier);
    if (keys.kmsProblem() != null) {
      add(
          Kind.UNCHECKED,
          keys.kmsProblem(),
          "See to it that the KMS answers, and call repair_table again.");
      return null;
    }

    for (KeyEntry key : keys.keys()) {
      boolean refused = Boolean.FALSE.equals(key.kmsAnswers());
      switch (key.kind()) {
        case MASTER, KEK -> {
          if (refused) {
            add(
                Kind.KEY_UNUSABLE,
                String.format("%s %s: %s", key.kind().label(), key.keyId(), key.problem()),
                "encryption_keys lists the table's keys. Give the catalog the KMS and the rights"
                    + " with which the table was written; restore a key that is disabled or gone."
                    + " Drop nothing: as long as the key may come back, no row is lost"
                    + " (docs/compromise.md).");
          }
        }
        case MANIFEST_LIST, STATISTICS -> {
          if (key.problem() != null) {
            add(
                Kind.KEY_LOST,
                String.format("the key of %s: %s", key.usedFor(), key.problem()),
                FileProblem.hint(ProblemCode.NO_KEY, FileKind.MANIFEST_LIST));
          }
        }
        default -> {}
      }
    }

    return keys;
  }

  /** Table properties that a client without this project has set. */
  private void properties(Map<String, String> properties, EncryptionKeys keys) {
    try {
      EncryptionProperties.dataKeyLength(name, properties);
    } catch (InvalidConfigurationException e) {
      dataKeyLength(e.problem(), keys);
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
  private void dataKeyLength(String problem, EncryptionKeys keys) {
    Integer length =
        keys == null
            ? null
            : keys.keys().stream()
                .filter(key -> key.kind() == KeyEntry.Kind.KEK && key.length() != null)
                .map(KeyEntry::length)
                .filter(Set.of(16, 24, 32)::contains)
                .findFirst() // the newest
                .orElse(null);
    if (length == null) {
      add(
          Kind.DATA_KEY_LENGTH,
          problem,
          String.format(
              "ALTER TABLE %s SET TBLPROPERTIES ('%s'='16'), or 24 or 32 (bytes).",
              name, EncryptionProperties.DATA_KEY_LENGTH));
    } else {
      found.add(
          new Defect(
              Kind.DATA_KEY_LENGTH,
              problem,
              String.format("It is set to %d bytes, the length of the table's newest KEK.", length),
              builder ->
                  builder.setProperties(
                      Map.of(EncryptionProperties.DATA_KEY_LENGTH, String.valueOf(length))),
              false));
    }
  }

  private void unset(Kind kind, String property, String value, String why) {
    found.add(
        new Defect(
            kind,
            String.format("%s=%s, and %s", property, value, why),
            "The property is removed.",
            builder -> builder.removeProperties(Set.of(property)),
            false));
  }
}
