package io.icebergcrypto.integrity;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.relocated.com.google.common.base.Suppliers;

/**
 * Authenticates the metadata of one encrypted table, on catalogs that keep no more than a pointer
 * to metadata.json: each commit carries a {@link MetadataMac}, and metadata without a valid one is
 * refused. Anyone who can write to the storage, but may not use the master key, can then neither
 * change any field, nor put the metadata of another table or another version in place, nor (where
 * the pointer is out of reach, see {@link AuthenticatedFolder}) make the table look like one
 * without encryption. What remains possible is in docs/metadata-authentication.md.
 *
 * <p>The MAC is part of the metadata that it authenticates, so both are committed at once. A table
 * is authenticated from its CREATE on: that makes its first KEK, which Iceberg would make with the
 * first snapshot.
 */
public final class MetadataAuthenticator {
  private final Supplier<MetadataAuthentication> otherwise;
  private final String tableName;
  private final TableOperations delegate;
  private final boolean hadoop;
  private final SigningKeys keys;
  private final AuthenticatedContent content;

  private volatile TableMetadata checked;
  private volatile Unchecked unchecked;

  /** What a check has not passed, with the bytes that it was loaded from. */
  private record Unchecked(TableMetadata metadata, MetadataFile loadedFrom) {}

  private MetadataAuthenticator(
      Supplier<MetadataAuthentication> otherwise,
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      SigningKeys keys,
      AuthenticatedContent content) {
    this.otherwise = otherwise;
    this.tableName = tableName;
    this.delegate = delegate;
    this.hadoop = hadoop;
    this.keys = keys;
    this.content = content;
  }

  /**
   * Makes the authenticator of a table.
   *
   * @param delegate the table's operations in the catalog behind
   * @param hadoop whether that is a Hadoop catalog, with the pointer in the storage
   * @param setOnLoad table properties that the catalog behind sets in what it loaded, regardless of
   *     the file: they are not authenticated
   */
  public static MetadataAuthenticator of(
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      Supplier<? extends KeyManagementClient> kms,
      Set<String> setOnLoad) {
    return new MetadataAuthenticator(
        null,
        tableName,
        delegate,
        hadoop,
        new SigningKeys(tableName, kms),
        new AuthenticatedContent(setOnLoad));
  }

  /**
   * One that neither checks nor signs.
   *
   * @param otherwise says what else vouches for the metadata, or why nothing does
   */
  public static MetadataAuthenticator off(Supplier<MetadataAuthentication> otherwise) {
    return new MetadataAuthenticator(otherwise, null, null, false, null, null);
  }

  /** Whether checked metadata is authenticated. */
  public MetadataAuthentication status(TableMetadata metadata) {
    if (EncryptionProperties.keyId(metadata.properties()) == null) {
      return new MetadataAuthentication(false, "the table is not encrypted");
    }

    return isOn()
        ? new MetadataAuthentication(true, "each load checks its MAC, made with a KEK")
        : otherwise.get();
  }

  /**
   * Checks metadata that the catalog behind loaded. A table without any trace of encryption passes.
   *
   * @throws TamperedException when it is not what a client of this kind committed there
   * @throws InvalidConfigurationException when its master key cannot vouch for it
   */
  public void check(TableMetadata metadata) {
    if (metadata != null && metadata != checked) {
      check(metadata, metadata.metadataFileLocation());
      this.checked = metadata;
    }
  }

  /**
   * Checks metadata as that of a file.
   *
   * @param location where it was read from, by the catalog's word
   * @throws TamperedException as above
   * @throws InvalidConfigurationException as above
   */
  public void check(TableMetadata metadata, String location) {
    String known = location == null ? "" : location;
    byte[] bytes = FailFastFileIO.bytesOf(metadata);
    Unchecked last = unchecked;
    MetadataFile loadedFrom =
        bytes != null
            ? MetadataFile.of(known, bytes)
            : last != null && last.metadata() == metadata ? last.loadedFrom() : null;
    try {
      check(
          metadata,
          known,
          () -> MetadataFile.read(delegate.io(), known),
          loadedFrom,
          sha256 ->
              delegate instanceof StaticTableOperations ? ofOneFile() : ofTable(known, sha256));
    } catch (RuntimeException e) {
      this.unchecked = new Unchecked(metadata, loadedFrom); // the next check is of the same bytes
      throw e;
    }
  }

