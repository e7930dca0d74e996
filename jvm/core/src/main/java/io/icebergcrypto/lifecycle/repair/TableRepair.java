package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.repair.Defect.Kind;
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
 * <p>Mended is only what the table's own keys bear out: where metadata is authenticated, its MAC
 * must match; a key id is put back that wrapped the KEKs which decrypt the table's snapshots, and
 * that the catalog allows.
 *
 * @param table the table's full name
 * @param defects what was found, and with yes is left or mended
 */
public record TableRepair(String table, List<Defect> defects) {
  /**
   * Looks at a table and, if that is wanted, mends what can be mended in one commit.
   *
   * @param yes false: nothing is changed
   * @throws NoSuchTableException when there is none
   * @throws NotSupportedException when it is not encrypted, and never was
   * @throws IcebergCryptoException the refusal of the commit; nothing was changed
   */
  public static TableRepair run(EncryptedCatalog catalog, TableIdentifier identifier, boolean yes) {
    DefectSearch search = new DefectSearch(catalog, identifier);
    List<Defect> found = search.run();
    if (yes && found.stream().anyMatch(Defect::mendable)) {
      List<Defect> before = found;
      try {
        catalog.context().mend(identifier, metadata -> mended(metadata, search, before));
      } catch (CommitFailedException e) {
        throw overtaken(search, e);
      }

      if (before.stream().anyMatch(defect -> defect.kind() == Kind.NO_LENGTH)) {
        ManifestsWithLengths.rewrite((BaseTable) catalog.loadTable(identifier));
      }

      found = after(found, new DefectSearch(catalog, identifier).run());
    }

    found.sort(Comparator.comparing(Defect::kind));
    return new TableRepair(search.name(), List.copyOf(found));
  }

  /** The metadata in force with all that can be mended. */
  private static TableMetadata mended(
      TableMetadata metadata, DefectSearch search, List<Defect> found) {
    if (!Objects.equals(metadata.metadataFileLocation(), search.metadataFile())) {
      throw overtaken(search, null);
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    found.stream().filter(Defect::mendable).forEach(defect -> defect.mend().accept(builder));
    CancelledException.check();
    return builder.build();
  }

  private static IcebergCryptoException overtaken(DefectSearch search, RuntimeException cause) {
    return new IcebergCryptoException(
            "nothing was mended: another commit has come since it was looked at",
            "Call repair_table again.",
            cause)
        .inTable(search.name());
  }

  private static List<Defect> after(List<Defect> before, List<Defect> now) {
    List<Defect> all = new ArrayList<>(now);
    before.stream()
        .filter(Defect::mendable)
        .filter(defect -> now.stream().noneMatch(defect::isSame))
        .map(Defect::asMended)
        .forEach(all::add);
    return all;
  }

  /** Whether nothing is wrong (any more). */
  public boolean ok() {
    return defects.stream().allMatch(Defect::mended);
  }

  /** Whether all could be looked at. */
  public boolean complete() {
    return defects.stream().noneMatch(defect -> defect.kind() == Kind.UNCHECKED);
  }

  /** The names and values for JSON. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", table);
    values.put("complete", complete());
    values.put("findings", defects.stream().map(Defect::toMap).toList());
    return values;
  }
}
