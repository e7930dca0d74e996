package io.icebergcrypto.audit;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.Finding.Harm;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyIdRule;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.checked.KeyMetadataLengths;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.metadata.KeyOfList;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;

/**
 * Looks at tables of any Iceberg catalog for what needs mending: above all, what clients without
 * encryption wrote under key ids. Each costs a load of its metadata and the first bytes of one
 * manifest list; no file of data is looked at, which is verification's work.
 */
public final class TableDoctor {
  private final Catalog catalog;
  private final EncryptedCatalog encrypted;

  /**
   * Takes a catalog: one of ours, or another, which can check less.
   *
   * @param catalog whose tables are examined
   */
  public TableDoctor(Catalog catalog) {
    this.catalog = catalog;
    this.encrypted = catalog instanceof EncryptedCatalog ours ? ours : null;
  }

  /**
   * What was found.
   *
   * @param keyId the table's key id; null: it has none, or could not be loaded
   * @param findings what to mend, the worst first; empty: nothing
   */
  public record Examined(String keyId, List<Finding> findings) {}

  /**
   * Examines a table. What is wrong is in the result, and so is what kept it from being examined.
   *
   * @return null when there is no such Iceberg table (any more)
   */
  public Examined examine(TableIdentifier identifier) {
    List<Finding> findings = new ArrayList<>();
    BaseTable table;
    try {
      Table loaded =
          encrypted != null ? encrypted.unchecked(identifier) : catalog.loadTable(identifier);
      if (!(loaded instanceof BaseTable base)) {
        return null;
      }

      table = base;
    } catch (NoSuchTableException e) {
      return null;
    } catch (RuntimeException e) {
      return new Examined(null, List.of(notLoaded(identifier, e)));
    }

    TableMetadata metadata = table.operations().current();
    String keyId = EncryptionProperties.keyId(metadata.properties());
    if (EncryptionProperties.wasEncrypted(metadata)) {
      examineEncrypted(table, metadata, keyId, findings);
    } else if (encrypted != null && encrypted.requiresEncryption()) {
      findings.add(
          new Finding(
              Harm.NOT_ENCRYPTED,
              String.format(
                  "Table %s: it has no %s, and the catalog takes encrypted tables only",
                  table.name(), EncryptionProperties.KEY_ID),
              String.format(
                  "%s encrypts it in place; where the catalog refuses to load it, in one without"
                      + " %s=refuse.",
                  SqlNames.call("encrypt_table", table.name(), "key_id => '<master key id>'"),
                  EncryptionProperties.PLAINTEXT_TABLES)));
    }

    findings.sort((a, b) -> a.harm().compareTo(b.harm()));
    return new Examined(keyId, findings);
  }

  private Finding notLoaded(TableIdentifier identifier, RuntimeException e) {
    if (e instanceof IcebergCryptoException known) {
      return of(known);
    }

    boolean gone = e instanceof NotFoundException;
    return new Finding(
        gone ? Harm.UNREADABLE : Harm.UNCHECKED,
        String.format(
            "Table %s: it cannot be loaded: %s",
            SqlNames.full(catalog.name(), identifier), e.getMessage()),
        gone
            ? FileProblem.hint(ProblemCode.MISSING, FileKind.METADATA_FILE)
            : "Check that the catalog's server and its storage are up, and let this user read.");
  }

  private void examineEncrypted(
      BaseTable table, TableMetadata metadata, String keyId, List<Finding> findings) {
    if (keyId == null) {
      findings.add(keyIdRemoved(table.name(), metadata));
    }

    Finding left = Finding.ofPlaintextLeft(table.name(), metadata);
    if (left != null) {
      findings.add(left);
    }

    boolean plaintext = examineSnapshots(table, metadata, keyId, findings);
    if (keyId != null && metadata.encryptionKeys().isEmpty() && !plaintext) {
      findings.add(withoutKeys(table.name(), metadata));
    }

    if (encrypted != null && keyId != null) {
      checkMetadata(table, findings);
      checkLength(table, metadata, keyId, findings);
    }
  }

