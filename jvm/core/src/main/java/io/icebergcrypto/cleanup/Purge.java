package io.icebergcrypto.cleanup;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataFileIO;
import io.icebergcrypto.integrity.MetadataHash;
import io.icebergcrypto.io.KeylessFileIO;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.ThreadPools;

/**
 * Drops a table and deletes its files. The catalog behind cannot decrypt, so this does it. All
 * manifest lists are read first: without the key nothing is dropped, unless that is asked for.
 */
public final class Purge {
  private final TableIdentifier identifier;
  private final String name;
  private final Catalog delegate;
  private final Supplier<Table> decorated;
  private final Supplier<FileIO> newFileIO;
  private final boolean hasKms;

  /**
   * Purges one table.
   *
   * @param name its full name
   * @param delegate the catalog behind
   * @param decorated loads the table, with encryption
   * @param newFileIO makes a FileIO of the class that the catalog behind would take
   * @param hasKms whether the catalog names a KMS
   */
  public Purge(
      TableIdentifier identifier,
      String name,
      Catalog delegate,
      Supplier<Table> decorated,
      Supplier<FileIO> newFileIO,
      boolean hasKms) {
    this.identifier = identifier;
    this.name = name;
    this.delegate = delegate;
    this.decorated = decorated;
    this.newFileIO = newFileIO;
    this.hasKms = hasKms;
  }

  /**
   * Drops the table and deletes the files that its manifests name.
   *
   * @return whether there was one
   * @throws IcebergCryptoException when a key cannot be had; nothing was dropped then
   */
  public boolean run() {
    TableOperations ops = operations();
    if (ops == null) {
      return delegate.dropTable(identifier, true);
    }

    TableMetadata metadata = ops.current();
    FileIO io = ops.io();
    Map<String, ManifestFile> manifests = manifests(ops);
    if (delegate instanceof HadoopCatalog) {
      // its drop deletes the table's folder, manifests and all: they are read before
      Set<String> elsewhere = new HashSet<>();
      if (metadata.propertyAsBoolean(
          TableProperties.GC_ENABLED, TableProperties.GC_ENABLED_DEFAULT)) {
        elsewhere.addAll(contentFiles(ops, manifests));
        elsewhere.removeIf(path -> path.startsWith(metadata.location() + "/"));
      }

      boolean dropped = delegate.dropTable(identifier, false);
      if (dropped) {
        CatalogUtil.deleteFiles(io, elsewhere, "data");
      }

      return dropped;
    }

    boolean dropped = delegate.dropTable(identifier, false);
    if (dropped) {
      CatalogUtil.dropTableData(io, metadata);
    }

    return dropped;
  }

  /**
   * Reads all manifest lists of an encrypted table.
   *
   * @throws IcebergCryptoException when a key cannot be had
   */
  public void check() {
    TableOperations ops = operations();
    if (ops != null) {
      manifests(ops);
    }
  }

  /**
   * Drops a table whose key is lost, and deletes all files in its location.
   *
   * @throws InvalidConfigurationException when the table is not encrypted, or its key can be had;
   *     nothing was dropped then
   */
  public PurgedFiles runWithoutKey() {
    if (!(loadBehind() instanceof BaseTable table)) {
      throw new NotSupportedException(
              "nothing was dropped: its class in the catalog behind is not BaseTable",
              "Use DROP TABLE without PURGE.")
          .inTable(name);
    }

    TableMetadata metadata = table.operations().current();
    requireLostKey(metadata);
    try (FileIO own = ownStorage(table)) {
      FileIO io = KeylessFileIO.storageBelow(own == null ? MetadataFileIO.below(table.io()) : own);
      return new KeylessPurge(name, metadata, io).run(() -> delegate.dropTable(identifier, false));
    }
  }

  private Table loadBehind() {
    return MetadataHash.checked(name, () -> delegate.loadTable(identifier));
  }