  /** Checks a metadata file that is not in the catalog yet: all that it holds. */
  public void check(MetadataFile file) {
    if (isOn()) {
      check(
          file.metadata(),
          file.location(),
          () -> file,
          file,
          sha256 -> toBeRegistered(file.location(), sha256));
    }
  }

  private void check(
      TableMetadata metadata,
      String location,
      Supplier<MetadataFile> reader,
      MetadataFile loadedFrom,
      UnaryOperator<String> hint) {
    if (isOn() && claimsEncryption(metadata, location)) {
      Supplier<MetadataFile> file = Suppliers.memoize(reader::get);
      new MetadataCheck(tableName, metadata, location, keys, content, file, loadedFrom, hint).run();
    }
  }

  private String ofTable(String file, String sha256) {
    return String.format(
        "Find out who wrote that file; nothing was read or written. A catalog with %s=off shows the"
            + " table as it is. If all is right, verify the table there, then sign what the file"
            + " has: %s. If not, restore the file from a backup or an object version; do not drop"
            + " the table. Without one, docs/metadata-authentication.md says how to register an"
            + " older file, which lacks the commits since.",
        EncryptionProperties.METADATA_AUTHENTICATION, callToSign(tableName, file, sha256));
  }

  /** There is no table to sign, to restore or to drop: the file may be of any catalog's. */
  private static String ofOneFile() {
    return String.format(
        "Nothing was read. No catalog vouches for a file that is read by its path, and the metadata"
            + " of tables in REST and Hive catalogs has no MAC: read the table by its name, in its"
            + " catalog. A catalog with %s=off reads the file as it is, no matter who wrote it.",
        EncryptionProperties.METADATA_AUTHENTICATION);
  }

  private String toBeRegistered(String file, String sha256) {
    return String.format(
        "Nothing was registered. The metadata of tables in REST and Hive catalogs, and of clients"
            + " that do not authenticate, has no MAC that is right here. If you know who wrote the"
            + " file, register it in a catalog with %s=off, verify the table there, and sign what"
            + " the file has: %s.",
        EncryptionProperties.METADATA_AUTHENTICATION, callToSign(tableName, file, sha256));
  }

  private boolean isOn() {
    return otherwise == null;
  }

  /** Whether anything in the metadata or its place says that the table is encrypted. */
  private static boolean claimsEncryption(TableMetadata metadata, String location) {
    return EncryptionProperties.wasEncrypted(metadata)
        || metadata.properties().containsKey(MetadataMac.PROPERTY)
        || AuthenticatedFolder.uuid(location) != null;
  }

  /** The call that signs the content of a metadata file. */
  public static String callToSign(String tableName, String file, String sha256) {
    return SqlNames.call(
        "authenticate_metadata",
        tableName,
        SqlNames.argument("metadata_file", file),
        SqlNames.argument("metadata_sha256", sha256));
  }

  /** Whether a file says what the catalog behind loaded. */
  public boolean isOf(MetadataFile file, TableMetadata loaded) {
    return content.isSame(file, loaded);
  }

  /**
   * Prepares metadata for a commit.
   *
   * @param base the metadata in force, null when the commit creates the table
   * @return the metadata to be committed in its place, with a MAC; for a table without a key id the
   *     same, without
   * @throws InvalidConfigurationException when its master key cannot vouch for it
   */
  public TableMetadata sign(TableMetadata base, TableMetadata metadata) {
    return sign(base, metadata, complete -> next(base, complete));
  }

  /**
   * Signs metadata for a file that the catalog does not have: that of a table's copy, which is to
   * be registered there.
   *
   * @param file where the file will be
   * @return the metadata with a MAC; the same where metadata is not authenticated
   */
  public TableMetadata signFor(String file, TableMetadata metadata) {
    return sign(null, metadata, complete -> MetadataPlace.of(file));
  }

