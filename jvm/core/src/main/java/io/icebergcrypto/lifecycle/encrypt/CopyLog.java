package io.icebergcrypto.lifecycle.encrypt;

import static io.icebergcrypto.metadata.KeyEntries.json;
import static io.icebergcrypto.metadata.KeyEntries.key;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.KeyedFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.GenericManifestFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.PositionOutputStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The groups that were copied so far, in files below the table's metadata folder ({@link
 * CopyFolder}), so that a run that was killed can go on. Of each group there are three: a manifest,
 * an encrypted stream with what was copied, and then, as it counts from there on, a small header
 * with the stream's key, which is encrypted with the KEK as that of a manifest list is, and the
 * wrapped KEK. What is lost, or is not as it was written, costs that group.
 */
public final class CopyLog {
  private static final Logger LOG = LoggerFactory.getLogger(CopyLog.class);
  private static final int LAYOUT = 2;
  private static final Long NO_SNAPSHOT = -1L; // Iceberg does not encode null

  private final TableMetadata metadata;
  private final CopyFolder folder;
  private final String tableName;
  private final String keyId;
  private final Map<String, EncryptedKey> keks = new LinkedHashMap<>();
  private final List<LoggedGroup> groups = new ArrayList<>();
  private final List<String> bodies = new ArrayList<>();
  private int next = 1;

  private record Header(String body, EncryptedKey kek, EncryptedKey key) {}

  /** The metadata says which table it is, and where. */
  private CopyLog(BaseTable source, String keyId) {
    this.metadata = source.operations().current();
    this.folder = folder(source);
    this.tableName = source.name();
    this.keyId = keyId;
  }

  private static CopyFolder folder(BaseTable table) {
    return new CopyFolder(
        table.operations().current(), TableFileIO.storageBelow(table.operations().io()));
  }

  /**
   * Reads what earlier runs have copied.
   *
   * @param source the plaintext table as the catalog behind has it
   * @throws InvalidConfigurationException when that was for another master key
   * @throws NotSupportedException when another version of this program has written it
   */
  public static CopyLog read(EncryptedCatalog catalog, BaseTable source, String keyId) {
    CopyLog log = new CopyLog(source, keyId);
    List<Header> headers = log.headers();
    if (!headers.isEmpty()) {
      Map<String, EncryptedKey> keys = new HashMap<>();
      headers.forEach(
          header -> List.of(header.kek(), header.key()).forEach(key -> keys.put(key.keyId(), key)));
      TableMetadata form = EncryptedForm.of(log.metadata, keyId, keys.values());
      TableOperations ops = new MetadataInMemory(source.operations(), form);
      FileIO io = catalog.context().uncommitted(ops, source.name()).io();
      headers.forEach(header -> log.addBody(io, header));
    }

    return log;
  }

  /** The KEKs under which the groups are. */
  public List<EncryptedKey> keks() {
    return List.copyOf(keks.values());
  }

  /** What was copied so far. */
  public List<LoggedGroup> groups() {
    return groups;
  }

  /** Leaves out copies that are gone. */
  public void replaceAll(List<LoggedGroup> present) {
    List<LoggedGroup> all = List.copyOf(present);
    groups.clear();
    groups.addAll(all);
  }

  /** Records, before the first file is copied, that there are copies to be kept. */
  public void begin() {
    folder.begin();
  }

  /** Where the manifest of a group is to be that is then added. */
  public String newManifest() {
    return folder.newManifest();
  }

  /** Adds a group that was copied, with a KEK of the table to be. */
  public void add(BaseTable table, LoggedGroup group) {
    TableEncryptionManager manager = (TableEncryptionManager) table.encryption();
    String body = CopyFolder.body(group.manifests().get(0).path());
    EncryptedKey key = write(manager, table.io(), body, text(group));
    Map<String, Object> header = new LinkedHashMap<>();
    header.put("layout", LAYOUT);
    header.put("table_uuid", metadata.uuid());
    header.put("key_id", keyId);
    header.put("body", body);
    header.put("kek", json(manager.key(key.encryptedById())));
    header.put("key", json(key));
    while (!folder.isWritten(folder.header(next), Json.of(header))) {
      next++; // another run has done a group in the meantime
    }

    bodies.add(body);
    next++;
    groups.add(group);
  }

  /**
   * Deletes the log once the table is encrypted, with what other runs have written. It is no harm
   * when some of it is left: it has no key that is not encrypted, and no name of a file.
   */
  public void delete() {
    try {
      folder.delete(bodies);
    } catch (RuntimeException e) {
      LOG.warn("Table {}: could not delete all of {}", tableName, folder.path(), e);
    }
  }

  /** Deletes the log of runs that ended, or were killed, after the commit. */
  public static void deleteAll(BaseTable table) {
    CopyLog log = new CopyLog(table, EncryptionProperties.keyId(table.properties()));
    for (String text : log.folder.headers().values()) {
      try {
        String body = Json.object(text).get("body").getAsString();
        if (log.folder.isBody(body)) {
          log.bodies.add(body);
        }
      } catch (RuntimeException e) {
        // cut off, or of someone else: its body has another name
      }
    }

    log.delete();
  }

  /** Where the log of a plaintext table's copy is; null: none has begun, or it was deleted. */
  public static String begun(BaseTable source) {
    CopyFolder folder = folder(source);
    return folder.begunMillis() == null ? null : folder.path();
  }

