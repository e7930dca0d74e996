package io.icebergcrypto.cleanup;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;

/** Tells a lost master key from other reasons why a table cannot be read. */
final class KeyLoss {
  private static final int NAMED = 5;

  private KeyLoss() {}

  /**
   * Whether the key may be lost: the KMS has none of that name, another key has its name, or no KMS
   * is configured. So it seems, too, where the KMS, the account or the keystore is another than the
   * table's: only people can tell. A KMS that answers with wrong bytes may give the right ones
   * tomorrow.
   */
  static boolean causes(IcebergCryptoException e, boolean hasKms) {
    return e instanceof KeyNotFoundException
        || e instanceof BadWrappedKeyException refused && !refused.answered()
        || !hasKms && e instanceof InvalidConfigurationException;
  }

  /**
   * Whether the KMS may well have the key, and lacks only a version of it, as an old copy does.
   * What needs it cannot be read, and is not lost.
   */
  static boolean isOfVersion(IcebergCryptoException e) {
    return e instanceof KeyNotFoundException missing && !missing.isOfKey();
  }

  /**
   * Reads a manifest list under each KEK that the snapshots need: under a KEK all can be read, or
   * none.
   *
   * @param reads reads lists; its errors are as {@link ManifestReads} says
   * @param ofLoad the error that says that the key of the metadata's signature is lost
   * @return the error that says that all keys are lost; empty: none is
   * @throws InvalidConfigurationException when only some are lost
   * @throws IcebergCryptoException when something else than a lost key is wrong
   */
  static Optional<IcebergCryptoException> ofSnapshots(
      BaseTable table,
      ManifestReads reads,
      Optional<IcebergCryptoException> ofLoad,
      boolean hasKms) {
    TableMetadata metadata = table.operations().current();
    Map<String, String> keks = new HashMap<>();
    metadata.encryptionKeys().forEach(key -> keks.put(key.keyId(), key.encryptedById()));
    Map<String, List<Snapshot>> byKek = new LinkedHashMap<>();
    for (Snapshot snapshot : metadata.snapshots()) {
      String kek = keks.getOrDefault(snapshot.keyId(), String.valueOf(snapshot.keyId()));
      byKek.computeIfAbsent(kek, none -> new ArrayList<>()).add(snapshot);
    }

    List<Snapshot> readable = new ArrayList<>();
    List<Snapshot> lost = new ArrayList<>();
    IcebergCryptoException loss = ofLoad.orElse(null);
    IcebergCryptoException other = ofLoad.filter(KeyLoss::isOfVersion).orElse(null);
    for (List<Snapshot> snapshots : byKek.values()) {
      try {
        reads.forEachList(snapshots.subList(0, 1), (snapshot, manifests) -> {});
        readable.addAll(snapshots);
      } catch (IcebergCryptoException e) {
        if (causes(e, hasKms)) {
          lost.addAll(snapshots);
          loss = e;
        }

        if (isOfVersion(e) || !causes(e, hasKms)) {
          other = e;
        }
      }
    }

    if (loss != null && !readable.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was dropped: %s can be read, and %s cannot: %s",
              named(readable),
              lost.isEmpty() ? "the signature of its metadata" : named(lost),
              loss.problem()),
          "Its key is not lost, or not all of it. "
              + loss.hint()
              + " Before anything else, copy the rows that can be read into a new table.",
          loss);
    }

    if (other != null) {
      throw other;
    }

    return Optional.ofNullable(loss);
  }

  private static String named(List<Snapshot> snapshots) {
    return String.format(
        "%,d of its snapshots (%s%s)",
        snapshots.size(),
        snapshots.stream()
            .limit(NAMED)
            .map(snapshot -> String.valueOf(snapshot.snapshotId()))
            .collect(Collectors.joining(", ")),
        snapshots.size() > NAMED ? ", ..." : "");
  }

  /** Whether a list or manifest cannot be read with any key: see {@link ManifestReads}. */
  static boolean isOfStorage(IcebergCryptoException e) {
    return e.getClass() == IcebergCryptoException.class;
  }

  /** Whether bytes were changed. A KEK that another key of the same name wrapped is a lost key. */
  static boolean isTampering(IcebergCryptoException e) {
    return e instanceof TamperedException && !(e instanceof BadWrappedKeyException);
  }
}