  private TableMetadata sign(
      TableMetadata base, TableMetadata metadata, Function<TableMetadata, MetadataPlace> place) {
    if (!isOn()) {
      return metadata;
    }

    String keyId = EncryptionProperties.keyId(metadata.properties());
    if (keyId == null) {
      return metadata.properties().containsKey(MetadataMac.PROPERTY)
          ? TableMetadata.buildFrom(metadata).removeProperties(Set.of(MetadataMac.PROPERTY)).build()
          : metadata;
    }

    keys.requireAuthenticatedWrapping(keyId);
    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    EncryptedKey kek =
        SigningKeys.live(metadata, keyId)
            .orElseGet(
                () -> {
                  EncryptedKey made = keys.make(metadata, keyId);
                  builder.addEncryptionKey(made);
                  return made;
                });

    if (!hadoop) {
      String folder = AuthenticatedFolder.of(base, metadata);
      if (!folder.equals(metadata.properties().get(TableProperties.WRITE_METADATA_LOCATION))) {
        builder.setProperties(Map.of(TableProperties.WRITE_METADATA_LOCATION, folder));
      }
    }

    if (!metadata.properties().containsKey(MetadataMac.PROPERTY)) {
      builder.setProperties(Map.of(MetadataMac.PROPERTY, "")); // a place for it
    }

    TableMetadata complete = builder.build();
    TableMetadata signed = signed(complete, place, kek);
    if (signed == null) { // what it says changes when it is read: sign what it says then
      signed = signed(CanonicalJson.asRead(complete), place, kek);
    }

    if (signed == null || SigningKeys.retired(signed, kek) != null) {
      throw new IllegalStateException(
          "Nothing was committed: the MAC of the metadata of " + tableName + " would not match");
    }

    return signed;
  }

  /**
   * Metadata with a MAC.
   *
   * @return null when the MAC would not match what a reader has
   */
  private TableMetadata signed(
      TableMetadata complete, Function<TableMetadata, MetadataPlace> placeOf, EncryptedKey kek) {
    SecretKeySpec key = keys.keyOf(complete, kek);
    MetadataPlace place = placeOf.apply(complete);
    TableMetadata unsigned = withMac(complete, ""); // its maps now have the order of what is built
    byte[] json = CanonicalJson.written(unsigned);
    MetadataMac mac = MetadataMac.make(json, place, key, kek.keyId());
    json = mac.putInto(json);
    TableMetadata signed = withMac(unsigned, mac.value());
    if (Arrays.equals(json, CanonicalJson.written(signed))) {
      return signed;
    }

    // Iceberg's builder may reverse statistics files whose snapshot ids hash alike
    TableMetadata read = CanonicalJson.read(json);
    return Arrays.equals(json, CanonicalJson.written(read)) ? read : null;
  }

  /** The same metadata with another value of the MAC's property: no change, no later time. */
  private static TableMetadata withMac(TableMetadata metadata, String value) {
    return TableMetadata.buildFrom(metadata)
        .setProperties(Map.of(MetadataMac.PROPERTY, value))
        .discardChanges()
        .withMetadataLocation(null) // keeps the time of the last update
        .build();
  }

  /** Where the catalog behind will write the metadata file. */
  private MetadataPlace next(TableMetadata base, TableMetadata metadata) {
    String file = delegate.temp(metadata).metadataFileLocation("m");
    // the pointer will have it as the FileIO says it: Hadoop's takes a // for one /
    String folder = MetadataPlace.folderOf(delegate.io().newOutputFile(file).location());
    if (hadoop) {
      return new MetadataPlace(
          folder, base == null ? 1 : MetadataPlace.of(base.metadataFileLocation()).version() + 1);
    }

    return new MetadataPlace(
        folder, base == null ? 0 : MetadataPlace.metastoreVersion(base.metadataFileLocation()) + 1);
  }
}
