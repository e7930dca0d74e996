package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.audit.diagnosis.TableDiagnosis;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchTableException;

/**
 * What is wrong with a table that other clients, or a crash, have left in a state in which it
 * cannot be used, and what was done about it. Metadata is read, and the plaintext manifests of
 * plaintext snapshots; the KMS is asked for each KEK.
 *
 * <p>Repaired is only what the table's own keys bear out: where metadata is authenticated, its MAC
 * must match; a key id is put back that wrapped the KEKs which decrypt the table's snapshots, and
 * that the catalog allows.
 *
 * @param table the table's full name
 * @param findings what was found, the worst first, and what was repaired of it
 */
public record TableRepair(String table, List<Finding> findings) {
  /**
   * Looks at a table and, if that is wanted, repairs what metadata alone repairs in one commit, and
   * adds missing lengths in another.
   *
   * @param confirm false: nothing is changed
   * @throws NoSuchTableException when it does not exist
   * @throws NotSupportedException when it is not encrypted, and never was
   * @throws IcebergCryptoException the refusal of the first commit, and nothing was changed; or of
   *     the second: what metadata alone repairs was committed, and no manifest was rewritten
   */
  public static TableRepair run(
      EncryptedCatalog catalog, TableIdentifier identifier, boolean confirm) {
    TableDiagnosis looked = TableDiagnosis.close(catalog, identifier);
    List<Finding> found = findings(catalog, identifier, looked);
    if (confirm && found.stream().anyMatch(Finding::repairable)) {
      List<Finding> before = found;
      try {
        catalog.context().repair(identifier, metadata -> repaired(metadata, looked, before));
      } catch (CommitFailedException e) {
        throw overtaken(looked, e);
      }

      if (before.stream().anyMatch(one -> one.kind() == Kind.NO_LENGTH)) {
        ManifestsWithLengths.rewrite((BaseTable) catalog.loadTable(identifier));
      }

      found =
          after(before, findings(catalog, identifier, TableDiagnosis.close(catalog, identifier)));
    }

    found.sort(Comparator.comparing(Finding::kind));
    return new TableRepair(looked.name(), List.copyOf(found));
  }

  /** What is wrong, with what only files tell. */
  private static List<Finding> findings(
      EncryptedCatalog catalog, TableIdentifier identifier, TableDiagnosis looked) {
    List<Finding> found = new ArrayList<>(looked.findings());
    TableMetadata metadata = looked.metadata();
    if (metadata != null && !EncryptionProperties.wasEncrypted(metadata)) {
      return new ArrayList<>(List.of(encryptionBegun(catalog.context().unchecked(identifier))));
    }

    if (looked.keysKnown()) {
      MissingLengths.addTo(found, catalog, identifier);
    }

    return found;
  }

  /** A table of which nothing can be wrong but that its encryption has not come to its end. */
  private static Finding encryptionBegun(BaseTable table) {
    String log = CopyLog.begun(table);
    if (log == null) {
      throw new NotEncryptedException(
              "Verify it to see its files; encrypt_table encrypts it in place.")
          .inTable(table.name());
    }

    return Finding.of(
        Kind.ENCRYPTION_BEGUN,
        String.format(
            "encrypt_table was started but has not finished: what it has copied is in %s", log),
        String.format(
            "If it no longer runs, call it again, with the same key: it continues. %s. To give"
                + " it up, delete that folder. remove_orphan_files then deletes the copies; where"
                + " other tables share the table's location, it deletes their files, too.",
            SqlNames.call("encrypt_table", table.name(), "key_id => '<master key id>'")));
  }

  /** The metadata in force with all that can be repaired. */
  private static TableMetadata repaired(
      TableMetadata metadata, TableDiagnosis looked, List<Finding> found) {
    if (!Objects.equals(
        metadata.metadataFileLocation(), looked.metadata().metadataFileLocation())) {
      throw overtaken(looked, null);
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    found.stream().filter(Finding::repairable).forEach(one -> one.repair().accept(builder));
    CancelledException.check();
    return builder.build();
  }

  private static IcebergCryptoException overtaken(TableDiagnosis looked, RuntimeException cause) {
    return new IcebergCryptoException(
            "nothing was repaired: another commit was made since it was examined",
            "Call repair_table again.",
            cause)
        .inTable(looked.name());
  }

  private static List<Finding> after(List<Finding> before, List<Finding> now) {
    List<Finding> all = new ArrayList<>(now);
    before.stream()
        .filter(Finding::repairable)
        .filter(one -> now.stream().noneMatch(one::isSame))
        .map(Finding::asRepaired)
        .forEach(all::add);
    return all;
  }

  /** Whether nothing is wrong, or nothing is left wrong. */
  public boolean ok() {
    return findings.stream().allMatch(Finding::repaired);
  }

  /** Whether something could not be looked at. */
  public boolean unchecked() {
    return findings.stream().anyMatch(one -> one.kind() == Kind.UNCHECKED);
  }

  /** The names and values for JSON. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", table);
    values.put("unchecked", unchecked());
    values.put("findings", findings.stream().map(Finding::toMap).toList());
    return values;
  }
}
