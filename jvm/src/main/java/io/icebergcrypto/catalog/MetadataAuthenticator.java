package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.MetadataCode.Place;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Authenticates the metadata of one encrypted table, on catalogs that keep no more than a pointer
 * to metadata.json: each commit carries a {@link MetadataCode}, and metadata without a valid one is
 * refused. Whoever writes to the storage, but may not use the master key, can then neither change
 * any field, nor put the metadata of another table or another version in place, nor (where the
 * pointer is out of reach, see {@link MetadataFolder}) make the table look like one without
 * encryption. What remains possible is in docs/metadata-authentication.md.
 *
 * <p>The code is part of the metadata that it authenticates, so both are committed at once. A table
 * is authenticated from its CREATE on: that makes its first KEK, which Iceberg would make with the
 * first snapshot.
 */
final class MetadataAuthenticator {
  private final boolean on;
  private final String tableName;
  private final TableOperations delegate;
  private final boolean hadoop;
  private final Supplier<? extends KeyManagementClient> kms;

  // by KEK; derived ones, which encrypt nothing
  private final Map<String, SecretKeySpec> keys = new ConcurrentHashMap<>();
  private volatile TableMetadata checked;

  private MetadataAuthenticator(
      boolean on,
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      Supplier<? extends KeyManagementClient> kms) {
    this.on = on;
    this.tableName = tableName;
    this.delegate = delegate;
    this.hadoop = hadoop;
    this.kms = kms;
  }

  /**
   * Makes the authenticator of a table.
   *
   * @param delegate the table's operations in the catalog behind
   * @param hadoop whether that is a Hadoop catalog, with the pointer in the storage
   */
  static MetadataAuthenticator of(
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      Supplier<? extends KeyManagementClient> kms) {
    return new MetadataAuthenticator(true, tableName, delegate, hadoop, kms);
  }

  /** One that neither checks nor signs. */
  static MetadataAuthenticator off() {
    return new MetadataAuthenticator(false, null, null, false, null);
  }

  /**
   * Checks metadata that the catalog behind loaded. A table without any trace of encryption passes.
   *
   * @throws TamperedException when it is not what a client of this kind committed there
   */
  void check(TableMetadata metadata) {
    if (metadata != null && metadata != checked) {
      check(metadata, metadata.metadataFileLocation());
      this.checked = metadata;
    }
  }

  /**
   * Checks metadata as that of a file.
   *
   * @param file where it was read from, by the catalog's word
   * @throws TamperedException as above
   */
  void check(TableMetadata metadata, String file) {
    if (!on || !claims(metadata, file)) {
      return;
    }

    String problem = problem(metadata, file == null ? "" : file);
    if (problem != null) {
      String catalog = tableName.replaceFirst("\\..*", "");
      throw new TamperedException(
              "its metadata is refused: " + problem + " (" + file + ")",
              String.format(
                  "Find out who wrote that file; nothing was read or written. A catalog with %s=off"
                      + " shows the table as it is. If all is right, verify the table there, then"
                      + " sign it: CALL %s.system.authenticate_metadata(table => '%s',"
                      + " metadata_file => '%s'). If not, restore the file, or drop the table"
                      + " without PURGE and register its last good metadata file.",
                  EncryptionProperties.METADATA_AUTHENTICATION, catalog, tableName, file))
          .inTable(tableName);
    }
  }

  /** Whether anything in the metadata or its place says that the table is encrypted. */
  private static boolean claims(TableMetadata metadata, String file) {
    return EncryptionProperties.keyId(metadata.properties()) != null
        || !metadata.encryptionKeys().isEmpty()
        || metadata.properties().containsKey(MetadataCode.PROPERTY)
        || file != null && MetadataFolder.uuid(file) != null;
  }

  /** What is wrong with metadata, or null. */
  private String problem(TableMetadata metadata, String file) {
    String owner = MetadataFolder.uuid(file);
    if (owner != null && !owner.equals(metadata.uuid())) {
      return String.format(
          "it is of another table (UUID %s) than the file's folder says (%s)",
          metadata.uuid(), owner);
    }

    String keyId = EncryptionProperties.keyId(metadata.properties());
    if (keyId == null) {
      String lost = EncryptionProperties.masterKeyId(metadata);
      return String.format(
          "%s is gone%s: a client without encryption, or somebody with access to the storage,"
              + " removed it",
          EncryptionProperties.KEY_ID, lost == null ? "" : " (it was '" + lost + "')");
    }

    String value = metadata.properties().get(MetadataCode.PROPERTY);
    MetadataCode code = MetadataCode.parse(value);
    if (code == null) {
      return value == null
          ? String.format(
              "it has no %s: a client that does not authenticate wrote the table, or somebody"
                  + " removed the code",
              MetadataCode.PROPERTY)
          : String.format("%s is not a code", MetadataCode.PROPERTY);
    }

    EncryptedKey kek = kek(metadata, keyId, code.kekId());
    if (kek == null) {
      return String.format(
          "its code was made with KEK %s, which is not among the keys of '%s'",
          code.kekId(), keyId);
    }

    SecretKeySpec key = keyOf(metadata, kek);
    Place place = Place.of(file);
    return code.matches(metadata, place, key) ? null : mismatch(metadata, code, place, key);
  }

