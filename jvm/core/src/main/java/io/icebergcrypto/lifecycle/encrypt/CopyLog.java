package io.icebergcrypto.lifecycle.encrypt;

import static io.icebergcrypto.metadata.KeyEntries.json;
import static io.icebergcrypto.metadata.KeyEntries.key;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.GenericManifestFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * The groups that were copied so far, in files below the table's metadata folder, so that a run
 * that was killed can go on. Of each group there are two: an encrypted stream with what was copied
 * and the manifests, and then, as it counts from there on, a small one with the stream's key, which
 * is encrypted with the KEK as that of a manifest list is, and the wrapped KEK.
 */
public final class CopyLog {
  private static final int LAYOUT = 1;
  private static final Long NO_SNAPSHOT = -1L; // Iceberg does not encode null

  private final TableMetadata metadata;
  private final FileIO storage;
  private final String tableName;
  private final String keyId;
  private final Map<String, EncryptedKey> keks = new LinkedHashMap<>();
  private final List<CopiedGroup> groups = new ArrayList<>();
  private final List<String> files = new ArrayList<>();
  private int next = 1;

  private record Header(String body, EncryptedKey kek, EncryptedKey key) {}

  /** The stream's key, as that of a manifest list. */
  private record StreamKey(String location, String encryptionKeyID) implements ManifestListFile {
    @Override
    public ByteBuffer decryptKeyMetadata(EncryptionManager manager) {
      return EncryptionUtil.decryptManifestListKeyMetadata(this, manager);
    }
  }

  /** The metadata says which table it is, and where. */
  private CopyLog(TableMetadata metadata, FileIO storage, String tableName, String keyId) {
    this.metadata = metadata;
    this.storage = storage;
    this.tableName = tableName;
    this.keyId = keyId;
  }

  /**
   * Reads what earlier runs have copied.
   *
   * @param source the plaintext table as the catalog behind has it
   * @throws InvalidConfigurationException when that was for another master key
   * @throws TamperedException when it is not as it was written
   */
  public static CopyLog read(EncryptedCatalog catalog, BaseTable source, String keyId) {
    TableMetadata current = source.operations().current();
    CopyLog log = new CopyLog(current, source.operations().io(), source.name(), keyId);
    List<Header> headers = new ArrayList<>();
    for (Header header = log.header(); header != null; header = log.header()) {
      headers.add(header);
      log.keks.put(header.kek().keyId(), header.kek());
      log.next++;
    }

    if (!headers.isEmpty()) {
      Map<String, EncryptedKey> keys = new HashMap<>(log.keks);
      headers.forEach(header -> keys.put(header.key().keyId(), header.key()));
      TableMetadata form = EncryptedForm.of(current, keyId, keys.values());
      TableOperations ops = new MetadataInMemory(source.operations(), form);
      FileIO io = catalog.uncommitted(ops, source.name()).io();
      headers.forEach(header -> log.groups.add(log.body(io, header)));
    }

    return log;
  }

  /** The KEKs under which the groups are. */
  public List<EncryptedKey> keks() {
    return List.copyOf(keks.values());
  }

  /** What was copied so far. */
  public List<CopiedGroup> groups() {
    return groups;
  }

  /** Adds a group that was copied, with a KEK of the table to be. */
  public void add(BaseTable table, CopiedGroup group) {
    TableEncryptionManager manager = (TableEncryptionManager) table.encryption();
    String body = path(String.format("group-%06d-%s.bin", next, UUID.randomUUID()));
    EncryptedKey key = write(manager, table.io(), body, text(group));
    Map<String, Object> header = new LinkedHashMap<>();
    header.put("layout", LAYOUT);
    header.put("table_uuid", metadata.uuid());
    header.put("key_id", keyId);
    header.put("body", body);
    header.put("kek", json(manager.key(key.encryptedById())));
    header.put("key", json(key));
    while (!isWritten(headerPath(), Json.of(header))) {
      next++; // another run has done a group in the meantime
    }

    files.add(body);
    files.add(headerPath());
    next++;
    groups.add(group);
  }

  /** Deletes the log, once the table is encrypted. It is no harm when some of it is left. */
  public void delete() {
    for (String file : files) {
      try {
        storage.deleteFile(file);
      } catch (RuntimeException e) {
        // it has no key that is not encrypted, and no name of a file
      }
    }
  }

  /** Deletes the log of a run that was killed after its commit. */
  public static void deleteAll(BaseTable table) {
    String keyId = EncryptionProperties.keyId(table.properties());
    FileIO io = TableFileIO.storageBelow(table.operations().io());
    TableMetadata metadata = table.operations().current();
    CopyLog log = new CopyLog(metadata, io, table.name(), keyId);
    while (log.header() != null) {
      log.next++;
    }

    log.delete();
  }

