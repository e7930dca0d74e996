package io.icebergcrypto.integrity;

import com.google.gson.JsonObject;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.metadata.CanonicalDocument;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.MetadataPlace;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;

/**
 * The message authentication code of a table's metadata, as the table property {@code
 * encryption.metadata-mac} holds it: {@code v2.hmac-sha256.<file version>.<MAC in hex>.<id of the
 * KEK>}.
 *
 * <p>The MAC is HMAC-SHA-256 over the canonical form ({@link CanonicalDocument}) of the place of
 * the metadata file (folder and version) and the file's own JSON, this one property left out. So
 * members that the signer's Iceberg knows and the reader's does not are authenticated, too. Its key
 * is derived from a KEK of the table in the way of NIST SP 800-108r1, section 4.1 (counter mode,
 * one block), with the table's UUID as the context: nobody makes a MAC without the KMS's consent,
 * and that of one table is not valid for another.
 *
 * @param version the number in the name of the metadata file that the MAC was made for
 * @param mac 32 bytes
 * @param kekId the key id, in {@code encryption-keys}, of the KEK that the MAC's key comes from
 */
record MetadataMac(int version, byte[] mac, String kekId) {
  /** Table property: the MAC. Only commits of this catalog set it. */
  static final String PROPERTY = EncryptionProperties.METADATA_MAC;

  private static final String ALGORITHM = "HmacSHA256";
  private static final String PROPERTIES = "properties";
  private static final String TAG = "v2.hmac-sha256.";
  private static final byte[] LABEL =
      "io.icebergcrypto table metadata authentication v2".getBytes(StandardCharsets.US_ASCII);
  private static final Pattern SYNTAX =
      Pattern.compile(Pattern.quote(TAG) + "(\\d{1,9})\\.([0-9a-f]{64})\\.(.+)");

  /** Reads the property's value; null when it is not one. */
  static MetadataMac parse(String value) {
    Matcher matcher = SYNTAX.matcher(value == null ? "" : value);
    return matcher.matches()
        ? new MetadataMac(
            Integer.parseInt(matcher.group(1)),
            HexFormat.of().parseHex(matcher.group(2)),
            matcher.group(3))
        : null;
  }

  /** The property's value. */
  String value() {
    return TAG + version + "." + HexFormat.of().formatHex(mac) + "." + kekId;
  }

  /**
   * Derives the key of a table's MACs.
   *
   * @param kek the bytes of the KEK; the caller overwrites them
   * @param uuid the table's UUID
   */
  static SecretKeySpec key(ByteBuffer kek, String uuid) {
    return new SecretKeySpec(Kek.derived(kek, LABEL, uuid, 256), ALGORITHM);
  }

  /**
   * Makes the MAC of a document at a place.
   *
   * @param document the metadata file's, with another MAC or none
   */
  static MetadataMac of(
      CanonicalDocument document, MetadataPlace place, SecretKeySpec key, String kekId) {
    try {
      Mac hmac = Mac.getInstance(ALGORITHM);
      hmac.init(key);
      document
          .withoutProperties(Set.of(PROPERTY))
          .writeAfter(place.version(), place.folder(), hmac::update);
      return new MetadataMac(place.version(), hmac.doFinal(), kekId);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no " + ALGORITHM, e);
    }
  }

  /** Whether this is the MAC of a document at a place. */
  boolean matches(CanonicalDocument document, MetadataPlace place, SecretKeySpec key) {
    return MessageDigest.isEqual(mac, of(document, place, key, kekId).mac());
  }

  /** A document's metadata with this MAC in its properties, as a reader of the file will have. */
  TableMetadata addTo(JsonObject document) {
    JsonObject properties = withoutMac(document).getAsJsonObject(PROPERTIES);
    properties.addProperty(PROPERTY, value());
    JsonObject signed = copy(document);
    signed.add(PROPERTIES, properties);
    return TableMetadataParser.fromJson(signed.toString());
  }

  private static JsonObject withoutMac(JsonObject document) {
    JsonObject copy = copy(document);
    if (document.get(PROPERTIES) instanceof JsonObject properties) {
      JsonObject others = copy(properties);
      others.remove(PROPERTY);
      copy.add(PROPERTIES, others);
    }

    return copy;
  }

  /** Another object with the same members; they are shared. */
  private static JsonObject copy(JsonObject object) {
    JsonObject copy = new JsonObject();
    object.entrySet().forEach(member -> copy.add(member.getKey(), member.getValue()));
    return copy;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof MetadataMac that && value().equals(that.value());
  }

  @Override
  public int hashCode() {
    return value().hashCode();
  }

  @Override
  public String toString() {
    return value();
  }
}
