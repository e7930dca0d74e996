package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.checked.KeyMetadataLengths;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.KeyedFile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;

/**
 * What is wrong with one table, as the catalog behind has it, and what kept it from being looked
 * at. Nothing is changed, and no file of data is read, which is verification's work.
 */
public final class TableDiagnosis {
  /** What does not keep the key of a manifest list from being had. */
  private static final Set<Kind> HARMLESS =
      EnumSet.of(
          Kind.PLAINTEXT,
          Kind.PLAINTEXT_LEFT,
          Kind.FILE_FORMAT,
          Kind.PAGE_VERSION,
          Kind.OTHER_MASTER_KEY,
          Kind.UNAUTHENTICATED);

  private final Catalog catalog;
  private final CatalogContext ours; // null: a catalog of another project, where less is known
  private final TableIdentifier identifier;
  private final boolean close;
  private final List<Finding> found = new ArrayList<>();
  private String name;
  private TableMetadata metadata;
  private boolean keysKnown;

  private TableDiagnosis(Catalog catalog, TableIdentifier identifier, boolean close) {
    this.catalog = catalog;
    this.ours = catalog instanceof EncryptedCatalog encrypted ? encrypted.context() : null;
    this.identifier = identifier;
    this.close = close;
    this.name =
        ours == null ? SqlNames.full(catalog.name(), identifier) : ours.fullName(identifier);
  }

  /**
   * Looks at a table of any Iceberg catalog. That costs a load of its metadata and the first bytes
   * of one manifest list; the KMS is asked for no more than a load asks for.
   *
   * @throws NoSuchTableException when there is no such Iceberg table
   */
  public static TableDiagnosis atAGlance(Catalog catalog, TableIdentifier identifier) {
    return new TableDiagnosis(catalog, identifier, false).run();
  }

  /**
   * Looks more closely: the KMS is asked for each KEK, and the manifests of plaintext snapshots are
   * read.
   *
   * @throws NoSuchTableException when there is no such table
   * @throws NotSupportedException when it has no metadata of its own
   */
  public static TableDiagnosis close(EncryptedCatalog catalog, TableIdentifier identifier) {
    return new TableDiagnosis(catalog, identifier, true).run();
  }

  /** The table's full name. */
  public String name() {
    return name;
  }

  /** The metadata that was looked at; null when it could not be had. */
  public TableMetadata metadata() {
    return metadata;
  }

  /** The table's key id; null: it has none, or could not be loaded. */
  public String keyId() {
    return metadata == null ? null : EncryptionProperties.keyId(metadata.properties());
  }

  /** Whether the metadata can be trusted, and the KMS said what it gives of the table's keys. */
  public boolean keysKnown() {
    return keysKnown;
  }

  /** What was found, the worst first; empty: nothing. */
  public List<Finding> findings() {
    return List.copyOf(found);
  }

  private TableDiagnosis run() {
    BaseTable table = load();
    if (table != null && EncryptionProperties.wasEncrypted(metadata)) {
      examine(table);
    } else if (table != null && ours != null && ours.settings().encryptionRequired()) {
      add(
          Kind.NOT_ENCRYPTED,
          String.format(
              "it has no %s, and the catalog takes encrypted tables only",
              EncryptionProperties.KEY_ID),
          String.format(
              "%s encrypts it in place; where the catalog refuses to load it, in one without"
                  + " %s=refuse.",
              SqlNames.call("encrypt_table", name, "key_id => '<master key id>'"),
              EncryptionProperties.PLAINTEXT_TABLES));
    }

    found.sort(Comparator.comparing(Finding::kind));
    return this;
  }

  /** The table of the catalog behind; null: there is one, and it cannot be loaded. */
  private BaseTable load() {
    try {
      Table loaded = ours == null ? catalog.loadTable(identifier) : ours.unchecked(identifier);
      if (!(loaded instanceof BaseTable table)) {
        throw new NoSuchTableException("%s is not a table with metadata of its own", name);
      }

      this.name = ours == null ? name : table.name();
      this.metadata = table.operations().current();
      return table;
    } catch (NoSuchTableException | NoSuchNamespaceException | NotSupportedException e) {
      throw e;
    } catch (NotFoundException e) {
      add(
          Kind.UNREADABLE,
          "its metadata file is gone: " + e.getMessage(),
          FileProblem.hint(ProblemCode.MISSING, FileKind.METADATA_FILE));
    } catch (NumberFormatException e) {
      if (!CatalogBehind.isHive(behind())) {
        throw e;
      }

      add(
          Kind.DATA_KEY_LENGTH,
          String.format(
              "%s is not a number, and Iceberg's Hive catalog cannot load the table: %s",
              EncryptionProperties.DATA_KEY_LENGTH, e.getMessage()),
          String.format(
              "In the Hive metastore, with Hive's own ALTER TABLE ... SET TBLPROPERTIES, set '%s'"
                  + " to 16, 24 or 32 (bytes); then call repair_table.",
              EncryptionProperties.DATA_KEY_LENGTH));
    } catch (RuntimeException e) {
      addFailure("it cannot be loaded", e);
    }

    return null;
  }

  private Catalog behind() {
    return ours == null ? catalog : ours.behind().catalog();
  }

