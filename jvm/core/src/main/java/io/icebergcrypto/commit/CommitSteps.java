package io.icebergcrypto.commit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.io.FileIO;

/**
 * The way of a commit: the steps that metadata goes through before the catalog behind gets it, the
 * same for the commits of a table and of a transaction, for a registration and for metadata that a
 * user signs.
 */
public final class CommitSteps {
  private final TableKeys keys;
  private final Supplier<? extends KeyManagementClient> kms;
  private final MetadataAuthenticator authenticator;
  private final List<Step> steps;
  private final boolean merges;

  /**
   * What the catalog behind is to commit.
   *
   * @param metadata signed, where the catalog does not vouch for it; then it lists no changes
   * @param changes those that the commit makes
   */
  public record Prepared(TableMetadata metadata, List<MetadataUpdate> changes) {}

  /** Takes the metadata to be committed and returns it, changed or not, or refuses it. */
  private interface Step {
    TableMetadata apply(Commit commit, TableMetadata metadata);
  }

  /**
   * The steps of one table's commits, in their order.
   *
   * @param kms the catalog's KMS client, which a first KEK needs
   * @param merges whether a server applies a commit's changes to the metadata in force
   * @param verified whether commits add only files that their caller has verified
   */
  public CommitSteps(
      TableKeys keys,
      CatalogSettings settings,
      MetadataAuthenticator authenticator,
      Supplier<? extends KeyManagementClient> kms,
      boolean merges,
      boolean verified) {
    this.keys = keys;
    this.kms = kms;
    this.authenticator = authenticator;
    this.merges = merges;
    CommitGuard guard = new CommitGuard(settings.plaintextFiles(), settings.statistics(), verified);
    this.steps =
        List.of(
            check((commit, table) -> settings.allowedKeyIds().check(commit.tableName(), table)),
            check((commit, table) -> StaleReplacement.refuse(commit, table, merges)),
            check(guard::checkProperties),
            check(guard::checkFilesWithKeys),
            ofEncrypted(check(guard::checkFiles)),
            ofEncrypted((commit, table) -> KeyRetention.withMissing(table, commit::keys)),
            ofEncrypted((commit, table) -> withFirstKek(table)), // unless that has added it
            ofEncrypted((commit, table) -> withYoungKek(table, settings.kekMaxAgeDays())),
            ofEncrypted((commit, table) -> KeyRetention.pruned(table, commit::keys)));
  }

  /**
   * Leads metadata through the steps, and signs it.
   *
   * @param base the metadata in force, which was checked; null when the commit creates the table
   * @param metadata the metadata to be
   * @param files makes the table's FileIO, which decrypts; with null, that of stored files
   * @return what to commit in place of it; the same metadata when nothing changed it
   * @throws IcebergCryptoException a refusal; nothing has been committed
   */
  public Prepared prepare(
      TableMetadata base, TableMetadata metadata, Function<TableEncryptionManager, FileIO> files) {
    Commit commit = new Commit(keys, base, metadata, files);
    TableMetadata prepared = metadata;
    for (Step step : steps) {
      prepared = step.apply(commit, prepared);
    }

    return new Prepared(authenticator.sign(base, prepared), prepared.changes());
  }

  /**
   * The metadata that puts back the key id of a master key's rotation, which a replacement of the
   * table has undone.
   *
   * @param before the metadata before a commit
   * @param now gives the metadata with it
   * @return null where nothing was undone
   */
  public TableMetadata withRotatedKeyId(TableMetadata before, Supplier<TableMetadata> now) {
    if (!merges) {
      return null; // the commit is refused
    }

    TableMetadata committed = now.get();
    String keyId = StaleReplacement.undoneKeyId(before, committed);
    return keyId == null
        ? null
        : TableMetadata.buildFrom(committed)
            .setProperties(Map.of(EncryptionProperties.KEY_ID, keyId))
            .build();
  }

  /**
   * An encrypted table's metadata with a KEK in it, which shows that the table is encrypted even
   * when the key id is removed before the first snapshot.
   *
   * @return the same metadata when it has one
   */
  public TableMetadata withFirstKek(TableMetadata metadata) {
    if (EncryptionProperties.masterKeyId(metadata) != null) {
      return metadata;
    }

    return withNewKek(metadata);
  }

  /** Metadata with a KEK that is not too old. One whose age cannot be told is left alone. */
  private TableMetadata withYoungKek(TableMetadata metadata, int maxAgeDays) {
    long made = Kek.newest(metadata).map(Kek::madeAt).orElse(0L);
    long age = System.currentTimeMillis() - made;
    return made <= 0 || age <= Duration.ofDays(maxAgeDays).toMillis()
        ? metadata
        : withNewKek(metadata);
  }

  private TableMetadata withNewKek(TableMetadata metadata) {
    String keyId = EncryptionProperties.keyId(metadata.properties());
    return TableMetadata.buildFrom(metadata)
        .addEncryptionKey(Kek.make(keys.tableName(), metadata, keyId, kms.get()))
        .build();
  }

  /** A step that refuses or changes nothing. */
  private static Step check(BiConsumer<Commit, TableMetadata> check) {
    return (commit, metadata) -> {
      check.accept(commit, metadata);
      return metadata;
    };
  }

  /** A step that metadata without a key id passes by. */
  private static Step ofEncrypted(Step step) {
    return (commit, metadata) ->
        EncryptionProperties.keyId(metadata.properties()) == null
            ? metadata
            : step.apply(commit, metadata);
  }
}
