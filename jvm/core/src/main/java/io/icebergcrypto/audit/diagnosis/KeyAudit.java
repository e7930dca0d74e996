package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.audit.diagnosis.KeyEntry.Kind;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.metadata.UnwrappedKek;
import io.icebergcrypto.values.ValueKeys;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * Looks at each key of one table's metadata, which may be hostile, and has the KMS unwrap KEKs and
 * value keys.
 */
final class KeyAudit {
  private static final Set<Finding.Kind> OF_TABLE =
      Set.of(
          Finding.Kind.KEY_ID_REMOVED,
          Finding.Kind.KEY_ID_EMPTY,
          Finding.Kind.KEY_ID_CHANGED,
          Finding.Kind.NO_KEK,
          Finding.Kind.DATA_KEY_LENGTH);

  private final BaseTable table;
  private final boolean hive;
  private final TableMetadata metadata;
  private final AuditedKms kms;
  private final int maxAgeDays;
  private final Instant now = Instant.now();
  private final Map<String, EncryptedKey> entries = new LinkedHashMap<>();
  private final Set<String> keks = new HashSet<>();
  private final Map<String, Integer> uses = new HashMap<>();
  private final Map<String, Long> snapshotOf = new HashMap<>();
  private final Set<String> masters = new LinkedHashSet<>();
  private final Set<String> dead;
  private final List<WrappedValueKey> valueKeys;
  private final List<String> unreadable; // properties that should be value keys
  private final AllowedKeyIds allowed;

  /**
   * Looks at the metadata.
   *
   * @param hive whether it is a table of Hive
   * @param allowed the master keys that the catalog allows; for value keys of others the KMS is not
   *     asked
   */
  KeyAudit(BaseTable table, AuditedKms kms, int maxAgeDays, boolean hive, AllowedKeyIds allowed) {
    this.table = table;
    this.hive = hive;
    this.metadata = table.operations().current();
    this.kms = kms;
    this.maxAgeDays = maxAgeDays;
    this.allowed = allowed;
    metadata.encryptionKeys().forEach(key -> entries.put(key.keyId(), key));
    Kek.all(metadata).forEach(kek -> keks.add(kek.keyId()));
    this.dead = KeyRetention.unneeded(metadata, now.toEpochMilli());
    for (Snapshot snapshot : metadata.snapshots()) {
      use(snapshot);
    }

    masters.add(EncryptionProperties.keyId(metadata.properties()));
    entries.values().stream().filter(this::isKek).forEach(k -> masters.add(k.encryptedById()));
    this.unreadable = WrappedValueKey.unreadable(metadata.properties());
    Map<String, String> readable = new HashMap<>(metadata.properties());
    unreadable.forEach(readable::remove);
    this.valueKeys = WrappedValueKey.all(readable);
    valueKeys.stream()
        .map(WrappedValueKey::masterKeyId)
        .filter(allowed::allows)
        .forEach(masters::add);
    masters.remove(null);
  }

  private void use(Snapshot snapshot) {
    String id = snapshot.keyId();
    if (id == null) {
      return;
    }

    snapshotOf.put(id, snapshot.snapshotId());
    Set<String> seen = new HashSet<>(); // a key that encrypts itself would have no end
    while (id != null && seen.add(id)) {
      uses.merge(id, 1, Integer::sum);
      EncryptedKey key = entries.get(id);
      id = key == null ? null : key.encryptedById();
    }
  }

  private boolean isKek(EncryptedKey key) {
    return keks.contains(key.keyId());
  }

  /** Why the KMS did not answer for one of the master keys, or null. */
  String silence() {
    return masters.stream()
        .map(kms::silence)
        .filter(Objects::nonNull)
        .map(IcebergCryptoException::problem)
        .findFirst()
        .orElse(null);
  }

  /**
   * The keys.
   *
   * @param metadataProblem why the catalog would refuse the table, or null
   */
  List<KeyEntry> keys(String metadataProblem) {
    List<KeyEntry> keks =
        entries.values().stream()
            .filter(this::isKek)
            .map(this::kek)
            .sorted(Comparator.comparing(KeyEntry::kind).thenComparing(KeyAudit::newestFirst))
            .toList();
    Map<String, KeyEntry> byId = new HashMap<>();
    keks.forEach(kek -> byId.put(kek.keyId(), kek));
    TableEncryptionManager manager = manager();
    List<KeyEntry> others =
        entries.values().stream()
            .filter(key -> !isKek(key))
            .map(key -> fileKey(key, byId.get(key.encryptedById()), manager))
            .toList();

    List<KeyEntry> wrapped = new ArrayList<>(keks);
    valueKeys.stream()
        .sorted(Comparator.comparing(WrappedValueKey::name))
        .forEach(key -> wrapped.add(value(key)));
    unreadable.forEach(property -> wrapped.add(unreadable(property)));
    List<KeyEntry> all = new ArrayList<>();
    for (String master : masters) {
      all.add(master(master, wrapped, all.isEmpty() ? metadataProblem : null));
    }

    all.addAll(wrapped);
    all.addAll(missing());
    all.addAll(others);
    all.sort(Comparator.comparing(KeyEntry::kind));
    return all;
  }

