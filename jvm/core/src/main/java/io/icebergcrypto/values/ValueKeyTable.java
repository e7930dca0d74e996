package io.icebergcrypto.values;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.KeyManagementClient;
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
    this.identifier = ValueKeyProperties.table(catalog.properties());
    this.table = catalog.fullName(identifier);
    this.catalogName = table.substring(0, table.length() - identifier.toString().length() - 1);
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
      return new ValueKeys(catalogName, table, null, List.of(), Set.of(), catalog.kms());
    }
  }

  private ValueKeys of(Table loaded) {
    if (EncryptionProperties.keyId(loaded.properties()) == null) {
      throw new TamperedException(
              "it keeps the value keys of the catalog, and is not encrypted",
              "If you made it, drop it: create_value_key makes an encrypted one. If not, find out"
                  + " who put it there. To keep the keys in another table, set "
                  + ValueKeyProperties.TABLE
                  + ".")
          .inTable(table);
    }

    try {
      List<WrappedValueKey> versions =
          ValueKeyProperties.of(loaded.properties()).stream()
              .map(name -> WrappedValueKey.parse(name, loaded.properties().get(name)))
              .toList();
      Set<String> refused =
          versions.stream()
              .map(WrappedValueKey::masterKeyId)
              .filter(id -> !catalog.allowedKeyIds().allows(id))
              .collect(Collectors.toSet());
      return new ValueKeys(
          catalogName, table, loaded.uuid().toString(), versions, refused, catalog.kms());
    } catch (TamperedException e) {
      throw e.inTable(table);
    }
  }

  /**
   * Makes a value key. The first one makes the table, too, with the same master key.
   *
   * @param name what SQL calls it
   * @param masterKeyId the master key that wraps it
   * @throws InvalidConfigurationException when there is a value key of this name, or it is no name
   * @throws IcebergCryptoException when the master key is not allowed or does not wrap
   */
  public ValueKeyEntry create(String name, String masterKeyId) {
    ValueKeyProperties.checkName(name);
    if (masterKeyId.isBlank()) {
      throw new InvalidConfigurationException(
          String.format("Value key '%s' was not made: the master key's id is empty", name),
          "Give the id of a master key in the KMS.");
    }

    catalog.checkMasterKey(table, masterKeyId);
    Table keeper = loadOrCreate(masterKeyId);
    if (of(keeper).versions().stream().anyMatch(key -> key.name().equals(name))) {
      throw new InvalidConfigurationException(
          String.format("Catalog %s has a value key '%s' already", catalogName, name),
          String.format(
              "Use it, choose another name, or CALL %s.system.rotate_value_key(name => '%s',"
                  + " new_version => true), which adds a version.",
              catalogName, name));
    }

    return add(keeper, name, masterKeyId);
  }

  /**
   * Has all versions of a value key wrapped anew; values stay as they are.
   *
   * @param newMasterKeyId another master key; null: each version's own, whose newest version wraps
   * @return the versions as they are now
   * @throws KeyNotFoundException when there is no value key of this name
   */
  public List<ValueKeyEntry> rewrap(String name, String newMasterKeyId) {
    Table keeper = required(name);
    ValueKeys keys = of(keeper);
    if (newMasterKeyId != null) {
      catalog.checkMasterKey(table, newMasterKeyId);
    }

    UpdateProperties update = keeper.updateProperties();
    List<WrappedValueKey> wrapped =
        keys.versions(name).stream()
            .map(
                key -> {
                  byte[] bytes = keys.unwrap(key);
                  String by = newMasterKeyId == null ? key.masterKeyId() : newMasterKeyId;
                  return wrapped(keeper, name, key.id(), by, bytes, key.createdAtMs());
                })
            .toList();
    wrapped.forEach(key -> update.set(key.property(), key.toJson()));
    commit(keeper, update);
    return entries(wrapped);
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
    catalog.checkMasterKey(table, by);
    return add(keeper, name, by);
  }

  /**
   * The value keys that a master key wrapped, wrapped anew: for the rotation of the master key of
   * the table that keeps them.
   *
   * @param tableProperties of any table; only one that keeps value keys has some
   * @return what their properties are to be
   */
  public static Map<String, String> wrappedAnew(
      Map<String, String> tableProperties,
      String masterKeyId,
      String newMasterKeyId,
      KeyManagementClient kms) {
    Map<String, String> anew = new HashMap<>();
    for (String property : ValueKeyProperties.of(tableProperties)) {
      WrappedValueKey key = WrappedValueKey.parse(property, tableProperties.get(property));
      if (key.masterKeyId().equals(masterKeyId)) {
        byte[] bytes = KeyCache.copyOf(kms.unwrapKey(key.bytes(), masterKeyId));
        ByteBuffer wrapped = kms.wrapKey(ByteBuffer.wrap(bytes), newMasterKeyId);
        Arrays.fill(bytes, (byte) 0);
        anew.put(
            property,
            WrappedValueKey.of(key.name(), key.id(), newMasterKeyId, wrapped, key.createdAtMs())
                .toJson());
      }
    }

    return anew;
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
      load().versions(name); // says that there are none
      throw e;
    }
  }

  private Table loadOrCreate(String masterKeyId) {
    try {
      return catalog.loadTable(identifier);
    } catch (NoSuchTableException e) {
      catalog.kms().check(masterKeyId); // before anything is made
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
      return; // somebody else just did
    }
  }

  private ValueKeyEntry add(Table keeper, String name, String masterKeyId) {
    SecureRandom random = new SecureRandom();
    byte[] key = new byte[ValueCipher.KEY_LENGTH];
    random.nextBytes(key);
    Set<Integer> taken =
        of(keeper).versions().stream().map(WrappedValueKey::id).collect(Collectors.toSet());
    int id;
    do {
      id = random.nextInt() & ~ValueCipher.DETERMINISTIC;
    } while (id == 0 || taken.contains(id));

    long newest =
        of(keeper).versions().stream().mapToLong(WrappedValueKey::createdAtMs).max().orElse(0);
    long now = Math.max(System.currentTimeMillis(), newest + 1);
    WrappedValueKey made = wrapped(keeper, name, id, masterKeyId, key, now);
    commit(keeper, keeper.updateProperties().set(made.property(), made.toJson()));
    return ValueKeyEntry.of(made);
  }

  /** Wraps a key, whose bytes are overwritten then. */
  private WrappedValueKey wrapped(
      Table keeper, String name, int id, String masterKeyId, byte[] key, long createdAtMs) {
    try {
      UnaryOperator<ByteBuffer> wrap = bytes -> catalog.kms().wrapKey(bytes, masterKeyId);
      ByteBuffer wrapped =
          KmsCaller.forTable(
              table, keeper.uuid().toString(), () -> wrap.apply(ByteBuffer.wrap(key)));
      return WrappedValueKey.of(name, id, masterKeyId, wrapped, createdAtMs);
    } catch (IcebergCryptoException e) {
      throw e.inTable(table);
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }

  private void commit(Table keeper, UpdateProperties update) {
    update.commit();
    keeper.refresh();
  }
}