  /** A table that never had a key is empty; one with encrypted snapshots has lost them. */
  private static Finding withoutKeys(String name, TableMetadata metadata) {
    if (!metadata.snapshots().isEmpty()) {
      return new Finding(
          Harm.TAMPERED,
          String.format(
              "Table %s: its keys are gone from its metadata, and its %d snapshots are encrypted",
              name, metadata.snapshots().size()),
          FileProblem.hint(ProblemCode.NO_KEY, FileKind.MANIFEST_LIST));
    }

    return new Finding(
        Harm.NO_KEK,
        String.format(
            "Table %s: it has %s and no KEK: a client without encryption made it",
            name, EncryptionProperties.KEY_ID),
        String.format(
            "It is empty. Any commit of this project's catalog adds the KEK, such as ALTER TABLE %s"
                + " SET TBLPROPERTIES ('comment'='...'); where the metadata is refused, look at it,"
                + " and sign it with authenticate_metadata. Find the client, and give it this"
                + " catalog class.",
            name));
  }

  /** The KMS is asked only for a list whose entry is as short as one without a length is. */
  private void checkLength(
      BaseTable table, TableMetadata metadata, String keyId, List<Finding> findings) {
    String listKeyId =
        metadata.currentSnapshot() == null ? null : metadata.currentSnapshot().keyId();
    boolean suspect =
        metadata.encryptionKeys().stream()
            .filter(key -> key.keyId().equals(listKeyId))
            .anyMatch(key -> KeyMetadataLengths.mayLackLength(key.encryptedKeyMetadata()));
    boolean unusable =
        findings.stream().anyMatch(finding -> finding.harm() != Harm.UNAUTHENTICATED);
    if (!suspect || unusable) {
      return;
    }

    try {
      TableEncryptionManager manager =
          new TableEncryptionManager(
              table.name(),
              metadata.encryptionKeys(),
              keyId,
              TableProperties.ENCRYPTION_DEK_LENGTH_DEFAULT, // of keys that it will not make
              new BoundKmsClient(metadata.uuid(), encrypted.kms()));
      if (KeyOfList.decrypted(listKeyId, manager).fileLength() == null) {
        findings.add(noLength(table.name()));
      }
    } catch (IcebergCryptoException e) {
      findings.add(of(e));
    } catch (RuntimeException e) {
      findings.add(
          new Finding(
              Harm.UNCHECKED,
              String.format(
                  "Table %s: the key of its current manifest list cannot be read: %s",
                  table.name(), message(e)),
              "repair_table and encryption_keys say what is wrong with its keys."));
    }
  }

  private static Finding noLength(String name) {
    return new Finding(
        Harm.NO_LENGTH,
        String.format(
            "Table %s: the key metadata of its current manifest list gives no length: iceberg-rust"
                + " wrote it, or another client that records none",
            name),
        String.format(
            "%s gives its files their lengths; the catalog property"
                + " encryption.files-without-length=accept reads them as they are.",
            SqlNames.call("repair_table", name, "confirm => true")));
  }

  private static Finding keyIdRemoved(String name, TableMetadata metadata) {
    try {
      KeyIdRule.refuseLost(name, metadata, null);
    } catch (TamperedException e) {
      return new Finding(Harm.KEY_ID_REMOVED, e.problem(), e.hint());
    }

    throw new IllegalStateException(name + " was not encrypted");
  }

  /**
   * Whether a manifest list is the current one, as the table is now: a commit and maintenance in
   * between may have deleted the one that was.
   */
  public static boolean isCurrent(BaseTable table, String list) {
    try {
      TableMetadata now = table.operations().refresh();
      Snapshot current = now == null ? null : now.currentSnapshot();
      return current != null && list.equals(current.manifestListLocation());
    } catch (NoSuchTableException e) {
      return false;
    }
  }

