package io.icebergcrypto.values;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.config.DroppedValueKey;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.types.Types;

/**
 * The table that keeps the value keys of a catalog: an encrypted table without rows, whose
 * properties are the wrapped keys. So they are where the keys of tables are, in metadata that the
 * catalog protects, and every catalog has them.
 */
public final class ValueKeyTable {
  private static final Schema NO_ROWS =
      new Schema(Types.NestedField.optional(1, "name", Types.StringType.get()));

  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final String table;
  private final String catalogName;

  /** The table that a catalog's properties name. It need not be there yet. */
  public ValueKeyTable(EncryptedCatalog catalog) {
    this.catalog = catalog;
    this.identifier = catalog.context().settings().valueKeyTable();
    this.table = catalog.context().fullName(identifier);
    this.catalogName = SqlNames.quoted(catalog.name());
  }

  /**
   * Reads all value keys, wrapped. The KMS is asked only for what checks the table's metadata.
   *
   * @return none when there is no table yet
   * @throws IcebergCryptoException when the table cannot be trusted
   */
  public ValueKeys load() {
    try {
      return of(catalog.loadTable(identifier));
    } catch (NoSuchTableException e) {
      return new ValueKeys(
          catalogName, table, null, List.of(), List.of(), Set.of(), catalog.context().kms());
    }
  }

  private ValueKeys of(Table loaded) {
    if (EncryptionProperties.keyId(loaded.properties()) == null) {
      boolean hasKeys = !ValueKeyProperties.of(loaded.properties()).isEmpty();
      throw new TamperedException(
              "it keeps the value keys of the catalog, and is not encrypted",
              (hasKeys
                      ? "It has value keys, and what they encrypted cannot be read without them:"
                          + " find out who created it or removed its key id, and restore it."
                      : "If you created it, drop it: create_value_key creates an encrypted one. If"
                          + " not, find out who put it there.")
                  + " To keep the keys in another table, set "
                  + ValueKeyProperties.TABLE
                  + ".")
          .inTable(table);
    }

    try {
      List<WrappedValueKey> versions = WrappedValueKey.all(loaded.properties());
      Set<String> refused =
          versions.stream()
              .map(WrappedValueKey::masterKeyId)
              .filter(id -> !catalog.context().allowedKeyIds().allows(id))
              .collect(Collectors.toSet());
      return new ValueKeys(
          catalogName,
          table,
          loaded.uuid().toString(),
          versions,
          DroppedValueKey.all(loaded.properties()),
          refused,
          catalog.context().kms());
    } catch (TamperedException e) {
      throw e.inTable(table);
    }
  }

  /**
   * Makes a value key. The first one makes the table, too, with the same master key.
   *
   * @param name what SQL calls it
   * @param masterKeyId the master key that wraps it
   * @throws InvalidConfigurationException when there is a value key of this name, or it is not a
   *     name
   * @throws IcebergCryptoException when the master key is not allowed or does not wrap
   */
  public ValueKeyEntry create(String name, String masterKeyId) {
    ValueKeyProperties.checkName(name);
    if (masterKeyId.isBlank()) {
      throw new InvalidConfigurationException(
          String.format("Value key '%s' was not created: the master key's id is empty", name),
          "Give the id of a master key in the KMS.");
    }

    catalog.context().checkMasterKey(table, masterKeyId);
    Table keeper = loadOrCreate(masterKeyId);
    checkIsNew(name, of(keeper)); // before the KMS is asked
    return add(keeper, name, masterKeyId, keys -> checkIsNew(name, keys));
  }

  private void checkIsNew(String name, ValueKeys keys) {
    if (keys.versions().stream().anyMatch(key -> key.name().equals(name))) {
      throw new InvalidConfigurationException(
          String.format("Catalog %s already has a value key '%s'", catalogName, name),
          String.format(
              "Use it, choose another name, or CALL %s.system.rotate_value_key(name => '%s',"
                  + " new_version => true), which adds a version.",
              catalogName, name));
    }
  }

  /**
   * Rewraps all versions of a value key; values stay as they are. The KMS may take its time: a
   * version that was dropped meanwhile stays dropped, and one that was rewrapped stays as it is
   * then.
   *
   * @param newMasterKeyId another master key; null: each version's own, whose newest version wraps
   * @return the versions as they are now
   * @throws KeyNotFoundException when there is no value key of this name
   * @throws NotSupportedException when a version was rewrapped meanwhile, by another master key
   *     than the new one
   */
  public List<ValueKeyEntry> rewrap(String name, String newMasterKeyId) {
    Table keeper = required(name);
    ValueKeys keys = of(keeper);
    if (newMasterKeyId != null) {
      catalog.context().checkMasterKey(table, newMasterKeyId);
    }

    Map<WrappedValueKey, WrappedValueKey> wrapped = new LinkedHashMap<>();
    for (WrappedValueKey key : keys.versions(name)) {
      byte[] bytes = keys.unwrap(key);
      String by = newMasterKeyId == null ? key.masterKeyId() : newMasterKeyId;
      wrapped.put(key, key.rewrapped(by, wrapped(keeper, by, bytes)));
    }

    List<WrappedValueKey> left = commitThoseLeft(keeper, name, wrapped, newMasterKeyId);
    return entries(left);
  }

