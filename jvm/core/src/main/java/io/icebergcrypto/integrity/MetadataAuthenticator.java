package io.icebergcrypto.integrity;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Authenticates the metadata of one encrypted table, on catalogs that keep no more than a pointer
 * to metadata.json: each commit carries a {@link MetadataMac}, and metadata without a valid one is
 * refused. Whoever writes to the storage, but may not use the master key, can then neither change
 * any field, nor put the metadata of another table or another version in place, nor (where the
 * pointer is out of reach, see {@link AuthenticatedFolder}) make the table look like one without
 * encryption. What remains possible is in docs/metadata-authentication.md.
 *
 * <p>The code is part of the metadata that it authenticates, so both are committed at once. A table
 * is authenticated from its CREATE on: that makes its first KEK, which Iceberg would make with the
 * first snapshot.
 *
 * <p>What is checked is what the catalog behind loaded. As a rule that is all that stands in the
 * file, and no file is read for the check. Where a client wrote it whose Iceberg knows more than
 * this one, the file is read, once, and the check is of those bytes; what was loaded must then be
 * what they say.
 */
public final class MetadataAuthenticator {
  private final MetadataAuthentication otherwise;
  private final String tableName;
  private final TableOperations delegate;
  private final boolean hadoop;
  private final SigningKeys keys;
  private final Set<String> setOnLoad;

  private volatile TableMetadata checked;

  private MetadataAuthenticator(
      MetadataAuthentication otherwise,
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      SigningKeys keys,
      Set<String> setOnLoad) {
    this.otherwise = otherwise;
    this.tableName = tableName;
    this.delegate = delegate;
    this.hadoop = hadoop;
    this.keys = keys;
    this.setOnLoad = setOnLoad;
  }

  /**
   * Makes the authenticator of a table.
   *
   * @param delegate the table's operations in the catalog behind
   * @param hadoop whether that is a Hadoop catalog, with the pointer in the storage
   * @param setOnLoad table properties that the catalog behind sets in what it loaded, whatever the
   *     file says: they are not authenticated
   */
  public static MetadataAuthenticator of(
      String tableName,
      TableOperations delegate,
      boolean hadoop,
      Supplier<? extends KeyManagementClient> kms,
      Set<String> setOnLoad) {
    return new MetadataAuthenticator(
        null, tableName, delegate, hadoop, new SigningKeys(tableName, kms), setOnLoad);
  }

  /**
   * One that neither checks nor signs.
   *
   * @param otherwise what else stands for the metadata, or why nothing does
   */
  public static MetadataAuthenticator off(MetadataAuthentication otherwise) {
    return new MetadataAuthenticator(otherwise, null, null, false, null, Set.of());
  }