  private static int newestFirst(KeyEntry a, KeyEntry b) {
    return Comparator.comparing(
            KeyEntry::createdAt, Comparator.nullsLast(Comparator.<Instant>reverseOrder()))
        .compare(a, b);
  }

  /** It decrypts the entries of files with what the KMS unwrapped; null without a master key. */
  private TableEncryptionManager manager() {
    return masters.isEmpty()
        ? null
        : new TableEncryptionManager(
            table.name(), metadata.encryptionKeys(), masters.iterator().next(), 16, kms);
  }

  private KeyEntry master(String id, List<KeyEntry> wrapped, String metadataProblem) {
    List<KeyEntry> own =
        wrapped.stream().filter(k -> k.kmsAnswers() != null && id.equals(k.encryptedBy())).toList();
    String refusal = null;
    boolean answers = own.stream().anyMatch(KeyEntry::kmsAnswers);
    if (!answers) { // it is gone, or what it wrapped is not its own, or there is nothing
      refusal = refusal(() -> kms.tryWrap(id));
      answers = refusal == null;
    }

    boolean first = id.equals(masters.iterator().next());
    return new KeyEntry(
        id,
        Kind.MASTER,
        null,
        null,
        null,
        own.stream().mapToInt(KeyEntry::snapshots).sum(),
        false,
        answers,
        authenticated(id),
        joined(refusal, metadataProblem, first ? tableProblem() : null),
        null,
        null,
        null);
  }

  /** What is wrong with the table as a whole, and so with the use of all its keys. */
  private String tableProblem() {
    Stream<String> told =
        new MetadataFindings(table.name(), metadata, hive, null, null, false)
            .search().stream().filter(one -> OF_TABLE.contains(one.kind())).map(Finding::problem);
    return joined(
        Stream.concat(told, Stream.ofNullable(PlaintextFindings.count(metadata)))
            .toArray(String[]::new));
  }

  private KeyEntry kek(EncryptedKey key) {
    String masterId = key.encryptedById();
    boolean isDead = dead.contains(key.keyId());
    Unwrapped unwrapped =
        masterId == null || key.encryptedKeyMetadata() == null
            ? new Unwrapped(
                null, "it names no master key, or has no bytes: the metadata was edited")
            : isDead
                ? new Unwrapped(null, null)
                : unwrap(
                    key.encryptedKeyMetadata(),
                    masterId,
                    answer -> UnwrappedKek.problem(key, answer));
    long made = Kek.madeAt(key);
    Instant createdAt = made <= 0 ? null : Instant.ofEpochMilli(made);
    Duration age = createdAt == null ? null : Duration.between(createdAt, now);
    return new KeyEntry(
        key.keyId(),
        isDead ? Kind.DEAD : Kind.KEK,
        masterId,
        createdAt,
        age == null ? null : age.toDays(),
        uses.getOrDefault(key.keyId(), 0),
        !isDead && age != null && age.compareTo(Duration.ofDays(maxAgeDays)) > 0,
        isDead ? null : unwrapped.length() != null,
        masterId == null ? null : authenticated(masterId),
        joined(unwrapped.problem(), isDead ? null : timeProblem(age)),
        null,
        unwrapped.length(),
        masterId == null ? null : version(key.encryptedKeyMetadata(), masterId));
  }

  /** One that encrypts values of columns. */
  private KeyEntry value(WrappedValueKey key) {
    String masterId = key.masterKeyId();
    boolean asked = allowed.allows(masterId);
    Unwrapped unwrapped =
        asked
            ? unwrap(key.bytes(), masterId, answer -> ValueKeys.problem(key, answer))
            : new Unwrapped(
                null,
                String.format(
                    "the catalog does not allow its master key (%s)",
                    EncryptionProperties.ALLOWED_KEY_IDS));
    Instant createdAt = Instant.ofEpochMilli(key.createdAtMs());
    Duration age = Duration.between(createdAt, now);
    return new KeyEntry(
        key.name() + "." + key.version(),
        Kind.VALUE,
        masterId,
        createdAt,
        age.toDays(),
        0,
        false,
        asked ? unwrapped.length() != null : null,
        authenticated(masterId),
        joined(unwrapped.problem(), timeProblem(age)),
        null,
        unwrapped.length(),
        version(key.bytes(), masterId));
  }