  /**
   * Since when there are copies of a plaintext table that only the log names: no file of them is
   * older, by the clock of the storage.
   *
   * @return milliseconds since 1970; 0 when it is not known; null: no copy has begun
   */
  public static Long begunMillis(BaseTable source) {
    return folder(source).begunMillis();
  }

  // ---- headers

  private List<Header> headers() {
    List<Header> headers = new ArrayList<>();
    folder
        .headers()
        .forEach(
            (number, text) -> {
              if (number == next) {
                this.next = number + 1; // the first that is free, regardless of others
              }

              Header header = text == null ? null : parsed(folder.header(number), text);
              if (header != null) {
                headers.add(header);
                bodies.add(header.body());
              }
            });
    return headers;
  }

  /** Null: it is not as it was written, as when a run was killed meanwhile. */
  private Header parsed(String path, String text) {
    try {
      JsonObject json = Json.object(text);
      String keyThen = json.get("key_id").getAsString();
      if (json.get("layout").getAsInt() != LAYOUT) {
        throw new NotSupportedException(
                path + " was written by another version of iceberg-crypto",
                "Nothing was changed. Finish with that version; or delete this one file, and what"
                    + " it lists is copied again.")
            .inTable(tableName);
      }

      if (!json.get("table_uuid").getAsString().equals(metadata.uuid())) {
        return lost(path, null);
      }

      String body = json.get("body").getAsString();
      if (!folder.isBody(body)) { // which would be deleted with the log
        return lost(path, null);
      }

      if (!keyThen.equals(keyId)) {
        throw new InvalidConfigurationException(
                String.format(
                    "%s says that its encryption with key '%s' has begun, but now key '%s' is"
                        + " given",
                    path, keyThen, keyId),
                String.format(
                    "Nothing was changed. Anyone who can write there may have written that: do not"
                        + " use a key just because it is named there. If you know that you began"
                        + " with another key, call encrypt_table with that one; rotate_master_key"
                        + " changes it afterwards. If not, delete the folder %s, to start over.",
                    folder.path()))
            .inTable(tableName);
      }

      return new Header(body, key(json.getAsJsonObject("kek")), key(json.getAsJsonObject("key")));
    } catch (IllegalStateException | UnsupportedOperationException | NullPointerException e) {
      return lost(path, e);
    } catch (IllegalArgumentException | JsonParseException e) {
      return lost(path, e);
    }
  }

  private <T> T lost(String file, RuntimeException e) {
    LOG.warn(
        "Table {}: {} is gone, or not as it was written; what it lists is copied again",
        tableName,
        file,
        e);
    return null;
  }

  // ---- bodies

  private static String text(LoggedGroup group) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("schema", group.schemaId());
    json.put("last_column", group.lastColumnId());
    json.put("spec", group.spec());
    json.put("name_mapping", group.nameMapping());
    json.put("copies", group.copies().stream().map(CopyLog::array).toList());
    json.put("manifests", group.manifests().stream().map(CopyLog::encoded).toList());
    return Json.of(json);
  }

  private static List<Object> array(UnitCopy copy) {
    return List.of(copy.unit().hex(), copy.first(), copy.files(), copy.rows());
  }

  private static UnitCopy copy(JsonArray json) {
    return new UnitCopy(
        Unit.of(json.get(0).getAsString()),
        json.get(1).getAsInt(),
        json.get(2).getAsInt(),
        json.get(3).getAsLong());
  }

  private static String encoded(ManifestFile manifest) {
    try {
      return Base64.getEncoder()
          .encodeToString(ManifestFiles.encode(withSnapshotId(manifest, NO_SNAPSHOT)));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot encode manifest " + manifest.path(), e);
    }
  }

  private static ManifestFile withSnapshotId(ManifestFile manifest, Long snapshotId) {
    return GenericManifestFile.copyOf(manifest).withSnapshotId(snapshotId).build();
  }

  private static EncryptedKey write(
      TableEncryptionManager manager, FileIO io, String path, String text) {
    NativeEncryptionOutputFile file = manager.encrypt(io.newOutputFile(path));
    PositionOutputStream stream = file.encryptingOutputFile().create();
    try {
      try (stream) {
        stream.write(text.getBytes(StandardCharsets.UTF_8));
      }

      return KeyRegisteringManager.register(
          manager, file.keyMetadata().copyWithLength(stream.storedLength()));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }
  }

  private void addBody(FileIO io, Header header) {
    try {
      groups.add(body(io, header));
      keks.put(header.kek().keyId(), header.kek());
    } catch (NotFoundException | TamperedException e) {
      lost(header.body(), e);
    }
  }

  private LoggedGroup body(FileIO io, Header header) {
    try (InputStream in =
        io.newInputFile(new KeyedFile(header.body(), header.key().keyId())).newStream()) {
      JsonObject json = Json.object(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      List<UnitCopy> copies = new ArrayList<>();
      json.getAsJsonArray("copies").forEach(copy -> copies.add(copy(copy.getAsJsonArray())));
      List<ManifestFile> manifests = new ArrayList<>();
      for (JsonElement manifest : json.getAsJsonArray("manifests")) {
        ManifestFile decoded =
            ManifestFiles.decode(Base64.getDecoder().decode(manifest.getAsString()));
        manifests.add(withSnapshotId(decoded, null));
      }

      return new LoggedGroup(
          json.get("schema").getAsInt(),
          json.get("last_column").getAsInt(),
          json.get("spec").getAsString(),
          json.get("name_mapping").getAsString(),
          copies,
          manifests);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + header.body(), e);
    }
  }
}
