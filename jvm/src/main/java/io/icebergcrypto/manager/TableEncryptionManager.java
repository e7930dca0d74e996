package io.icebergcrypto.manager;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.StreamSupport;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedInputFile;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * A table's encryption manager that many threads may use and that learns the keys of later commits.
 * Iceberg's own is made anew at every refresh: whoever kept an older one, or its FileIO, then meets
 * manifest lists whose keys it does not know.
 *
 * <p>The keys are in a map of the superclass that is not made for threads. All writes to it are
 * under this manager's lock. Readers take no lock (they are in the superclass), which is safe as
 * long as the map need not grow its table: it is made with room to spare, and {@link #addKeys}
 * refuses when that is used up, so that the owner makes a larger one.
 *
 * <p>Kryo is told to leave this class to Java's serialization ({@link #writeReplace}). A subclass
 * needs the same annotation.
 */
@DefaultSerializer(JavaSerializer.class)
public class TableEncryptionManager extends StandardEncryptionManager {
  private static final int SPARE_KEYS = 512;

  private final String tableName;
  private final String tableKeyId;
  private final int dataKeyLength;
  private final KeyManagementClient kms;
  private final int capacity;
  // transient: on executors a manager only reads
  private final transient Set<String> known = ConcurrentHashMap.newKeySet();
  private final transient Map<String, EncryptedKey> statistics = new ConcurrentHashMap<>();

  /** See {@link EncryptionManagerFactory#create}. */
  public TableEncryptionManager(
      String tableName,
      List<EncryptedKey> keys,
      String tableKeyId,
      int dataKeyLength,
      KeyManagementClient kms) {
    super(
        withRoom(keys, keys.size() + SPARE_KEYS),
        tableKeyId,
        dataKeyLength,
        new TableKmsClient(tableName, kms));
    this.tableName = tableName;
    this.tableKeyId = tableKeyId;
    this.dataKeyLength = dataKeyLength;
    this.kms = kms;
    this.capacity = keys.size() + SPARE_KEYS;
    removeRoom();
    for (EncryptedKey key : keys) {
      known.add(key.keyId());
      learnStatistics(key);
    }
  }

  /** The table's full name. */
  public String tableName() {
    return tableName;
  }

  /** The id of the master key. */
  public String tableKeyId() {
    return tableKeyId;
  }

  /** The length of new DEKs and KEKs in bytes. */
  public int dataKeyLength() {
    return dataKeyLength;
  }

  /**
   * Learns keys from newer table metadata.
   *
   * @param keys all keys of the metadata; those already known are passed over
   * @return false when there is no room left and a new manager must be made
   */
  public synchronized boolean addKeys(Collection<EncryptedKey> keys) {
    List<EncryptedKey> added = keys.stream().filter(key -> !known.contains(key.keyId())).toList();
    Map<String, EncryptedKey> map = EncryptionUtil.encryptionKeys(this);
    if (map.size() + added.size() > capacity) {
      return false;
    }

    for (EncryptedKey key : added) {
      map.put(key.keyId(), copyOf(key));
      known.add(key.keyId());
      learnStatistics(key);
    }

    return true;
  }

  /**
   * Makes the key entry of a statistics file that was written.
   *
   * @param path the file's location, as the table's metadata will have it
   * @param metadata its key metadata, with its length
   */
  synchronized void registerStatistics(String path, NativeEncryptionKeyMetadata metadata) {
    EncryptedKey key = registerKeyMetadata(metadata).fileKey();
    EncryptedKey entry =
        new BaseEncryptedKey(
            key.keyId(),
            key.encryptedKeyMetadata(),
            key.encryptedById(),
            Map.of(StatisticsFiles.PATH, path));
    EncryptionUtil.encryptionKeys(this).put(key.keyId(), entry);
    statistics.put(path, entry);
  }

  /**
   * The key entry of a statistics file, of one that is not committed yet, too.
   *
   * @return null when the file is not encrypted, or not one of the table
   */
  public EncryptedKey statisticsKey(String path) {
    return statistics.get(path);
  }

  /** The path of the statistics file that a key entry is for; null for any other entry. */
  public static String statisticsPath(EncryptedKey key) {
    return key.properties() == null ? null : key.properties().get(StatisticsFiles.PATH);
  }

  private void learnStatistics(EncryptedKey key) {
    String path = statisticsPath(key);
    if (path != null) {
      statistics.put(path, key); // newer metadata may have the file written anew
    }
  }

  /** One of the keys that this manager knows, by its id; null when it does not know it. */
  public EncryptedKey key(String keyId) {
    return EncryptionUtil.encryptionKeys(this).get(keyId);
  }

  /** The file is going to be encrypted: it is taken out of {@link KeylessFileIO}'s guard. */
  @Override
  public NativeEncryptionOutputFile encrypt(OutputFile plainOutput) {
    return super.encrypt(KeylessOutputFile.encrypted(plainOutput));
  }

  /**
   * The file as an AES GCM stream or, for Parquet, as it is stored. Reading throws {@link
   * io.icebergcrypto.TamperedException}, which names table and file, where storage has fewer or
   * more bytes than the table's metadata says, or others. No request is made for it.
   */
  @Override
  public NativeEncryptionInputFile decrypt(EncryptedInputFile encrypted) {
    return decrypt(encrypted, new OpenFile());
  }

  @Override
  public Iterable<InputFile> decrypt(Iterable<EncryptedInputFile> encrypted) {
    OpenFile openFile = new OpenFile(); // a reader asks for all of its files at once
    return () ->
        StreamSupport.stream(encrypted.spliterator(), false)
            .map(file -> (InputFile) decrypt(file, openFile))
            .iterator();
  }

  private NativeEncryptionInputFile decrypt(EncryptedInputFile encrypted, OpenFile openFile) {
    return encrypted instanceof NativeEncryptionInputFile decrypted
        ? decrypted
        : new DecryptedInputFile(
            tableName, KeylessInputFile.withKey(encrypted), super::decrypt, openFile);
  }

  /** All keys that this manager knows, those of uncommitted manifest lists included. */
  public synchronized List<EncryptedKey> keys() {
    return List.copyOf(EncryptionUtil.encryptionKeys(this).values());
  }

  @Override
  public synchronized FileEncryptionKeys registerKeyMetadata(NativeEncryptionKeyMetadata metadata) {
    FileEncryptionKeys keys = super.registerKeyMetadata(metadata);
    known.add(keys.keyEncryptionKey().keyId());
    known.add(keys.fileKey().keyId());
    return keys;
  }

  /**
   * Serialization walks the key map: it gets a copy that no other thread changes. A subclass with
   * state or behaviour of its own overrides this.
   */
  protected Object writeReplace() {
    return new Serialized(tableName, keys(), tableKeyId, dataKeyLength, kms);
  }

  /** What travels to executors: wrapped keys and the KMS client's references. */
  private record Serialized(
      String tableName,
      List<EncryptedKey> keys,
      String tableKeyId,
      int dataKeyLength,
      KeyManagementClient kms)
      implements java.io.Serializable {
    private Object readResolve() {
      return new TableEncryptionManager(tableName, keys, tableKeyId, dataKeyLength, kms);
    }
  }

  private static EncryptedKey copyOf(EncryptedKey key) {
    return new BaseEncryptedKey(
        key.keyId(), key.encryptedKeyMetadata(), key.encryptedById(), key.properties());
  }

  private static List<EncryptedKey> withRoom(List<EncryptedKey> keys, int size) {
    List<EncryptedKey> padded = new ArrayList<>(keys);
    while (padded.size() < size) {
      padded.add(
          new BaseEncryptedKey(
              room(padded.size()), ByteBuffer.allocate(0), "room", Collections.emptyMap()));
    }

    return padded;
  }

  private void removeRoom() {
    Map<String, EncryptedKey> map = EncryptionUtil.encryptionKeys(this);
    for (int i = capacity - SPARE_KEYS; i < capacity; i++) {
      map.remove(room(i));
    }
  }

  private static String room(int index) {
    return "room-" + index;
  }
}