  /** Iceberg's own update of properties would set all of them again on newer metadata. */
  private List<WrappedValueKey> commitThoseLeft(
      Table keeper,
      String name,
      Map<WrappedValueKey, WrappedValueKey> wrapped,
      String newMasterKeyId) {
    List<WrappedValueKey> left = new ArrayList<>();
    commit(
        keeper,
        () -> {
          left.clear();
          of(keeper).versions().stream()
              .filter(now -> wrapped.keySet().stream().anyMatch(key -> isSame(key, now)))
              .map(now -> wrapped.getOrDefault(now, now))
              .forEach(left::add);
          left.forEach(key -> requireMasterKey(name, key, newMasterKeyId));
          return left.stream()
              .collect(Collectors.toMap(WrappedValueKey::property, WrappedValueKey::toJson));
        });
    return left;
  }

  private static boolean isSame(WrappedValueKey version, WrappedValueKey other) {
    return version.property().equals(other.property());
  }

  /** Another client may have just wrapped it by another one. */
  private void requireMasterKey(String name, WrappedValueKey key, String masterKeyId) {
    if (masterKeyId != null && !masterKeyId.equals(key.masterKeyId())) {
      throw new NotSupportedException(
          String.format(
              "version %s of value key '%s' of catalog %s was wrapped by master key '%s' meanwhile",
              key.version(), name, catalogName, key.masterKeyId()),
          "Nothing was changed by this call. Call rotate_value_key again if need be.");
    }
  }

  /** A change of value keys, which no update of properties takes ({@code OwnProperties}). */
  private void commit(Table keeper, Supplier<Map<String, String>> properties) {
    CommitRetry.commit(
        table,
        ((HasTableOperations) keeper).operations(),
        keeper.properties(),
        base -> TableMetadata.buildFrom(base).setProperties(properties.get()).build());
  }

  /**
   * Adds a version to a value key: new values are encrypted with it, and older values are decrypted
   * with the versions that they were encrypted with.
   *
   * @param masterKeyId null: the one that wrapped the newest version
   */
  public ValueKeyEntry addVersion(String name, String masterKeyId) {
    Table keeper = required(name);
    List<WrappedValueKey> versions = of(keeper).versions(name);
    String by = masterKeyId != null ? masterKeyId : versions.get(versions.size() - 1).masterKeyId();
    catalog.context().checkMasterKey(table, by);
    return add(keeper, name, by, keys -> keys.versions(name));
  }

