package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.config.EncryptionProperties;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;

/**
 * How far a purge has come, in the table's properties, which are as safe as the rest of its
 * metadata: what is left of the old files says nothing that can be relied on.
 *
 * @param uuid the table's, when the purge began
 * @param kept where the table's old metadata is, by its properties
 */
record PurgeRecord(String tableName, TableOperations ops, String uuid, String kept) {
  /** The step that has begun. */
  static Phase begun(Map<String, String> properties) {
    return Phase.ofLabel(properties.get(EncryptionProperties.PLAINTEXT_PURGE));
  }

  /**
   * Records that a step begins: the files of those before are gone. Another call may be further.
   *
   * @throws IcebergCryptoException as {@link #require}
   */
  void begin(Phase phase) {
    commit(
        (before, builder) ->
            before.containsKey(EncryptionProperties.PLAINTEXT_PURGE)
                    && phase.isReached(begun(before))
                ? builder
                : builder.setProperties(
                    Map.of(EncryptionProperties.PLAINTEXT_PURGE, phase.label())));
  }

  /**
   * Looks whether this is still the table whose files are to be deleted. Verifying it takes hours,
   * in which it may be purged by another call; or dropped, and its old metadata registered again,
   * as to undo encrypt_table: then these files are the table's.
   *
   * @throws IcebergCryptoException when it is not
   */
  void require() {
    commit((before, builder) -> builder);
  }

  /**
   * The log of metadata files forgets those from before, which are gone: that takes a commit with a
   * short log.
   */
  void shortenLog() {
    commit(
        (before, builder) ->
            builder.setProperties(
                Map.of(
                    EncryptionProperties.PLAINTEXT_PURGE,
                    Phase.METADATA_FILES.label(),
                    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX,
                    "1",
                    EncryptionProperties.PLAINTEXT_VERSIONS,
                    before.getOrDefault(
                        EncryptionProperties.PLAINTEXT_VERSIONS,
                        before.getOrDefault(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, "")))));
  }

  /**
   * Nothing leads to the old files now, and the user's properties are restored; or another call has
   * done that meanwhile.
   */
  void forget() {
    commit(
        this::isKept,
        (before, builder) -> {
          builder.removeProperties(
              Set.of(
                  EncryptionProperties.PLAINTEXT_METADATA,
                  EncryptionProperties.PLAINTEXT_PURGE,
                  EncryptionProperties.PLAINTEXT_GC,
                  EncryptionProperties.PLAINTEXT_VERSIONS,
                  TableProperties.GC_ENABLED,
                  TableProperties.METADATA_PREVIOUS_VERSIONS_MAX));
          Map<String, String> back = new HashMap<>();
          String gc = before.get(TableProperties.GC_ENABLED);
          back.put(
              TableProperties.GC_ENABLED,
              "true".equalsIgnoreCase(gc) ? gc : before.get(EncryptionProperties.PLAINTEXT_GC));
          back.put(
              TableProperties.METADATA_PREVIOUS_VERSIONS_MAX,
              before.get(EncryptionProperties.PLAINTEXT_VERSIONS));
          back.values().removeIf(value -> value == null || value.isEmpty());
          return builder.setProperties(back);
        });
  }

  private void commit(
      BiFunction<Map<String, String>, TableMetadata.Builder, TableMetadata.Builder> change) {
    commit(
        base -> {
          if (!isKept(base)) {
            throw changed();
          }

          return true;
        },
        change);
  }

  private void commit(
      Predicate<TableMetadata> isToChange,
      BiFunction<Map<String, String>, TableMetadata.Builder, TableMetadata.Builder> change) {
    CommitRetry.commit(
        tableName,
        ops,
        Map.of(),
        base ->
            isToChange.test(base)
                ? change.apply(base.properties(), TableMetadata.buildFrom(base)).build()
                : base);
  }

  private boolean isKept(TableMetadata base) {
    return uuid.equals(base.uuid())
        && kept.equals(base.properties().get(EncryptionProperties.PLAINTEXT_METADATA));
  }

  private IcebergCryptoException changed() {
    return new IcebergCryptoException(
            String.format(
                "it no longer has %s=%s, whose files are not deleted, therefore",
                EncryptionProperties.PLAINTEXT_METADATA, kept),
            "Nothing more was deleted. Another purge_plaintext has finished meanwhile, or another"
                + " client has dropped the table and registered its old metadata, whose files are"
                + " the table's now.")
        .inTable(tableName);
  }
}