  private static KeyEntry unreadable(String property) {
    return new KeyEntry(
        property.substring(ValueKeyProperties.PREFIX.length()),
        Kind.VALUE,
        null,
        null,
        null,
        0,
        false,
        null,
        null,
        "its property is not a value key: the table's properties were edited",
        null,
        null,
        null);
  }

  /**
   * What the KMS made of a wrapped key.
   *
   * @param length in bytes; null: it was not unwrapped
   * @param problem what is wrong; null: nothing
   */
  private record Unwrapped(Integer length, String problem) {}

  private Unwrapped unwrap(
      ByteBuffer wrapped, String masterId, Function<ByteBuffer, String> problemOf) {
    try {
      ByteBuffer answer =
          UnwrapsAgain.fitting(kms, wrapped, masterId, bytes -> problemOf.apply(bytes) == null);
      String problem = problemOf.apply(answer);
      return new Unwrapped(
          answer.remaining(), problem == null ? null : "the KMS gives " + problem + ", twice");
    } catch (IcebergCryptoException e) {
      return new Unwrapped(null, e.problem());
    }
  }

  /** The version of its master key, as far as the wrapped key, which may be hostile, tells. */
  private static Integer version(ByteBuffer wrapped, String masterId) {
    try {
      OptionalInt version =
          wrapped == null ? OptionalInt.empty() : WrappedKey.versionOf(wrapped, masterId);
      return version.isPresent() ? (Integer) version.getAsInt() : null;
    } catch (IcebergCryptoException e) { // the KMS, which was asked, refuses it
      return null;
    }
  }

  private static String timeProblem(Duration age) {
    if (age == null) {
      return "it does not say when it was created, so it is not known when it becomes overdue";
    }

    return age.compareTo(Duration.ofDays(-1)) < 0
        ? "its time is in the future: a clock was wrong, or the metadata was edited"
        : null;
  }

  /** The entry of a manifest list or of a statistics file, or one of another program. */
  private KeyEntry fileKey(EncryptedKey key, KeyEntry kek, TableEncryptionManager manager) {
    String path = TableEncryptionManager.statisticsPath(key);
    Long snapshot = snapshotOf.get(key.keyId());
    Kind kind =
        dead.contains(key.keyId())
            ? Kind.DEAD
            : snapshot != null ? Kind.MANIFEST_LIST : path != null ? Kind.STATISTICS : Kind.OTHER;
    Integer length = null;
    String problem = null;
    boolean readable =
        kek != null && Boolean.TRUE.equals(kek.kmsAnswers()) && kek.keyLength() != null;
    if (readable && (kind == Kind.MANIFEST_LIST || kind == Kind.STATISTICS)) {
      try {
        length = KeyedFile.decrypted(key.keyId(), manager).encryptionKey().remaining();
      } catch (RuntimeException e) { // Iceberg's own, of any type, for hostile bytes
        problem =
            String.format(
                "it does not decrypt with KEK %s: one of them was changed", key.encryptedById());
      }
    }

    return new KeyEntry(
        key.keyId(),
        kind,
        key.encryptedById(),
        null,
        null,
        uses.getOrDefault(key.keyId(), 0),
        false,
        null,
        null,
        problem,
        snapshot != null ? "snapshot " + snapshot : path,
        length,
        null);
  }

  /** The keys that snapshots name and the metadata does not have. */
  private List<KeyEntry> missing() {
    return snapshotOf.entrySet().stream()
        .filter(key -> !entries.containsKey(key.getKey()))
        .map(
            key ->
                new KeyEntry(
                    key.getKey(),
                    Kind.MANIFEST_LIST,
                    null,
                    null,
                    null,
                    uses.get(key.getKey()),
                    false,
                    null,
                    null,
                    "it is not in the metadata: its snapshots cannot be read",
                    "snapshot " + key.getValue(),
                    null,
                    null))
        .toList();
  }

  private Boolean authenticated(String masterId) {
    try {
      return kms.authenticatesWrapping(masterId);
    } catch (IcebergCryptoException e) {
      return null; // no KMS is configured, or it does not take such an id
    }
  }

  private static String refusal(Runnable call) {
    try {
      call.run();
      return null;
    } catch (IcebergCryptoException e) {
      return e.problem();
    }
  }

  private static String joined(String... problems) {
    List<String> all = Stream.of(problems).filter(Objects::nonNull).distinct().toList();
    return all.isEmpty() ? null : String.join("; ", all);
  }
}