  /** Where the log of a plaintext table's copy is; null: none has begun, or it was deleted. */
  public static String begun(BaseTable source) {
    TableMetadata current = source.operations().current();
    CopyLog log = new CopyLog(current, source.operations().io(), source.name(), null);
    return log.storage.newInputFile(log.headerPath()).exists() ? log.folder() : null;
  }

  // ---- headers

  private Header header() {
    String path = headerPath();
    String text;
    try (InputStream in = storage.newInputFile(path).newStream()) {
      text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (NotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + path, e);
    }

    if (text.isEmpty() || !text.endsWith("}")) {
      return null; // a run was killed as it wrote this; the next group takes its place
    }

    Header header = parsed(path, text);
    files.add(header.body());
    files.add(path);
    return header;
  }

  private Header parsed(String path, String text) {
    try {
      JsonObject json = Json.object(text);
      String keyThen = json.get("key_id").getAsString();
      if (json.get("layout").getAsInt() != LAYOUT
          || !json.get("table_uuid").getAsString().equals(metadata.uuid())) {
        throw foreign(path, "it is another table's, or of another version of this program", null);
      }

      if (!keyThen.equals(keyId)) {
        throw new InvalidConfigurationException(
                String.format(
                    "its encryption with key '%s' has begun, and now it is to be '%s'",
                    keyThen, keyId),
                String.format(
                    "Call encrypt_table with '%s', which goes on; rotate_master_key changes the key"
                        + " afterwards. Or delete the folder %s, which begins anew.",
                    keyThen, folder()))
            .inTable(tableName);
      }

      return new Header(
          json.get("body").getAsString(),
          key(json.getAsJsonObject("kek")),
          key(json.getAsJsonObject("key")));
    } catch (IllegalStateException | UnsupportedOperationException | NullPointerException e) {
      throw foreign(path, "it is no file of a copy", e);
    } catch (IllegalArgumentException | JsonParseException e) {
      throw foreign(path, "it is no file of a copy", e);
    }
  }

  private TamperedException foreign(String path, String what, RuntimeException e) {
    return new TamperedException(
        String.format("Table %s: %s cannot be used: %s", tableName, path, what),
        String.format(
            "Nothing was changed. Delete the folder %s, and call encrypt_table again: it begins"
                + " anew.",
            folder()),
        e);
  }

  private boolean isWritten(String path, String text) {
    try {
      if (storage.newInputFile(path).exists() && !isCutOff(path)) {
        return false;
      }

      try (OutputStream out = storage.newOutputFile(path).createOrOverwrite()) {
        out.write(text.getBytes(StandardCharsets.UTF_8));
      }

      return true;
    } catch (AlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }
  }

  private boolean isCutOff(String path) throws IOException {
    try (InputStream in = storage.newInputFile(path).newStream()) {
      return !new String(in.readAllBytes(), StandardCharsets.UTF_8).endsWith("}");
    }
  }

  // ---- bodies

  private static String text(CopiedGroup group) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("schema", group.schemaId());
    json.put("last_column", group.lastColumnId());
    json.put("units", group.units().stream().map(Unit::hex).toList());
    json.put("manifests", group.manifests().stream().map(CopyLog::encoded).toList());
    return Json.of(json);
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
    try (stream) {
      stream.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }

    try {
      return KeyRegisteringManager.register(
          manager, file.keyMetadata().copyWithLength(stream.storedLength()));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }
  }

  private CopiedGroup body(FileIO io, Header header) {
    try (InputStream in =
        io.newInputFile(new StreamKey(header.body(), header.key().keyId())).newStream()) {
      JsonObject json = Json.object(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      List<Unit> units = new ArrayList<>();
      strings(json.getAsJsonArray("units")).forEach(hex -> units.add(Unit.of(hex)));
      List<ManifestFile> manifests = new ArrayList<>();
      for (String manifest : strings(json.getAsJsonArray("manifests"))) {
        ManifestFile decoded = ManifestFiles.decode(Base64.getDecoder().decode(manifest));
        manifests.add(withSnapshotId(decoded, null));
      }

      return new CopiedGroup(
          json.get("schema").getAsInt(), json.get("last_column").getAsInt(), units, manifests);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + header.body(), e);
    }
  }

  private static List<String> strings(JsonArray array) {
    List<String> all = new ArrayList<>();
    for (JsonElement element : array) {
      all.add(element.getAsString());
    }

    return all;
  }

  // ---- places

  private String folder() {
    return path("");
  }

  private String headerPath() {
    return path(String.format("group-%06d.json", next));
  }

  private String path(String name) {
    return metadata.location()
        + "/metadata/encryption-"
        + metadata.uuid()
        + (name.isEmpty() ? "" : "/" + name);
  }
}