  /** Whether checked metadata is authenticated. */
  public MetadataAuthentication status(TableMetadata metadata) {
    if (EncryptionProperties.keyId(metadata.properties()) == null) {
      return new MetadataAuthentication(false, "the table is not encrypted");
    }

    return otherwise == null
        ? new MetadataAuthentication(true, "each load checks its code, made with a KEK")
        : otherwise;
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
   * @param file where it was read from, by the catalog's word
   * @throws TamperedException as above
   * @throws InvalidConfigurationException as above
   */
  public void check(TableMetadata metadata, String file) {
    if (isOn() && claims(metadata, file)) {
      new Check(metadata, file == null ? "" : file, null).run();
    }
  }

  /** Checks a metadata file that is not in the catalog yet: all that stands in it. */
  public void check(MetadataFile file) {
    if (!isOn()) {
      return;
    }

    TableMetadata metadata = file.metadata();
    if (claims(metadata, file.location())) {
      new Check(metadata, file.location(), file).run();
    }
  }

  private boolean isOn() {
    return otherwise == null;
  }

  /** Whether anything in the metadata or its place says that the table is encrypted. */
  private static boolean claims(TableMetadata metadata, String file) {
    return EncryptionProperties.keyId(metadata.properties()) != null
        || !metadata.encryptionKeys().isEmpty()
        || metadata.properties().containsKey(MetadataMac.PROPERTY)
        || file != null && AuthenticatedFolder.uuid(file) != null;
  }

  /** A check of one metadata, which reads its file once, or not at all. */
  private final class Check {
    private final TableMetadata metadata;
    private final String file;
    private MetadataFile read;

    private Check(TableMetadata metadata, String file, MetadataFile read) {
      this.metadata = metadata;
      this.file = file;
      this.read = read;
    }

    private void run() {
      String problem = problem();
      if (problem != null) {
        throw refusal(problem);
      }
    }

    private MetadataFile read() {
      if (read == null) {
        this.read = MetadataFile.read(delegate.io(), file);
      }

      return read;
    }

    /** What is wrong with the metadata, or null. */
    private String problem() {
      String owner = AuthenticatedFolder.uuid(file);
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

      keys.requireAuthenticatedWrapping(keyId);
      String value = metadata.properties().get(MetadataMac.PROPERTY);
      MetadataMac code = MetadataMac.parse(value);
      if (code == null) {
        return value == null
            ? String.format(
                "it has no %s: a client that does not authenticate wrote the table, or somebody"
                    + " removed the code",
                MetadataMac.PROPERTY)
            : String.format("%s is not a code", MetadataMac.PROPERTY);
      }

      EncryptedKey kek = SigningKeys.find(metadata, keyId, code.kekId()).orElse(null);
      if (kek == null) {
        return String.format(
            "its code was made with KEK %s, which is not among the keys of '%s'",
            code.kekId(), keyId);
      }

      return problem(code, keys.keyOf(code.format(), metadata, kek), kek);
    }

    private String problem(MetadataMac code, SecretKeySpec key, EncryptedKey kek) {
      MetadataPlace place = MetadataPlace.of(file);
      JsonObject loaded = document(CanonicalJson.of(metadata));
      if (code.matches(loaded, place, key)) {
        return SigningKeys.retired(metadata, kek);
      }

      if (code.format() == MetadataMac.Format.V1) {
        return mismatch(code, loaded, place, key);
      }

      // a later Iceberg may have written more than this one loads
      MetadataFile found = read();
      JsonObject whole;
      try {
        whole = document(found.json());
      } catch (IllegalArgumentException e) {
        return e.getMessage();
      }

      if (!code.matches(whole, place, key)) {
        return mismatch(code, whole, place, key);
      }

      return isOf(found, metadata)
          ? SigningKeys.retired(metadata, kek)
          : "its file was exchanged while it was read";
    }

    /** Why a code does not match: it tells old and foreign metadata from edited ones. */
    private String mismatch(
        MetadataMac code, JsonObject document, MetadataPlace place, SecretKeySpec key) {
      String folder =
          metadata
              .properties()
              .getOrDefault(
                  TableProperties.WRITE_METADATA_LOCATION, metadata.location() + "/metadata");
      MetadataPlace own = new MetadataPlace(MetadataPlace.folderOf(folder + "/"), code.version());
      if (code.matches(document, own, key)) {
        return own.folder().equals(place.folder())
            ? String.format(
                "version %d of it was put in the place of version %d",
                own.version(), place.version())
            : String.format(
                "it is genuine, but of the table at %s and not of this one", metadata.location());
      }

      return code.version() < place.version()
          ? String.format(
              "version %d was committed by a client that does not authenticate (the last one that"
                  + " did wrote version %d), or somebody made it look so",
              place.version(), code.version())
          : "it was changed after it was committed: its code does not match";
    }

    private IcebergCryptoException refusal(String problem) {
      String sha256;
      try {
        sha256 = read().sha256();
      } catch (RuntimeException e) {
        sha256 = "unknown: it cannot be read now"; // which is no reason to say nothing
      }

      return new TamperedException(
              String.format("its metadata is refused: %s (%s, SHA-256 %s)", problem, file, sha256),
              String.format(
                  "Find out who wrote that file; nothing was read or written. A catalog with %s=off"
                      + " shows the table as it is. If all is right, verify the table there, then"
                      + " sign what the file has: %s. If not, restore the file, or drop the table"
                      + " without PURGE and register its last good metadata file.",
                  EncryptionProperties.METADATA_AUTHENTICATION,
                  callToSign(tableName, file, sha256)))
          .inTable(tableName);
    }
  }

  /** The call that signs the content of a metadata file. */
  public static String callToSign(String tableName, String file, String sha256) {
    return String.format(
        "CALL %s.system.authenticate_metadata(table => '%s', metadata_file => '%s',"
            + " metadata_sha256 => '%s')",
        tableName.replaceFirst("\\..*", ""), tableName, file, sha256);
  }

  /** Whether a file says what the catalog behind loaded. */
  public boolean isOf(MetadataFile file, TableMetadata loaded) {
    return CanonicalJson.canonical(document(CanonicalJson.of(file.metadata())))
        .equals(CanonicalJson.canonical(document(CanonicalJson.of(loaded))));
  }

  /** A metadata file's JSON without what the catalog behind sets on load. */
  private JsonObject document(JsonObject json) {
    if (!setOnLoad.isEmpty() && json.get("properties") instanceof JsonObject properties) {
      setOnLoad.forEach(properties::remove);
    }

    return json;
  }

  /**
   * Prepares metadata for a commit.
   *
   * @param base the metadata in force, null when the commit creates the table
   * @return the metadata to be committed in its place, with a code; for a table without a key id
   *     the same, without
   * @throws InvalidConfigurationException when its master key cannot vouch for it
   */
  public TableMetadata sign(TableMetadata base, TableMetadata metadata) {
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

    return signed(base, CanonicalJson.asRead(builder.build()), kek);
  }

  private TableMetadata signed(TableMetadata base, TableMetadata complete, EncryptedKey kek) {
    MetadataMac.Format format = MetadataMac.Format.V2;
    SecretKeySpec key = keys.keyOf(format, complete, kek);
    MetadataPlace place = next(base, complete);
    JsonObject json = document(CanonicalJson.of(complete));
    MetadataMac code = MetadataMac.of(format, json, place, key, kek.keyId());
    TableMetadata signed = code.addTo(CanonicalJson.of(complete));
    if (!code.matches(document(CanonicalJson.of(signed)), place, key)
        || SigningKeys.retired(signed, kek) != null) {
      throw new IllegalStateException(
          "Nothing was committed: the code of the metadata of " + tableName + " would not match");
    }

    return signed;
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