  private void requireLostKey(TableMetadata metadata) {
    boolean encrypted =
        EncryptionProperties.keyId(metadata.properties()) != null
            || EncryptionProperties.masterKeyId(metadata) != null;
    try {
      if (encrypted) {
        check();
      }
    } catch (IcebergCryptoException e) {
      if (isLost(e)) {
        return;
      }

      throw tampered(e) || e instanceof PlaintextException || isOfStorage(e)
          ? e
          : e.withHint(
              "Is the key, or the KMS, gone for good? Then do this with a catalog that has no"
                  + " encryption.kms-type and no encryption.kms-impl.");
    }

    throw new InvalidConfigurationException(
            "nothing was dropped: "
                + (encrypted ? "its key can be had" : "it is not encrypted")
                + ", so its manifests tell its files",
            "Use DROP TABLE ... PURGE, which deletes these and no others.")
        .inTable(name);
  }

  /** A FileIO where the catalog behind gives none without a KMS, as Hive's does not; or null. */
  private FileIO ownStorage(BaseTable table) {
    try {
      table.io();
      return null;
    } catch (IllegalArgumentException e) {
      return newFileIO.get();
    }
  }

  /**
   * The operations of an encrypted table, or null when there is no such table or it has no key.
   * Where metadata is authenticated, that takes the key.
   */
  private TableOperations operations() {
    try {
      if (!(decorated.get() instanceof BaseTable table)) {
        return null;
      }

      TableOperations ops = table.operations();
      ops.encryption(); // a table that lost its key id is refused by it
      return EncryptionProperties.keyId(ops.current().properties()) != null ? ops : null;
    } catch (NoSuchTableException | NotFoundException e) {
      return null; // as the catalog behind handles it
    } catch (IcebergCryptoException e) {
      if (tampered(e)) {
        throw e; // says what to do with such a table
      }

      throw nothingDropped(loadBehind().location(), e);
    }
  }

  private Map<String, ManifestFile> manifests(TableOperations ops) {
    try {
      return reachable(ops).manifests(ops.current().snapshots());
    } catch (IcebergCryptoException e) {
      throw nothingDropped(ops.current().location(), e);
    }
  }

  private Set<String> contentFiles(TableOperations ops, Map<String, ManifestFile> manifests) {
    try {
      return reachable(ops).contentFiles(manifests.values());
    } catch (IcebergCryptoException e) {
      throw nothingDropped(ops.current().location(), e);
    }
  }

  private static ReachableFiles reachable(TableOperations ops) {
    return new ReachableFiles(ops.io(), ops.current().specsById(), ThreadPools.getWorkerPool());
  }

  private IcebergCryptoException nothingDropped(String location, IcebergCryptoException e) {
    String force =
        isLost(e)
            ? String.format(
                " Or, when the key is lost for good: CALL %s.system.purge_without_key(table =>"
                    + " '%s').",
                name.replaceFirst("\\..*", ""), identifier)
            : "";
    return e.inTable(name)
        .withHint(
            String.format(
                "Nothing was dropped. To drop the table all the same, use DROP TABLE without PURGE,"
                    + " which needs no key, and then delete the folder %s.%s",
                location, force));
  }

  /**
   * Whether the key cannot be had again by a login, a grant or a mended setting: the KMS has none
   * of that name, another has its name, or nobody says where the KMS is.
   */
  private boolean isLost(IcebergCryptoException e) {
    return e instanceof KeyNotFoundException
        || e instanceof BadWrappedKeyException
        || !hasKms && !isOfStorage(e);
  }

  /** A list that cannot be read, whatever the key: see {@link ReachableFiles}. */
  private static boolean isOfStorage(IcebergCryptoException e) {
    return e.getClass() == IcebergCryptoException.class;
  }

  /** A wrapped key that another key of the same name wrapped is a lost key. */
  private static boolean tampered(IcebergCryptoException e) {
    return e instanceof TamperedException && !(e instanceof BadWrappedKeyException);
  }
}