  /**
   * Drops a version of a value key, so that nobody can decrypt what it encrypted. Older metadata
   * files have it still, wrapped.
   *
   * @param version its id, in hexadecimal digits
   * @param confirm whether the caller wants that, and accepts the loss
   * @return the versions that are left
   * @throws KeyNotFoundException when there is no such value key, or it has no such version
   * @throws AccessDeniedException when the catalog does not allow its master key
   * @throws NotSupportedException when it is the newest version, which encrypts
   * @throws InvalidConfigurationException when it is not confirmed
   */
  public List<ValueKeyEntry> drop(String name, String version, boolean confirm) {
    Table keeper = required(name);
    ValueKeys keys = of(keeper);
    List<WrappedValueKey> versions = keys.versions(name);
    WrappedValueKey dropped =
        versions.stream()
            .filter(key -> key.version().equalsIgnoreCase(version.strip()))
            .findFirst()
            .orElseThrow(() -> noVersion(name, version, versions));
    keys.checkAllowed(dropped);
    if (dropped == versions.get(versions.size() - 1)) {
      throw new NotSupportedException(
          String.format(
              "nothing was dropped: version %s of value key '%s' of catalog %s is its newest, which"
                  + " encrypts",
              dropped.version(), name, catalogName),
          String.format(
              "CALL %s.system.rotate_value_key(name => '%s', new_version => true), decrypt all"
                  + " values and encrypt them with the new version, and then drop this one. If the"
                  + " values must never be read again, destroy master key '%s' in the KMS, but only"
                  + " if key_versions_in_use and encryption_keys show that it wraps nothing else:"
                  + " older metadata files have the value key, too.",
              catalogName, name, dropped.masterKeyId()));
    }

    if (!confirm) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was dropped: nobody could decrypt what version %s of value key '%s' of"
                  + " catalog %s encrypted%s",
              dropped.version(),
              name,
              catalogName,
              dropped == versions.get(0) ? ", and hash_value of this key would fail" : ""),
          String.format(
              "Look for such values in each column that this key encrypts: SELECT count(*) FROM"
                  + " <table> WHERE hex(substr(try_to_binary(<column>, 'base64'), 2, 4)) IN"
                  + " ('%08X', '%08X'), of binary without try_to_binary. Decrypt them and"
                  + " encrypt them with the newest version, expire the earlier snapshots, and call"
                  + " this with confirm => true.",
              dropped.id(), dropped.id() | ValueCipher.DETERMINISTIC));
    }

    DroppedValueKey left = new DroppedValueKey(name, dropped.id(), dropped.createdAtMs());
    String json = left.toJson(System.currentTimeMillis());
    commit(keeper, () -> Map.of(dropped.property(), json));
    return entries(versions.stream().filter(key -> key != dropped).toList());
  }

  private KeyNotFoundException noVersion(
      String name, String version, List<WrappedValueKey> versions) {
    return new KeyNotFoundException(
        String.format(
            "Value key '%s' of catalog %s has no version '%s'", name, catalogName, version),
        "It has "
            + versions.stream().map(WrappedValueKey::version).collect(Collectors.joining(", "))
            + ", the oldest first.");
  }

  /** All versions of all keys, by name and age. */
  public List<ValueKeyEntry> entries() {
    return entries(load().versions());
  }

  private static List<ValueKeyEntry> entries(List<WrappedValueKey> versions) {
    return versions.stream().map(ValueKeyEntry::of).sorted().toList();
  }

  private Table required(String name) {
    try {
      return catalog.loadTable(identifier);
    } catch (NoSuchTableException e) {
      load().versions(name); // reports that it does not exist
      throw e;
    }
  }

  private Table loadOrCreate(String masterKeyId) {
    try {
      return catalog.loadTable(identifier);
    } catch (NoSuchTableException e) {
      catalog.context().kms().check(masterKeyId); // before anything is made
      createNamespace(identifier.namespace());
      try {
        return catalog
            .buildTable(identifier, NO_ROWS)
            .withProperty(EncryptionProperties.KEY_ID, masterKeyId)
            .create();
      } catch (AlreadyExistsException sameTime) {
        return catalog.loadTable(identifier);
      }
    }
  }

  private void createNamespace(Namespace namespace) {
    SupportsNamespaces namespaces = catalog;
    try {
      if (!namespace.isEmpty() && !namespaces.namespaceExists(namespace)) {
        namespaces.createNamespace(namespace);
      }
    } catch (AlreadyExistsException e) {
      return; // another client just did
    }
  }

  /**
   * Adds a version. The KMS may take its time, and another client may be faster.
   *
   * @param check throws if the keys that there are then do not take it
   */
  private ValueKeyEntry add(
      Table keeper, String name, String masterKeyId, Consumer<ValueKeys> check) {
    SecureRandom random = new SecureRandom();
    byte[] key = new byte[WrappedValueKey.LENGTH];
    random.nextBytes(key);
    int id;
    do {
      id = random.nextInt() & ~ValueCipher.DETERMINISTIC;
    } while (id == 0 || of(keeper).isTaken(id));

    int version = id;
    String checkValue = Kek.checkValue(ByteBuffer.wrap(key), name);
    ByteBuffer wrapped = wrapped(keeper, masterKeyId, key);
    AtomicReference<WrappedValueKey> made = new AtomicReference<>();
    commit(
        keeper,
        () -> {
          ValueKeys keys = of(keeper);
          if (made.get() != null && keys.isTaken(version)) {
            return Map.of(); // an answer was lost
          }

          check.accept(keys);
          long newest =
              keys.versions().stream().mapToLong(WrappedValueKey::createdAtMs).max().orElse(0);
          long now = Math.max(System.currentTimeMillis(), newest + 1);
          made.set(WrappedValueKey.of(name, version, masterKeyId, wrapped, now, checkValue));
          return Map.of(made.get().property(), made.get().toJson());
        });
    return ValueKeyEntry.of(made.get());
  }

  /** Wraps a key, whose bytes are overwritten then. */
  private ByteBuffer wrapped(Table keeper, String masterKeyId, byte[] key) {
    try {
      return CallContext.forTable(
          table,
          keeper.uuid().toString(),
          () -> UnwrapsAgain.wrapped(catalog.context().kms(), ByteBuffer.wrap(key), masterKeyId));
    } catch (IcebergCryptoException e) {
      throw e.inTable(table);
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }
}
