package io.icebergcrypto.cleanup;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.cleanup.ManifestListCheck.Unreadable;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.metadata.CheckedLoad;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
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
import org.apache.iceberg.rest.RESTCatalog;

/**
 * Drops a table and deletes its files. The catalog behind cannot decrypt, so this does it. All
 * manifest lists are read first: without the key nothing is dropped, unless that is asked for.
 *
 * @param load loads it with encryption
 * @param unsigned the same, without a look at whether its metadata is authenticated
 * @param delegate the catalog behind, which drops it
 * @param name its full name
 * @param hasKms whether the catalog names a KMS
 * @param mayShareFiles whether, by its gc.enabled, its files may be another table's or branch's
 */
public record Purge(
    Supplier<Table> load,
    Supplier<BaseTable> unsigned,
    Catalog delegate,
    TableIdentifier identifier,
    String name,
    boolean hasKms,
    Predicate<String> mayShareFiles) {
  /**
   * Drops the table and deletes the files that it reaches; a table that is not encrypted as the
   * catalog behind does.
   *
   * @return false when there is no such table
   * @throws NotSupportedException when its plaintext from before it was encrypted is still there;
   *     nothing was dropped then
   * @throws IcebergCryptoException when a file that names others cannot be read; nothing was
   *     dropped then
   */
  public boolean run() {
    BaseTable table = encryptedOrNull();
    if (table == null) {
      return delegate.dropTable(identifier, true);
    }

    TableOperations ops = table.operations();
    TableMetadata metadata = ops.current();
    refuseWithPlaintext(metadata);
    FileIO io = ops.io();
    if (isHadoop()) {
      // its drop deletes the table's folder, manifests and all: they are read before
      Set<String> elsewhere = filesElsewhere(ops);
      boolean dropped = drop(metadata);
      if (dropped) {
        CatalogUtil.deleteFiles(io, elsewhere, "table");
      }

      return dropped;
    }

    read(ops, reachable -> reachable.load(metadata.snapshots()));
    boolean dropped = drop(metadata);
    if (dropped) {
      CatalogUtil.dropTableData(io, metadata);
    }

    return dropped;
  }

  /**
   * Reads all manifest lists of an encrypted table, and keeps none.
   *
   * @param elsewhere who reads many lists; null: they are read here
   * @throws InvalidConfigurationException when its files may be another table's or branch's
   * @throws NotSupportedException when its plaintext from before it was encrypted is still there
   * @throws IcebergCryptoException when a list cannot be read
   */
  public void check(ManifestListCheck elsewhere) {
    BaseTable table = encryptedOrNull();
    if (table != null) {
      TableMetadata metadata = table.operations().current();
      refuseWithPlaintext(metadata);
      requireOwnFiles(metadata);
      checkLists(table, elsewhere);
      TableMetadata now = inForce();
      if (now != null && !Objects.equals(now.uuid(), metadata.uuid())) {
        throw changed();
      }
    }
  }

  private void checkLists(BaseTable table, ManifestListCheck elsewhere) {
    List<Snapshot> snapshots = table.operations().current().snapshots();
    read(
        table.operations(),
        reachable -> {
          if (elsewhere == null || !elsewhere.takes(snapshots.size())) {
            read(reachable, snapshots);
            return;
          }

          Optional<Unreadable> found = elsewhere.unreadable(table, snapshots);
          if (found.isPresent()) {
            read(reachable, List.of(found.get().snapshot())); // most often its error is known here
            throw new IcebergCryptoException(
                String.format(
                    "Spark's executors cannot read manifest list %s, which the driver can: %s",
                    found.get().snapshot().manifestListLocation(), found.get().why()),
                "Let executors use the KMS and the storage, too: they delete the files.");
          }
        });
  }

  private static void read(ManifestReads reachable, List<Snapshot> snapshots) {
    reachable.forEachList(snapshots, (snapshot, manifests) -> {});
  }

  /**
   * Drops an encrypted table whose master key is lost, and deletes all files in its location.
   *
   * @param confirm has to be true, as a wrong setting may look like a lost key
   * @param newFileIO makes storage where the catalog behind gives none without a KMS, as Hive's
   * @throws InvalidConfigurationException when the table is not encrypted, when the key of any of
   *     its snapshots can be had, or when it is not confirmed; nothing was dropped then
   * @throws NotSupportedException when the storage cannot be listed; nothing was dropped then
   * @throws IcebergCryptoException when something else than a lost key is wrong; nothing was
   *     dropped then; or when the table was dropped and files remain
   */
  public PurgeResult runWithoutKey(boolean confirm, Supplier<FileIO> newFileIO) {
    if (!(loadBehind() instanceof BaseTable table)) {
      throw new NotSupportedException(
              "nothing was dropped: its class in the underlying catalog is not BaseTable",
              "Use DROP TABLE without PURGE.")
          .inTable(name);
    }

    TableMetadata metadata = table.operations().current();
    boolean encrypted = EncryptionProperties.wasEncrypted(metadata);
    requireLostKey(metadata, encrypted);
    IcebergCryptoException loss = requireLostKey(metadata, encrypted); // one answer may be wrong
    if (!confirm) {
      throw unconfirmed(metadata, loss);
    }

    requireOwnFiles(metadata);
    try (FileIO own = hasStorage(table) ? null : newFileIO.get()) {
      FileIO io = TableFileIO.storageBelow(own == null ? FailFastFileIO.below(table.io()) : own);
      return new LostKeyPurge(name, metadata, io).run(() -> drop(metadata));
    } catch (IcebergCryptoException e) {
      throw e.hint().contains("DROP TABLE") ? withHintOnDrop(e, metadata) : e;
    }
  }

  /**
   * Drops the table by its name, as it was examined: that may have taken long.
   *
   * @return false when there is no such table
   * @throws InvalidConfigurationException when another client has changed it since, or has made
   *     another one; nothing was dropped then
   */
  private boolean drop(TableMetadata examined) {
    TableMetadata now = inForce();
    if (now == null) {
      return false;
    }

    if (!LoadedMetadata.isSame(now, examined)) {
      throw changed();
    }

    return delegate.dropTable(identifier, false);
  }

  /** Its metadata as the catalog behind has it now; null: there is no such table. */
  private TableMetadata inForce() {
    delegate.invalidateTable(identifier);
    try {
      return ((BaseTable) loadBehind()).operations().current();
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  private IcebergCryptoException changed() {
    return new InvalidConfigurationException(
            "nothing was dropped: another client changed it, or made it again, while its files"
                + " were examined",
            "Look at the table, and try again.")
        .inTable(name);
  }

  private void requireOwnFiles(TableMetadata metadata) {
    String gc = metadata.properties().get(TableProperties.GC_ENABLED);
    if (mayShareFiles.test(gc)) {
      String says =
          gc == null
              ? "without %s=true, other branches may need its files"
              : "%s=false says that its files may belong to another table";
      throw withHintOnDrop(
          new InvalidConfigurationException(
                  "nothing was dropped: " + String.format(says, TableProperties.GC_ENABLED),
                  "Use DROP TABLE without PURGE, which needs no key.")
              .inTable(name),
          metadata);
    }
  }

  private IcebergCryptoException withHintOnDrop(IcebergCryptoException e, TableMetadata metadata) {
    return leavesFiles()
        ? e
        : e.withHint(
            String.format(
                "DROP TABLE without PURGE %s %s: first move away what is to stay.",
                onDrop(), metadata.location()));
  }

  private Table loadBehind() {
    return CheckedLoad.checked(name, () -> delegate.loadTable(identifier));
  }

  /** The error that says that its key is lost. */
  private IcebergCryptoException requireLostKey(TableMetadata metadata, boolean encrypted) {
    Optional<IcebergCryptoException> loss;
    try {
      loss = encrypted ? loss() : Optional.empty();
    } catch (IcebergCryptoException e) {
      throw refused(metadata, e);
    }

    return loss.orElseThrow(
        () ->
            new InvalidConfigurationException(
                    "nothing was dropped: "
                        + (encrypted ? "its key is available" : "it is not encrypted")
                        + ", so its manifests list its files",
                    "Its rows can be read: keep the table, unless all of it is to be deleted. Then"
                        + " use DROP TABLE ... PURGE, which deletes these files and no others.")
                .inTable(name));
  }

  /** What fails for want of a key; empty: nothing does. */
  private Optional<IcebergCryptoException> loss() {
    Optional<IcebergCryptoException> ofLoad = Optional.empty();
    BaseTable table;
    try {
      table = loadedOrNull();
    } catch (IcebergCryptoException e) {
      if (!KeyLoss.causes(e, hasKms)) {
        throw e;
      }

      ofLoad = Optional.of(e);
      // one key authenticates the metadata, and snapshots may have others
      table = hasKms ? unsigned.get() : null;
    }

    return table == null
        ? ofLoad
        : KeyLoss.ofSnapshots(table, reads(table.operations()), ofLoad, hasKms);
  }

  private IcebergCryptoException refused(TableMetadata metadata, IcebergCryptoException e) {
    if (KeyLoss.isTampering(e)) {
      return e.inTable(name); // says what to do with such a table
    }

    IcebergCryptoException refused = nothingDropped(metadata.location(), e);
    return e instanceof PlaintextException
            || e instanceof InvalidConfigurationException
            || KeyLoss.isOfStorage(e)
        ? refused
        : refused.withHint(
            "Is the key, or the KMS, gone for good? Then do this with a catalog that has no"
                + " encryption.kms-type and no encryption.kms-impl.");
  }

  private IcebergCryptoException unconfirmed(TableMetadata metadata, IcebergCryptoException loss) {
    return new InvalidConfigurationException(
            String.format(
                "nothing was dropped: all files in %s would be deleted, because its key seems to be"
                    + " lost: %s",
                metadata.location(), loss.problem()),
            loss.hint()
                + " First make sure that this is the KMS, with the settings, that the table was"
                + " written with. If the key is lost for good, call purge_without_key with confirm"
                + " => true. Then its rows are lost even if the key is found.",
            loss)
        .inTable(name);
  }

  /** With the table, what leads to that plaintext would be gone. */
  private void refuseWithPlaintext(TableMetadata metadata) {
    String kept = metadata.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    if (kept != null) {
      String drop =
          String.format(
              " Or use DROP TABLE without PURGE, which leaves the plaintext: %s names its files,"
                  + " wherever they are; other tables may have some of them, too.",
              kept);
      throw new NotSupportedException(
              "its plaintext from before encrypt_table is still there",
              "Nothing was dropped. Call purge_plaintext, then drop it."
                  + (leavesFiles() ? drop : ""))
          .inTable(name);
    }
  }

  /** Its drop deletes the table's folder, and with it all that would lead to other files. */
  private boolean isHadoop() {
    return delegate instanceof HadoopCatalog;
  }

  /**
   * Whether a drop without purge surely deletes nothing: a REST server is not told to keep files.
   */
  private boolean leavesFiles() {
    return !isHadoop() && !(delegate instanceof RESTCatalog);
  }

  private String onDrop() {
    return isHadoop()
        ? "deletes the folder"
        : leavesFiles() ? "leaves its files in" : "lets the REST server delete the files in";
  }

  private static boolean hasStorage(BaseTable table) {
    try {
      table.io();
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * The table if it is encrypted, or null when there is no such table or it has no key. Where
   * metadata is authenticated, that takes the key.
   */
  private BaseTable encryptedOrNull() {
    try {
      return loadedOrNull();
    } catch (IcebergCryptoException e) {
      if (KeyLoss.isTampering(e)) {
        throw e; // says what to do with such a table
      }

      throw nothingDropped(loadBehind().location(), e);
    }
  }

  private BaseTable loadedOrNull() {
    try {
      if (!(load.get() instanceof BaseTable table)) {
        return null;
      }

      TableOperations ops = table.operations();
      ops.encryption(); // a table that lost its key id is refused by it
      return EncryptionProperties.keyId(ops.current().properties()) == null ? null : table;
    } catch (NoSuchTableException | NotFoundException e) {
      return null; // as the catalog behind handles it
    }
  }

  /** The files that are not in the table's folder, unless they are to stay. */
  private Set<String> filesElsewhere(TableOperations ops) {
    TableMetadata metadata = ops.current();
    String folder = folder(metadata) + "/";
    Set<String> elsewhere = ConcurrentHashMap.newKeySet();
    Consumer<String> add =
        path -> {
          if (!path.startsWith(folder)) {
            elsewhere.add(path);
          }
        };
    boolean collected =
        metadata.propertyAsBoolean(TableProperties.GC_ENABLED, TableProperties.GC_ENABLED_DEFAULT);
    read(
        ops,
        reachable -> {
          Map<String, ManifestFile> manifests = reachable.manifests(metadata.snapshots());
          if (collected) {
            reachable.forEachContentFile(manifests.values(), add);
            manifests.keySet().forEach(add);
            metadata.snapshots().forEach(snapshot -> add.accept(snapshot.manifestListLocation()));
            StatisticsPaths.of(metadata).forEach(add);
          }
        });
    return elsewhere;
  }

  /** What a drop deletes: a table that was registered has another folder than its location. */
  private static String folder(TableMetadata metadata) {
    String file = metadata.metadataFileLocation();
    String metadataFolder = MetadataPlace.folderOf(metadata.location() + "/metadata/");
    return MetadataPlace.of(file).folder().equals(metadataFolder)
        ? metadata.location()
        : new Path(file).getParent().getParent().toString();
  }

  private void read(TableOperations ops, Consumer<ManifestReads> reading) {
    try {
      reading.accept(reads(ops));
    } catch (IcebergCryptoException e) {
      throw nothingDropped(ops.current().location(), e);
    }
  }

  private static ManifestReads reads(TableOperations ops) {
    return new ManifestReads(ops.io(), ops.current().specsById(), AsCaller.workers());
  }

  private IcebergCryptoException nothingDropped(String location, IcebergCryptoException e) {
    String force =
        KeyLoss.causes(e, hasKms) && !KeyLoss.isOfVersion(e)
            ? String.format(
                " Or, when the key is lost for good: %s.", SqlNames.call("purge_without_key", name))
            : "";
    return e.inTable(name)
        .withHint(
            String.format(
                "Nothing was dropped. To drop the table anyway, use DROP TABLE without PURGE,"
                    + " which needs no key, and %s %s.%s",
                onDrop(), location, force));
  }
}