  private void examine(BaseTable table) {
    boolean trusted = ours == null || checkMetadata(table);
    EncryptionKeys keys = close && trusted ? keys() : null;
    this.keysKnown = keys != null;
    boolean hive = CatalogBehind.isHive(behind());
    AllowedKeyIds allowed = ours == null ? null : ours.allowedKeyIds();
    found.addAll(new MetadataFindings(name, metadata, hive, allowed, keys, close).search());
    examineSnapshots(table, hive);
    if (!trusted) {
      found.replaceAll(
          one ->
              one.repairable()
                  ? one.after("First make sure that its metadata can be trusted; then:")
                  : one);
    } else if (ours != null && !close) {
      checkLength();
    }
  }

  private void examineSnapshots(BaseTable table, boolean hive) {
    if (!hive || EncryptionProperties.hasDataKeyLength(metadata.properties())) {
      new PlaintextFindings(table, table.io(), close).addTo(found);
    } else { // Iceberg's operations of a Hive table have no FileIO then
      try (FileIO io = ours == null ? null : ours.behind().newFileIO()) {
        new PlaintextFindings(table, io, close).addTo(found);
      }
    }
  }

  /** Whether nothing keeps the metadata from being believed. */
  private boolean checkMetadata(BaseTable table) {
    try {
      MetadataAuthentication status = ours.checkMetadata(table);
      if (!status.authenticated()
          && !close
          && keyId() != null) { // of the catalog, not of the table
        add(
            Kind.UNAUTHENTICATED,
            "its metadata is not authenticated: " + status.detail(),
            "On REST only who runs the server can answer for it. On JDBC, Hadoop, Glue and Nessie,"
                + " leave "
                + EncryptionProperties.METADATA_AUTHENTICATION
                + " out, or use a master key with which only its users can wrap.");
      }

      return true;
    } catch (AccessDeniedException e) {
      addFailure("it cannot be checked", e);
      return !(e instanceof LoginFailedException) && !ours.authenticatesMetadata();
    } catch (RuntimeException e) {
      addFailure("it cannot be checked", e);
      return false;
    }
  }

  /** What the KMS says of the table's keys; null: it did not answer. */
  private EncryptionKeys keys() {
    EncryptionKeys keys = EncryptionKeys.of((EncryptedCatalog) catalog, identifier);
    if (keys.kmsProblem() != null) {
      add(
          Kind.UNCHECKED,
          keys.kmsProblem(),
          "Make sure that the KMS answers, and call repair_table again.");
      return null;
    }

    for (KeyEntry key : keys.keys()) {
      switch (key.kind()) {
        case MASTER, KEK -> {
          if (key.isRefused()) {
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
          if (key.problem() != null && key.encryptedBy() != null) { // else it is not there
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

  /** The KMS is asked only for a list whose entry is as short as one without a length is. */
  private void checkLength() {
    String listKeyId =
        metadata.currentSnapshot() == null ? null : metadata.currentSnapshot().keyId();
    boolean suspect =
        metadata.encryptionKeys().stream()
            .filter(key -> key.keyId().equals(listKeyId))
            .anyMatch(key -> KeyMetadataLengths.mayLackLength(key.encryptedKeyMetadata()));
    boolean usable = found.stream().allMatch(one -> HARMLESS.contains(one.kind()));
    if (!suspect || !usable) {
      return;
    }

    try {
      TableEncryptionManager manager =
          new TableEncryptionManager(
              name,
              metadata.encryptionKeys(),
              keyId(),
              TableProperties.ENCRYPTION_DEK_LENGTH_DEFAULT, // of keys that it will not make
              new BoundKmsClient(metadata.uuid(), ours.kms()));
      if (KeyedFile.decrypted(listKeyId, manager).fileLength() == null) {
        add(
            Kind.NO_LENGTH,
            "the key metadata of its current manifest list gives no length: iceberg-rust wrote it,"
                + " or another client that records none",
            String.format(
                "%s gives its files their lengths; the catalog property"
                    + " encryption.files-without-length=accept reads them as they are.",
                SqlNames.call("repair_table", name, "confirm => true")));
      }
    } catch (IcebergCryptoException e) {
      addFailure("the key of its current manifest list cannot be read", e);
    } catch (RuntimeException e) { // Iceberg's own, of any type, for bytes that do not decrypt
      CancelledException.rethrow(e);
      add(
          Kind.UNCHECKED,
          "the key of its current manifest list cannot be read: " + e,
          SqlNames.call("repair_table", name, "confirm => false")
              + " and encryption_keys say what is wrong with its keys.");
    }
  }

  private void add(Kind kind, String problem, String hint) {
    found.add(Finding.of(kind, problem, hint));
  }

  /** What a refusal says of the table; any other failure says nothing. */
  private void addFailure(String what, RuntimeException e) {
    CancelledException.rethrow(e);
    if (e instanceof IcebergCryptoException known) {
      found.add(Finding.of(kind(known), known));
    } else {
      add(
          Kind.UNCHECKED,
          String.format("%s: %s", what, e),
          "Check that the catalog's server and its storage are up, and let this user read.");
    }
  }

  private static Kind kind(IcebergCryptoException e) {
    if (e instanceof KeyNotFoundException
        || e instanceof KeyDisabledException
        || e instanceof BadWrappedKeyException
        || e instanceof InvalidConfigurationException
        || e instanceof AccessDeniedException && Causes.isOfKey(e)) { // and no login that failed
      return Kind.KEY_UNUSABLE;
    }

    return e instanceof TamperedException ? Kind.TAMPERED : Kind.UNCHECKED;
  }
}
