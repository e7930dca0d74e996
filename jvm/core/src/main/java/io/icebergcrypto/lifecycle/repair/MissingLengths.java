package io.icebergcrypto.lifecycle.repair;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.KeyedFile;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Encrypted files whose key metadata gives no length, as iceberg-rust writes them: the manifest
 * lists of all snapshots, and the files of the current one.
 *
 * <p>The key of a manifest list is in the metadata, so it gets its length there, once the list was
 * read to its end. Keys of manifests are in lists, and those of data files in manifests: these are
 * rewritten, see {@link ManifestsWithLengths}.
 */
final class MissingLengths {
  private final EncryptedCatalog catalog;
  private final BaseTable table;
  private final TableMetadata metadata;
  private final TableEncryptionManager manager;

  private MissingLengths(EncryptedCatalog catalog, BaseTable table) {
    this.catalog = catalog;
    this.table = table;
    this.metadata = table.operations().current();
    this.manager = (TableEncryptionManager) table.encryption();
  }

  /** Adds what is found, if the table can be loaded; if not, other findings say why. */
  static void addTo(List<Finding> found, EncryptedCatalog catalog, TableIdentifier identifier) {
    MissingLengths search;
    try {
      BaseTable table = (BaseTable) catalog.loadTable(identifier);
      if (EncryptionProperties.keyId(table.operations().current().properties()) == null) {
        return;
      }

      search = new MissingLengths(catalog, EncryptedTable.forAudit(table, List.of()));
    } catch (IcebergCryptoException e) {
      return;
    }

    search.addTo(found);
  }

  private void addTo(List<Finding> found) {
    Map<Snapshot, NativeEncryptionKeyMetadata> lists = new LinkedHashMap<>();
    for (Snapshot snapshot : metadata.snapshots()) {
      NativeEncryptionKeyMetadata key = key(snapshot);
      if (key != null && key.fileLength() == null) {
        lists.put(snapshot, key);
      }
    }

    try {
      List<ManifestFile> manifests =
          ManifestsWithLengths.lacking(table, metadata.currentSnapshot(), !lists.isEmpty());
      if (!lists.isEmpty() || !manifests.isEmpty()) {
        found.add(finding(lists, manifests));
      }
    } catch (RuntimeException e) {
      found.add(
          Finding.of(
              Kind.UNCHECKED,
              "it is not known whether its files have lengths: "
                  + (e instanceof IcebergCryptoException known ? known.problem() : e),
              "Verify the table, and fix what is found; then call repair_table again."));
    }
  }

  /** The key metadata of a snapshot's list; null: it has none, or another finding says why. */
  private NativeEncryptionKeyMetadata key(Snapshot snapshot) {
    try {
      return snapshot.keyId() == null ? null : KeyedFile.decrypted(snapshot.keyId(), manager);
    } catch (RuntimeException e) {
      return null;
    }
  }

  private Finding finding(
      Map<Snapshot, NativeEncryptionKeyMetadata> lists, List<ManifestFile> manifests) {
    List<String> what = new ArrayList<>();
    if (!lists.isEmpty()) {
      what.add(
          String.format(
              "the manifest %s of %s",
              lists.size() == 1 ? "list" : "lists",
              lists.keySet().stream()
                  .map(snapshot -> "snapshot " + snapshot.snapshotId())
                  .collect(Collectors.joining(", "))));
    }

    if (!manifests.isEmpty()) {
      what.add(
          String.format(
              "%d of the manifests of the current snapshot, or files in them", manifests.size()));
    }

    return Finding.repairable(
        Kind.NO_LENGTH,
        String.format(
            "the key metadata of %s gives no length: iceberg-rust wrote that, or another client"
                + " that records none",
            String.join(", and of ", what)),
        "The lists are read to their ends, and get their lengths in the metadata; the manifests"
            + " are rewritten, in a snapshot that replaces the current one, as rewrite_manifests"
            + " would. Until that client records lengths, each of its commits does it again: repair"
            + " the table after it, or set the catalog property"
            + " encryption.files-without-length=accept.",
        builder -> lists.forEach((snapshot, key) -> addLength(builder, snapshot, key)));
  }

  /** Replaces the entry of a list by one with the length that the list has. */
  private void addLength(
      TableMetadata.Builder builder, Snapshot snapshot, NativeEncryptionKeyMetadata keyMetadata) {
    EncryptedKey entry = manager.key(snapshot.keyId());
    EncryptedKey kek = live(manager.key(entry.encryptedById()), builder);
    StandardEncryptionManager keys =
        TableEncryptionManager.ofIceberg(
            table.name(),
            List.of(kek),
            kek.encryptedById(),
            TableProperties.ENCRYPTION_DEK_LENGTH_DEFAULT, // of a key that it will not make
            new BoundKmsClient(metadata.uuid(), catalog.context().kms()));
    EncryptedKey made =
        KeyRegisteringManager.register(keys, keyMetadata.copyWithLength(wholeLength(snapshot)));
    builder.removeEncryptionKey(entry.keyId());
    builder.addEncryptionKey(
        new BaseEncryptedKey(
            entry.keyId(), made.encryptedKeyMetadata(), kek.keyId(), entry.properties()));
  }

  /** The same KEK, or a new one if it is too old for Iceberg, which would make its own. */
  private EncryptedKey live(EncryptedKey kek, TableMetadata.Builder builder) {
    if (Kek.lives(kek, System.currentTimeMillis())) {
      return kek;
    }

    EncryptedKey made =
        Kek.make(table.name(), metadata, kek.encryptedById(), catalog.context().kms());
    builder.addEncryptionKey(made);
    return made;
  }

  /** The length in bytes of a list as it is stored, all of whose blocks are authentic. */
  private long wholeLength(Snapshot snapshot) {
    String location = snapshot.manifestListLocation();
    long length = table.io().newInputFile(location).getLength();
    InputFile list = table.io().newInputFile(new KeyedFile(location, snapshot.keyId()));
    try (SeekableInputStream in = list.newStream()) {
      in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + location, e);
    }

    return length;
  }
}