  /** Why a code does not match: it tells old and foreign metadata from edited ones. */
  private static String mismatch(
      TableMetadata metadata, MetadataCode code, Place place, SecretKeySpec key) {
    String folder =
        metadata
            .properties()
            .getOrDefault(
                TableProperties.WRITE_METADATA_LOCATION, metadata.location() + "/metadata");
    Place own = new Place(Place.folderOf(folder + "/"), code.version());
    if (code.matches(metadata, own, key)) {
      return own.folder().equals(place.folder())
          ? String.format(
              "version %d of it was put in the place of version %d", own.version(), place.version())
          : String.format(
              "it is genuine, but of the table at %s and not of this one", metadata.location());
    }

    return code.version() < place.version()
        ? String.format(
            "version %d was committed by a client that does not authenticate (the last one that did"
                + " wrote version %d), or somebody made it look so",
            place.version(), code.version())
        : "it was changed after it was committed: its code does not match";
  }

  /**
   * Prepares metadata for a commit.
   *
   * @param base the metadata in force, null when the commit creates the table
   * @return the metadata to be committed in its place, with a code; for a table without a key id
   *     the same, without
   */
  TableMetadata sign(TableMetadata base, TableMetadata metadata) {
    if (!on) {
      return metadata;
    }

    String keyId = EncryptionProperties.keyId(metadata.properties());
    if (keyId == null) {
      return metadata.properties().containsKey(MetadataCode.PROPERTY)
          ? TableMetadata.buildFrom(metadata)
              .removeProperties(Set.of(MetadataCode.PROPERTY))
              .build()
          : metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    EncryptedKey kek = kekInUse(metadata, keyId);
    if (kek == null) {
      kek = NewKek.make(tableName, metadata, keyId, kms.get());
      builder.addEncryptionKey(kek);
    }

    if (!hadoop) {
      String folder = MetadataFolder.of(base, metadata);
      if (!folder.equals(metadata.properties().get(TableProperties.WRITE_METADATA_LOCATION))) {
        builder.setProperties(Map.of(TableProperties.WRITE_METADATA_LOCATION, folder));
      }
    }

    // as the file's readers will have it: what they check is what they parsed
    TableMetadata complete =
        TableMetadataParser.fromJson(TableMetadataParser.toJson(builder.build()));
    Place place = next(base, complete);
    SecretKeySpec key = keyOf(complete, kek);
    MetadataCode code = MetadataCode.of(complete, place, key, kek.keyId());
    TableMetadata signed = code.addTo(complete);
    if (!code.matches(signed, place, key)) {
      throw new IllegalStateException(
          "Nothing was committed: the code of the metadata of " + tableName + " would not match");
    }

    return signed;
  }

  /** Where the catalog behind will write the metadata file. */
  private Place next(TableMetadata base, TableMetadata metadata) {
    String file = delegate.temp(metadata).metadataFileLocation("m");
    // the pointer will have it as the FileIO says it: Hadoop's takes a // for one /
    String folder = Place.folderOf(delegate.io().newOutputFile(file).location());
    if (hadoop) {
      return new Place(
          folder, base == null ? 1 : Place.of(base.metadataFileLocation()).version() + 1);
    }

    return new Place(
        folder, base == null ? 0 : Place.metastoreVersion(base.metadataFileLocation()) + 1);
  }

  /** The KEK that readers of the table need anyway, so that checking costs no call of its own. */
  private static EncryptedKey kekInUse(TableMetadata metadata, String keyId) {
    Snapshot current = metadata.currentSnapshot();
    String listKey = current == null ? null : current.keyId();
    for (EncryptedKey key : metadata.encryptionKeys()) {
      if (listKey != null && listKey.equals(key.keyId())) {
        EncryptedKey kek = kek(metadata, keyId, key.encryptedById());
        if (kek != null) {
          return kek;
        }
      }
    }

    return metadata.encryptionKeys().stream()
        .filter(key -> keyId.equals(key.encryptedById()))
        .max(Comparator.comparingLong(MetadataAuthenticator::timestamp))
        .orElse(null);
  }

  private static EncryptedKey kek(TableMetadata metadata, String keyId, String kekId) {
    return metadata.encryptionKeys().stream()
        .filter(key -> key.keyId().equals(kekId) && Objects.equals(key.encryptedById(), keyId))
        .findFirst()
        .orElse(null);
  }

  private static long timestamp(EncryptedKey kek) {
    try {
      return Long.parseLong(kek.properties().getOrDefault(NewKek.TIMESTAMP, "0"));
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  private SecretKeySpec keyOf(TableMetadata metadata, EncryptedKey kek) {
    // the blob belongs to the name: a KEK that was wrapped anew is unwrapped anew
    String name =
        metadata.uuid() + kek.encryptedById() + encoded(kek.encryptedKeyMetadata().duplicate());
    SecretKeySpec known = keys.get(name);
    if (known != null) {
      return known;
    }

    try {
      ByteBuffer bytes = kms.get().unwrapKey(kek.encryptedKeyMetadata(), kek.encryptedById());
      SecretKeySpec key = MetadataCode.key(bytes, metadata.uuid());
      if (bytes.hasArray()) {
        Arrays.fill(bytes.array(), (byte) 0); // a copy
      }

      keys.put(name, key);
      return key;
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  private static String encoded(ByteBuffer bytes) {
    byte[] copy = new byte[bytes.remaining()];
    bytes.get(copy);
    return Base64.getEncoder().encodeToString(copy);
  }
}
