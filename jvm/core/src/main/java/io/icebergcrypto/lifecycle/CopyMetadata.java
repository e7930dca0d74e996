package io.icebergcrypto.lifecycle;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * The metadata of a table's copy: all that the table's has, with the paths of the copy and the keys
 * of its manifest lists. It has no metadata log, as no older metadata file is copied.
 */
public final class CopyMetadata {
  /** Beyond it, manifests are not the files that are rewritten here. */
  private static final int NEWEST_FORMAT = 3;

  /** The properties that hold paths; the first two are of older versions of Iceberg. */
  private static final Set<String> PATHS =
      new TreeSet<>(
          Set.of(
              "write.object-storage.path",
              "write.folder-storage.path",
              TableProperties.WRITE_DATA_LOCATION,
              TableProperties.WRITE_METADATA_LOCATION));

  /**
   * A manifest list of the copy.
   *
   * @param path where it will be
   * @param key its key metadata, encrypted with a KEK
   */
  public record ManifestList(String path, EncryptedKey key) {}

  private CopyMetadata() {}

  /**
   * Checks that a table can be copied, as far as its metadata shows.
   *
   * @param name the table's full name
   * @throws InvalidConfigurationException when not all of it is below the source prefix
   * @throws NotSupportedException when Iceberg's format of it is a later one, or its encryption is
   *     not complete
   * @throws PlaintextException when a manifest list or a statistics file has no key
   */
  public static void check(String name, TableMetadata metadata, PathMapping paths) {
    if (metadata.formatVersion() > NEWEST_FORMAT) {
      throw new NotSupportedException(
              "nothing was written: it has format version " + metadata.formatVersion(),
              "This version copies tables up to format version " + NEWEST_FORMAT + ".")
          .inTable(name);
    }

    if (metadata.properties().containsKey(EncryptionProperties.PLAINTEXT_METADATA)) {
      throw new NotSupportedException(
              "nothing was written: its plaintext files from before encrypt_table are still there",
              "Call purge_plaintext first.")
          .inTable(name);
    }

    checkPath(name, "its location", metadata.location(), paths);
    if (metadata.metadataFileLocation() != null) {
      checkPath(name, "its metadata file", metadata.metadataFileLocation(), paths);
    }

    for (String property : PATHS) {
      if (metadata.properties().containsKey(property)) {
        checkPath(name, property, metadata.properties().get(property), paths);
      }
    }

    for (Snapshot snapshot : metadata.snapshots()) {
      String list = snapshot.manifestListLocation();
      checkPath(name, "manifest list", list, paths);
      checkKey(name, "manifest list", list, snapshot.keyId() != null);
    }

    Set<String> keyed = new HashSet<>();
    metadata.encryptionKeys().forEach(key -> keyed.add(TableEncryptionManager.statisticsPath(key)));
    for (String file : StatisticsPaths.of(metadata)) {
      checkPath(name, "statistics file", file, paths);
      checkKey(name, "statistics file", file, keyed.contains(file));
    }
  }

  /** Refuses a path of the table that is not below the source prefix. */
  public static void checkPath(String name, String what, String path, PathMapping paths) {
    if (!paths.covers(path)) {
      throw outside(name, what + " " + path, paths);
    }
  }

  /** The refusal of a file that is not below the source prefix. */
  public static InvalidConfigurationException outside(String name, String file, PathMapping paths) {
    return (InvalidConfigurationException)
        new InvalidConfigurationException(
                String.format(
                    "nothing was written: %s is not below source_prefix %s", file, paths.source()),
                "Give a folder that all files of the table are in, spelled as they are (DESCRIBE"
                    + " FORMATTED shows the table's location). rewrite_data_files writes the rows"
                    + " of files that are elsewhere to new ones below the location; older snapshots"
                    + " keep the old ones until they expire.")
            .inTable(name);
  }

  private static void checkKey(String name, String what, String path, boolean isKeyed) {
    if (!isKeyed) {
      throw plaintext(name, what + " " + path);
    }
  }

  /** The refusal of a file without a key. */
  public static PlaintextException plaintext(String name, String file) {
    return (PlaintextException)
        new PlaintextException(
                String.format("nothing was written: %s has no key: it is plaintext", file),
                "verify_table with all_snapshots=True lists such files, each with what to do."
                    + " Those that encrypt_table left, purge_plaintext deletes. Then copy the"
                    + " table.")
            .inTable(name);
  }

  /**
   * The metadata of the copy.
   *
   * @param metadata the table's, as {@link #check} found it right
   * @param kek the KEK that encrypts the keys of the copy's manifest lists
   * @param lists the manifest lists of the copy, by snapshot id
   */
  public static TableMetadata of(
      TableMetadata metadata, PathMapping paths, EncryptedKey kek, Map<Long, ManifestList> lists) {
    JsonObject json = CanonicalJson.of(metadata);
    move(json, "location", paths);
    if (json.get("properties") instanceof JsonObject properties) {
      PATHS.stream().filter(properties::has).forEach(name -> move(properties, name, paths));
    }

    for (JsonObject snapshot : objects(json, "snapshots")) {
      ManifestList list = lists.get(snapshot.get("snapshot-id").getAsLong());
      snapshot.addProperty("manifest-list", list.path());
      snapshot.addProperty("key-id", list.key().keyId());
    }

    for (String member : List.of("statistics", "partition-statistics")) {
      objects(json, member).forEach(file -> move(file, "statistics-path", paths));
    }

    json.add("metadata-log", new JsonArray());
    return withKeys(
        TableMetadataParser.fromJson(json.toString()), metadata.snapshots(), paths, kek, lists);
  }

  /** The keys of the copy's manifest lists in place of the table's; all others stay. */
  private static TableMetadata withKeys(
      TableMetadata copied,
      List<Snapshot> snapshots,
      PathMapping paths,
      EncryptedKey kek,
      Map<Long, ManifestList> lists) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(copied);
    Set<String> known = new HashSet<>();
    Set<String> ofLists = new HashSet<>();
    snapshots.forEach(snapshot -> ofLists.add(snapshot.keyId()));
    for (EncryptedKey key : copied.encryptionKeys()) {
      known.add(key.keyId());
      String statistics = TableEncryptionManager.statisticsPath(key);
      if (ofLists.contains(key.keyId())) {
        builder.removeEncryptionKey(key.keyId());
      } else if (statistics != null && paths.covers(statistics)) {
        Map<String, String> properties = new HashMap<>(key.properties());
        properties.replaceAll(
            (name, value) -> value.equals(statistics) ? paths.moved(value) : value);
        builder.removeEncryptionKey(key.keyId());
        builder.addEncryptionKey(
            new BaseEncryptedKey(
                key.keyId(), key.encryptedKeyMetadata(), key.encryptedById(), properties));
      }
    }

    if (!known.contains(kek.keyId())) {
      builder.addEncryptionKey(kek);
    }

    lists.values().forEach(list -> builder.addEncryptionKey(list.key()));
    return builder.build();
  }

  private static void move(JsonObject object, String member, PathMapping paths) {
    object.addProperty(member, paths.moved(object.get(member).getAsString()));
  }

  private static List<JsonObject> objects(JsonObject json, String member) {
    return json.get(member) instanceof JsonArray array
        ? array.asList().stream().map(JsonElement::getAsJsonObject).toList()
        : List.of();
  }
}
