package io.icebergcrypto.integrity;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * A check of the MAC of one table's metadata: of the bytes that it was loaded from, where they are
 * known. Otherwise it reads the file once, or not at all: usually what the catalog behind loaded is
 * all that the file holds. Where a client with a later Iceberg wrote more, the check is of the
 * file's bytes, and what was loaded must be what they say.
 *
 * @param metadata what was loaded
 * @param location where it was loaded from, by the catalog's word
 * @param file reads the file of that location, once
 * @param loadedFrom the file that the metadata was made of; null: not known
 * @param hint what to do where it is refused, of the file's SHA-256
 */
record MetadataCheck(
    String tableName,
    TableMetadata metadata,
    String location,
    SigningKeys keys,
    AuthenticatedContent content,
    Supplier<MetadataFile> file,
    MetadataFile loadedFrom,
    UnaryOperator<String> hint) {
  /**
   * Checks it.
   *
   * @throws TamperedException when it is not what a client of this kind committed there
   * @throws InvalidConfigurationException when its master key cannot vouch for it
   */
  void run() {
    String problem = problem();
    if (problem != null) {
      throw refusal(problem);
    }
  }

  /** What is wrong with the metadata, or null. */
  private String problem() {
    String owner = AuthenticatedFolder.uuid(location);
    if (owner != null && !owner.equals(metadata.uuid())) {
      return String.format(
          "it is of another table (UUID %s) than the file's folder says (%s)",
          metadata.uuid(), owner);
    }

    String keyId = EncryptionProperties.keyId(metadata.properties());
    if (keyId == null) {
      String lost = EncryptionProperties.masterKeyId(metadata);
      return String.format(
          "%s is gone%s: a client without encryption, or someone with access to the storage,"
              + " removed it",
          EncryptionProperties.KEY_ID, lost == null ? "" : " (it was '" + lost + "')");
    }

    keys.requireAuthenticatedWrapping(keyId);
    String value = metadata.properties().get(MetadataMac.PROPERTY);
    MetadataMac mac = MetadataMac.parse(value);
    if (mac == null) {
      return value == null
          ? String.format(
              "it has no %s: a client that does not authenticate wrote the table, or the MAC was"
                  + " removed",
              MetadataMac.PROPERTY)
          : String.format("%s is not a MAC", MetadataMac.PROPERTY);
    }

    EncryptedKey kek = SigningKeys.find(metadata, keyId, mac.kekId()).orElse(null);
    if (kek == null) {
      return String.format(
          "its MAC was made with KEK %s, which is not among the keys of '%s'", mac.kekId(), keyId);
    }

    return problem(mac, keys.keyOf(metadata, kek), kek);
  }

  private String problem(MetadataMac mac, SecretKeySpec key, EncryptedKey kek) {
    MetadataPlace place = MetadataPlace.of(location);
    if (isOfLoaded(mac, place, key)) {
      return SigningKeys.retired(metadata, kek);
    }

    // a later Iceberg may have written more than this one loads, or a read may have failed
    MetadataFile stored = file.get(); // the storage's errors are not the metadata's
    byte[] json;
    try {
      json = stored.json();
    } catch (IllegalArgumentException e) {
      return e.getMessage();
    }

    if (!mac.matches(json, place, key)) {
      return mismatch(mac, json, place, key);
    }

    return content.isSame(stored, metadata)
        ? SigningKeys.retired(metadata, kek)
        : "its file was replaced while it was read";
  }

  private boolean isOfLoaded(MetadataMac mac, MetadataPlace place, SecretKeySpec key) {
    try {
      byte[] json = loadedFrom == null ? CanonicalJson.bytes(metadata) : loadedFrom.json();
      return mac.matches(json, place, key)
          && (loadedFrom == null || content.isWhatWasRead(loadedFrom, metadata));
    } catch (IllegalArgumentException e) {
      return false; // nobody signs it: told below
    }
  }

  /** Why a MAC does not match: it tells old metadata and another table's from edited one. */
  private String mismatch(MetadataMac mac, byte[] json, MetadataPlace place, SecretKeySpec key) {
    String folder =
        metadata
            .properties()
            .getOrDefault(
                TableProperties.WRITE_METADATA_LOCATION, metadata.location() + "/metadata");
    MetadataPlace own = new MetadataPlace(MetadataPlace.folderOf(folder + "/"), mac.version());
    if (mac.matches(json, own, key)) {
      return own.folder().equals(place.folder())
          ? String.format(
              "version %d of it was put in place of version %d", own.version(), place.version())
          : String.format(
              "it is genuine, but of the table at %s and not of this one, or the registration of"
                  + " this one is not finished",
              metadata.location());
    }

    return mac.version() < place.version()
        ? String.format(
            "version %d was committed by a client that does not authenticate (the last one that"
                + " did wrote version %d), or was made to look so",
            place.version(), mac.version())
        : "it was changed after it was committed: its MAC does not match";
  }

  private IcebergCryptoException refusal(String problem) {
    String sha256;
    try {
      sha256 = file.get().sha256();
    } catch (RuntimeException e) {
      sha256 = "unknown: it cannot be read now"; // the refusal is no less true
    }

    return new TamperedException(
            String.format(
                "its metadata is refused: %s (%s, SHA-256 %s)", problem, location, sha256),
            hint.apply(sha256))
        .inTable(tableName);
  }
}
