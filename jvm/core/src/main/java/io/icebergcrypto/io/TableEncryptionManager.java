package io.icebergcrypto.io;

import com.esotericsoftware.kryo.DefaultSerializer;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.IcebergVersion;
import io.icebergcrypto.config.IcebergVersions;
import io.icebergcrypto.config.Keks;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.checked.AuthenticatedInputFile;
import io.icebergcrypto.io.checked.OpenParquetFile;
import io.icebergcrypto.io.cipher.AesGcm;
import io.icebergcrypto.io.stream.EncryptedOutput;
import io.icebergcrypto.io.stream.FileMetrics;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.KeyEntries;
import io.icebergcrypto.metadata.KeyedFile;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.iceberg.ManifestListFile;
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
 * A thread-safe encryption manager of one table, which learns the keys of later commits as long as
 * the table's operations live. Iceberg's own is replaced at every refresh: code that kept an older
 * one, or its FileIO, then meets manifest lists whose keys it does not know.
 *
 * <p>The keys are in a map of the superclass that is not thread-safe. All that reads it takes the
 * read lock; all that adds or removes keys takes the write lock. No KEK is unwrapped by the
 * superclass, which would keep it for an hour: {@link TableFileIO} and {@link StatisticsFiles}
 * decrypt key metadata by {@link #decryptKeyMetadata}. Registering keys asks the KMS for a KEK
 * under the lock, and learning waits for it.
 *
 * <p>Kryo is told to leave this class to Java's serialization ({@link #writeReplace}). A subclass
 * needs the same annotation.
 */
@DefaultSerializer(TableFileIO.AsJava.class)
public class TableEncryptionManager extends KeyRegisteringManager {
  /**
   * How long a key stays known after it has left the table's metadata. Older metadata is still read
   * and committed on, as when expire_snapshots looks for the files to delete.
   */
  static final Duration REMEMBERED = Duration.ofHours(1);

  /**
   * The same for a key that was in no metadata yet: Iceberg 1.11 adds a snapshot's key when that is
   * committed. Attempts and statistics that come to nothing leave theirs.
   */
  static final Duration AWAITED = Duration.ofDays(7);

  private final String tableName;
  private final KeyManagementClient kms;
  private final transient KekClient ofTable;
  private final WrittenFiles written = new WrittenFiles();
  private final int firstDataKeyLength; // the superclass's
  private volatile String tableKeyId;
  private volatile int dataKeyLength;
  private volatile Map<String, String> pageVersions = Map.of(); // table properties
  private transient volatile Supplier<TableEncryptionManager> newest; // null on executors
  // transient: what travels to executors is Serialized
  private final transient ReadWriteLock lock = new ReentrantReadWriteLock();
  private final transient Map<String, Long> missingSince = new HashMap<>(); // guarded by lock
  private final transient Set<String> uncommitted = new HashSet<>(); // guarded by lock
  private final transient Map<String, EncryptedKey> statistics = new ConcurrentHashMap<>();
  private transient List<EncryptedKey> learned = List.of(); // last; guarded by lock

  /** See {@link EncryptionManagerFactory#create}. */
  public TableEncryptionManager(
      String tableName,
      List<EncryptedKey> keys,
      String tableKeyId,
      int dataKeyLength,
      KeyManagementClient kms) {
    this(tableName, keys, tableKeyId, dataKeyLength, kms, new KekClient(tableName, kms));
  }

  @SuppressWarnings("this-escape") // nobody asks the client for a KEK before there is a manager
  private TableEncryptionManager(
      String tableName,
      List<EncryptedKey> keys,
      String tableKeyId,
      int dataKeyLength,
      KeyManagementClient kms,
      KekClient ofTable) {
    super(keys, tableKeyId, dataKeyLength, ofTable);
    AesGcm.prepare();
    ofTable.knows(this::keys);
    this.tableName = tableName;
    this.kms = kms;
    this.ofTable = ofTable;
    this.tableKeyId = tableKeyId;
    this.firstDataKeyLength = dataKeyLength;
    this.dataKeyLength = dataKeyLength;
    keys.forEach(this::learnStatistics);
  }

  /** The table's full name. */
  public String tableName() {
    return tableName;
  }

  /** The id of the master key, which wraps new KEKs. */
  public String tableKeyId() {
    return tableKeyId;
  }

  /** The length of new DEKs and KEKs in bytes. */
  public int dataKeyLength() {
    return dataKeyLength;
  }

  /**
   * Learns from newer table metadata, and forgets keys that have left it an hour ago.
   *
   * @param keys all keys of the metadata; known ones are not replaced
   * @param newDataKeyLength the length of new DEKs and KEKs in bytes: 16, 24 or 32
   */
  public final void learn(Collection<EncryptedKey> keys, int newDataKeyLength) {
    learn(keys, newDataKeyLength, false, System.currentTimeMillis());
  }

  final void learn(Collection<EncryptedKey> keys, int newDataKeyLength, long now) {
    learn(keys, newDataKeyLength, false, now);
  }

  /**
   * The same from metadata in force: it may have another master key, and keys that were rewrapped
   * or encrypted again, which then replace the known ones.
   *
   * @param newTableKeyId the id of the master key
   */
  public final void learnInForce(
      Collection<EncryptedKey> keys, String newTableKeyId, int newDataKeyLength) {
    lock.writeLock().lock();
    try {
      this.tableKeyId = newTableKeyId;
      learn(keys, newDataKeyLength, true, System.currentTimeMillis());
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void learn(
      Collection<EncryptedKey> keys, int newDataKeyLength, boolean inForce, long now) {
    lock.writeLock().lock();
    try {
      this.dataKeyLength = newDataKeyLength;
      Map<String, EncryptedKey> known = EncryptionUtil.encryptionKeys(this);
      List<EncryptedKey> before = learned;
      this.learned = List.copyOf(keys);
      for (int i = 0; i < learned.size(); i++) {
        // uncommitted metadata has the entries of what it was built from: there may be thousands
        if (inForce || i >= before.size() || learned.get(i) != before.get(i)) {
          learn(learned.get(i), known, inForce);
        }
      }

      if (known.size() > learned.size() || !missingSince.isEmpty()) {
        Set<String> inMetadata =
            learned.stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
        missingSince.keySet().removeAll(inMetadata);
        known.keySet().removeIf(id -> !inMetadata.contains(id) && isForgotten(id, now));
        statistics.values().removeIf(key -> !known.containsKey(key.keyId()));
      }
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void learn(EncryptedKey key, Map<String, EncryptedKey> known, boolean inForce) {
    uncommitted.remove(key.keyId());
    EncryptedKey before = known.get(key.keyId());
    if (before == null || inForce && !Kek.isWrappedAlike(before, key)) {
      known.put(key.keyId(), copyOf(key));
      learnStatistics(key);
    }
  }

  private boolean isForgotten(String missingId, long now) {
    long since = missingSince.computeIfAbsent(missingId, id -> now);
    Duration limit = uncommitted.contains(missingId) ? AWAITED : REMEMBERED;
    if (now - since <= limit.toMillis()) {
      return false;
    }

    missingSince.remove(missingId);
    uncommitted.remove(missingId);
    return true;
  }

  /**
   * Makes the key entry of a statistics file that was written.
   *
   * @param path the file's location, as the table's metadata will have it
   * @param metadata its key metadata, with its length
   */
  final void registerStatistics(String path, NativeEncryptionKeyMetadata metadata) {
    lock.writeLock().lock();
    try {
      EncryptedKey key = register(this, metadata);
      EncryptedKey entry =
          new BaseEncryptedKey(
              key.keyId(),
              key.encryptedKeyMetadata(),
              key.encryptedById(),
              Map.of(Keks.STATISTICS_PATH, path));
      EncryptionUtil.encryptionKeys(this).put(key.keyId(), entry);
      statistics.put(path, entry);
    } finally {
      lock.writeLock().unlock();
    }
  }

  /**
   * Decrypts the key metadata of a manifest list, or of a statistics file, whose entry is alike.
   *
   * @throws RuntimeException Iceberg's own, when the key is not known or does not decrypt
   */
  final ByteBuffer decryptKeyMetadata(ManifestListFile list) {
    EncryptedKey entry = key(list.encryptionKeyID());
    EncryptedKey kek = entry == null ? null : key(entry.encryptedById());
    if (kek != null) {
      return list.decryptKeyMetadata(manager(kek, entry, tableKeyId));
    }

    lock.readLock().lock();
    try {
      return list.decryptKeyMetadata(this); // throws
    } finally {
      lock.readLock().unlock();
    }
  }

  /**
   * Iceberg's own manager for one use of a KEK. Each keeps unwrapped KEKs for an hour, however
   * short the cache's time to live is: so none is used twice.
   */
  private StandardEncryptionManager manager(
      EncryptedKey kek, EncryptedKey entry, String masterKeyId) {
    return ofIceberg(tableName, List.of(kek, entry), masterKeyId, dataKeyLength, kms);
  }

  /**
   * Iceberg's own manager with some keys of a table. What the KMS returns for a KEK is checked
   * before it encrypts or decrypts: Iceberg would take anything, and keep it.
   */
  public static StandardEncryptionManager ofIceberg(
      String tableName,
      List<EncryptedKey> keys,
      String masterKeyId,
      int dataKeyLength,
      KeyManagementClient kms) {
    KekClient client = new KekClient(tableName, kms);
    client.knows(() -> keys);
    return new StandardEncryptionManager(keys, masterKeyId, dataKeyLength, client);
  }

  /**
   * Begins to unwrap the KEK of a manifest list that is soon to be read, without waiting for it: so
   * the tables of a join wait for the KMS at the same time.
   *
   * @param keyId of the manifest list; null or unknown: nothing is done
   */
  public final void unwrapAhead(String keyId) {
    EncryptedKey list = keyId == null ? null : key(keyId);
    EncryptedKey kek = list == null ? null : key(list.encryptedById());
    if (kek != null) {
      ofTable.unwrapAhead(kek.encryptedKeyMetadata(), tableKeyId);
    }
  }

  /**
   * The key entry of a statistics file, committed or not.
   *
   * @return null when the file is not encrypted, or not of this table
   */
  public EncryptedKey statisticsKey(String path) {
    return statistics.get(path);
  }

  /** The path of the statistics file that a key entry is for; null for any other entry. */
  public static String statisticsPath(EncryptedKey key) {
    return key.properties() == null ? null : key.properties().get(Keks.STATISTICS_PATH);
  }

  private void learnStatistics(EncryptedKey key) {
    String path = statisticsPath(key);
    if (path != null) {
      statistics.put(path, key); // the file may have been written again
    }
  }

  /** The key of this id; null when it is not known. */
  public EncryptedKey key(String keyId) {
    lock.readLock().lock();
    try {
      return EncryptionUtil.encryptionKeys(this).get(keyId);
    } finally {
      lock.readLock().unlock();
    }
  }

  /**
   * Encrypts a file. That takes it out of {@link PlaintextGuard}'s guard. Where Iceberg would lose
   * the key of a deletion vector, none is written: its first bytes tell, as Flink names it like a
   * data file. The commit refuses it, too, but a Flink job has completed the checkpoint by then,
   * and commits it again after each restart.
   */
  @Override
  public NativeEncryptionOutputFile encrypt(OutputFile plainOutput) {
    return encrypt(
        plainOutput,
        IcebergVersions.LOSES_KEYS_OF_DELETION_VECTORS
            ? this::withoutVectors
            : UnaryOperator.identity());
  }

  /** The same for a file whose key is kept in another way, which may be Puffin, too: statistics. */
  public final NativeEncryptionOutputFile encryptKeepingKey(OutputFile plainOutput) {
    return encrypt(plainOutput, UnaryOperator.identity());
  }

  private NativeEncryptionOutputFile encrypt(
      OutputFile plainOutput, UnaryOperator<OutputFile> guard) {
    OutputFile output = GuardedOutputFile.withoutGuard(plainOutput);
    int length = dataKeyLength;
    NativeEncryptionOutputFile file =
        length == firstDataKeyLength
            ? super.encrypt(output)
            : with(length, List.of()).encrypt(output);
    FileMetrics.encrypted();
    return new EncryptedOutput(
        file,
        () -> EncryptionProperties.checkPages(tableName, pageVersions),
        written.keeping(file),
        guard);
  }

  private OutputFile withoutVectors(OutputFile file) {
    return new GuardedOutputFile(
        file,
        EnumSet.complementOf(EnumSet.of(FileMagic.PUFFIN)),
        () -> IcebergVersion.lostKey(tableName, file.location()));
  }

  /**
   * Learns what the table's writers go by: where that has them leave parts of Parquet files in
   * plaintext, they get no such file.
   */
  public final void writesBy(Map<String, String> tableProperties) {
    Map<String, String> versions = new HashMap<>(tableProperties);
    versions.keySet().retainAll(EncryptionProperties.PAGE_VERSIONS);
    this.pageVersions = Map.copyOf(versions);
  }

  /**
   * Learns who loads the table again: its own metadata is as old as its last commit or refresh.
   *
   * @param load gives the manager of the table as it is in the catalog then
   */
  public final void reloadedBy(Supplier<TableEncryptionManager> load) {
    this.newest = load;
  }

  /**
   * The manager of the table as it is in the catalog now. This one learns nothing of it, and its
   * table shows the same metadata as before. Where nobody can load the table, it is this one.
   */
  final TableEncryptionManager newest() {
    Supplier<TableEncryptionManager> load = newest;
    return load == null ? this : load.get();
  }

  /** The manifests and manifest lists that this manager has encrypted, and no check has read. */
  public WrittenFiles written() {
    return written;
  }

  /**
   * The file as an AES GCM stream or, for Parquet, as it is stored. Reading throws {@link
   * io.icebergcrypto.TamperedException}, which names table and file, where the storage has other
   * bytes, or fewer or more, than the table's metadata says. That costs no request of its own.
   */
  @Override
  public NativeEncryptionInputFile decrypt(EncryptedInputFile encrypted) {
    return decrypt(encrypted, new OpenParquetFile());
  }

  @Override
  public Iterable<InputFile> decrypt(Iterable<EncryptedInputFile> encrypted) {
    OpenParquetFile openFile = new OpenParquetFile(); // a reader asks for all of its files at once
    return () ->
        StreamSupport.stream(encrypted.spliterator(), false)
            .map(file -> (InputFile) decrypt(file, openFile))
            .iterator();
  }

  private NativeEncryptionInputFile decrypt(
      EncryptedInputFile encrypted, OpenParquetFile openFile) {
    if (encrypted instanceof NativeEncryptionInputFile decrypted) {
      return decrypted;
    }

    FileMetrics.decrypted();
    return new AuthenticatedInputFile(
        tableName,
        GuardedInputFile.stored(encrypted),
        encrypted.keyMetadata(),
        super::decrypt,
        openFile);
  }

  /**
   * Makes a manager that knows more keys.
   *
   * @param more keys that the metadata in force may lack; those that this one knows are kept
   */
  public TableEncryptionManager knowingToo(Collection<EncryptedKey> more) {
    return knowing(more, kms);
  }

  /**
   * Makes a manager that knows the keys of older metadata, too, which nothing authenticates.
   *
   * @param allowed the master keys that the KMS may be asked for
   */
  public TableEncryptionManager forAudit(Collection<EncryptedKey> older, AllowedKeyIds allowed) {
    return knowing(older, new KekClient.Allowed(allowed, kms));
  }

  private TableEncryptionManager knowing(Collection<EncryptedKey> more, KeyManagementClient by) {
    Map<String, EncryptedKey> all = new HashMap<>();
    more.forEach(key -> all.put(key.keyId(), copyOf(key)));
    keys().forEach(key -> all.put(key.keyId(), key));
    return new TableEncryptionManager(
        tableName, List.copyOf(all.values()), tableKeyId, dataKeyLength, by);
  }

  /** All keys that this manager knows, those of uncommitted manifest lists included. */
  public List<EncryptedKey> keys() {
    lock.readLock().lock();
    try {
      return List.copyOf(EncryptionUtil.encryptionKeys(this).values());
    } finally {
      lock.readLock().unlock();
    }
  }

  @Override
  final <T> T registering(Function<StandardEncryptionManager, T> registration) {
    lock.writeLock().lock();
    try {
      Map<String, EncryptedKey> known = EncryptionUtil.encryptionKeys(this);
      EncryptedKey kek = liveKek();
      addUncommitted(kek, known);
      missingSince.remove(kek.keyId()); // it is awaited as long as what it encrypts
      StandardEncryptionManager other = with(dataKeyLength, List.of(kek));
      T registered = registration.apply(other);
      EncryptionUtil.encryptionKeys(other).values().forEach(key -> addUncommitted(key, known));
      return registered;
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void addUncommitted(EncryptedKey key, Map<String, EncryptedKey> known) {
    if (known.put(key.keyId(), key) == null) {
      uncommitted.add(key.keyId());
    }
  }

  /**
   * The table's newest KEK; a new one where that is too old for Iceberg, which would make its own.
   */
  private EncryptedKey liveKek() {
    String masterKeyId = tableKeyId;
    EncryptedKey newest =
        keys().stream()
            .filter(key -> masterKeyId.equals(key.encryptedById()))
            .max(Comparator.comparingLong(Kek::madeAt))
            .orElse(null);
    return newest != null && Kek.lives(newest, System.currentTimeMillis())
        ? newest
        : Kek.make(dataKeyLength, newest == null ? 0 : Kek.madeAt(newest), masterKeyId, ofTable);
  }

  /** The entry of a file's key, and that of the KEK which encrypts it. */
  record SealedKey(EncryptedKey kek, EncryptedKey key) {}

  /**
   * Encrypts the key metadata of a file that no metadata leads to, with the table's newest KEK.
   * This manager does not learn the entries.
   */
  final SealedKey sealed(NativeEncryptionKeyMetadata metadata) {
    StandardEncryptionManager keys = with(dataKeyLength, List.of(liveKek()));
    EncryptedKey key = register(keys, metadata);
    return new SealedKey(EncryptionUtil.encryptionKeys(keys).get(key.encryptedById()), key);
  }

  /**
   * Decrypts what {@link #sealed} made.
   *
   * @param kek the entry of the KEK, which the table may no longer have
   * @param key the file's own
   * @throws RuntimeException Iceberg's, when they do not decrypt
   */
  final ByteBuffer unsealed(EncryptedKey kek, EncryptedKey key, String location) {
    return new KeyedFile(location, key.keyId())
        .decryptKeyMetadata(manager(kek, key, kek.encryptedById()));
  }

  /** Iceberg's own manager, for a key length, a KEK or a master key other than the superclass's. */
  private StandardEncryptionManager with(int length, List<EncryptedKey> keks) {
    return new StandardEncryptionManager(keks, tableKeyId, length, ofTable);
  }

  /**
   * Serialization walks the key map: it gets a copy that no other thread changes. A subclass with
   * state or behaviour of its own overrides this.
   */
  protected Object writeReplace() {
    return new Serialized(
        tableName, KeyEntries.bytes(keys()), tableKeyId, dataKeyLength, pageVersions, kms);
  }

  /** What travels to executors: wrapped keys and the KMS client's references. */
  private record Serialized(
      String tableName,
      byte[] keys,
      String tableKeyId,
      int dataKeyLength,
      Map<String, String> pageVersions,
      KeyManagementClient kms)
      implements java.io.Serializable {
    private Object readResolve() {
      TableEncryptionManager manager =
          new TableEncryptionManager(
              tableName, KeyEntries.keys(keys), tableKeyId, dataKeyLength, kms);
      manager.writesBy(pageVersions);
      return manager;
    }
  }

  private static EncryptedKey copyOf(EncryptedKey key) {
    return new BaseEncryptedKey(
        key.keyId(), key.encryptedKeyMetadata(), key.encryptedById(), key.properties());
  }
}