  /** Whether a manifest list is plaintext. */
  private static boolean examineSnapshots(
      BaseTable table, TableMetadata metadata, String keyId, List<Finding> findings) {
    Snapshot current = metadata.currentSnapshot();
    long without = metadata.snapshots().stream().filter(one -> one.keyId() == null).count();
    if (current == null && without == 0) {
      return false;
    }

    String list = current == null ? null : current.manifestListLocation();
    String starts = null;
    try {
      FileMagic magic = list == null ? null : FileInspector.magic(table.io().newInputFile(list));
      starts = magic == null || magic.encrypted() ? null : magic.name();
    } catch (NotFoundException e) {
      if (!isCurrent(table, list)) {
        return false;
      }

      findings.add(
          new Finding(
              Harm.UNREADABLE,
              String.format(
                  "Table %s: its current manifest list %s does not exist", table.name(), list),
              FileProblem.hint(ProblemCode.MISSING, FileKind.MANIFEST_LIST)));
    } catch (RuntimeException e) {
      findings.add(
          new Finding(
              Harm.UNCHECKED,
              String.format("Table %s: %s cannot be read: %s", table.name(), list, message(e)),
              "Check that the storage is up, and let this user read it."));
    }

    if (starts != null && current.keyId() != null) {
      findings.add(
          new Finding(
              Harm.TAMPERED,
              String.format(
                  "Table %s: its manifest list %s was written encrypted, and starts as %s",
                  table.name(), list, starts),
              FileProblem.hint(ProblemCode.TAMPERED, FileKind.MANIFEST_LIST)
                  + " Somebody put another file in its place: find out who. No row was returned:"
                  + " queries refuse it."));
    } else if (starts != null || without > 0) {
      findings.add(
          new Finding(
              Harm.PLAINTEXT,
              String.format(
                  "Table %s: it has %s, and %d of its %d snapshots are plaintext",
                  table.name(), EncryptionProperties.KEY_ID, without, metadata.snapshots().size()),
              copy(table.name(), keyId)));
      return true;
    }

    return false;
  }

  /**
   * How to get an encrypted table out of one that is not.
   *
   * @param keyId the master key; null: any
   */
  public static String copy(String name, String keyId) {
    return String.format(
        "Its rows can be read by whoever reads the storage. Find the client that wrote them, and"
            + " give it this project's catalog class. Copy them: CREATE TABLE <new> USING iceberg"
            + " TBLPROPERTIES ('%s'='%s') AS SELECT * FROM %s (where that is refused, in a catalog"
            + " with encryption.plaintext-files=allow), and compare the copy. It has the rows that"
            + " main shows now; branches, tags and older snapshots are in this table alone, which"
            + " is to be dropped only when nobody needs them.",
        EncryptionProperties.KEY_ID, keyId == null ? "<master key id>" : keyId, name);
  }

  private void checkMetadata(BaseTable table, List<Finding> findings) {
    try {
      MetadataAuthentication status = encrypted.checkMetadata(table);
      if (!status.authenticated()) {
        findings.add(
            new Finding(
                Harm.UNAUTHENTICATED,
                String.format(
                    "Table %s: its metadata is not authenticated: %s",
                    table.name(), status.detail()),
                "On REST only who runs the server can answer for it. On JDBC, Hadoop, Glue and"
                    + " Nessie, leave "
                    + EncryptionProperties.METADATA_AUTHENTICATION
                    + " out, or use a master key with which only its users can wrap."));
      }
    } catch (IcebergCryptoException e) {
      findings.add(of(e));
    } catch (RuntimeException e) {
      findings.add(
          new Finding(
              Harm.UNCHECKED,
              String.format("Table %s: it cannot be checked: %s", table.name(), message(e)),
              "Check that the catalog's server and its storage are up."));
    }
  }

  private static Finding of(IcebergCryptoException e) {
    Harm harm = Harm.UNCHECKED;
    if (e instanceof KeyNotFoundException
        || e instanceof KeyDisabledException
        || e instanceof BadWrappedKeyException
        || e instanceof InvalidConfigurationException
        || e.getClass() == AccessDeniedException.class) { // a login that failed is not the key's
      harm = Harm.KEY_UNUSABLE;
    } else if (e instanceof TamperedException) {
      harm = Harm.TAMPERED;
    }

    return new Finding(harm, e.problem(), e.hint());
  }

  private static String message(RuntimeException e) {
    return e instanceof IcebergCryptoException known ? known.problem() : String.valueOf(e);
  }
}
