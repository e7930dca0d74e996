package io.icebergcrypto.integrity;

import com.google.gson.JsonPrimitive;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Sha256;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.MetadataPlace;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.spec.SecretKeySpec;

/**
 * The message authentication code of a table's metadata, as the table property {@code
 * encryption.metadata-mac} holds it: {@code v3.hmac-sha256.<file version>.<MAC in hex>.<id of the
 * KEK>}.
 *
 * <p>The MAC is HMAC-SHA-256 over the place of the metadata file (folder and version) and the
 * file's bytes, decompressed, with zeros for the MAC's own digits: so members that the signer's
 * Iceberg knows and the reader's does not are authenticated, too. Its key is derived from a KEK of
 * the table in the way of NIST SP 800-108r1, section 4.1 (counter mode, one block), with the
 * table's UUID as the context: nobody makes a MAC without the KMS's consent, and that of one table
 * is not valid for another.
 *
 * @param version the number in the name of the metadata file that the MAC was made for
 * @param mac 32 bytes
 * @param kekId the key id, in {@code encryption-keys}, of the KEK that the MAC's key comes from
 */
record MetadataMac(int version, byte[] mac, String kekId) {
  /** Table property: the MAC. Only commits of this catalog set it. */
  static final String PROPERTY = EncryptionProperties.METADATA_MAC;

  private static final String ALGORITHM = "HmacSHA256";
  private static final String TAG = "v3.hmac-sha256.";
  private static final int DIGITS = 64;
  private static final byte[] LABEL =
      "io.icebergcrypto table metadata authentication v3".getBytes(StandardCharsets.US_ASCII);
  private static final Pattern SYNTAX =
      Pattern.compile(Pattern.quote(TAG) + "(\\d{1,9})\\.([0-9a-f]{64})\\.(.+)");

  /**
   * The property in JSON as Iceberg writes it. Nothing within a string looks like it, as a string's
   * quotes are escaped; and of what Iceberg writes, the properties come before all else whose
   * members have names of a user's choice.
   */
  private static final byte[] MEMBER =
      ("\"" + PROPERTY + "\":\"").getBytes(StandardCharsets.US_ASCII);

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

  /**
   * Makes the MAC of a document at a place.
   *
   * @param json the document in UTF-8, as Iceberg writes it, with any value of this property
   */
  static MetadataMac make(byte[] json, MetadataPlace place, SecretKeySpec key, String kekId) {
    MetadataMac unmade = new MetadataMac(place.version(), new byte[DIGITS / 2], kekId);
    return unmade.of(unmade.putInto(json), place, key);
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
   * The MAC that a document has at a place.
   *
   * @param json has this MAC in its properties, whose digits do not count
   * @return null when it is not there
   */
  private MetadataMac of(byte[] json, MetadataPlace place, SecretKeySpec key) {
    int at = digits(json);
    if (at < 0) {
      return null;
    }

    byte[] folder = place.folder().getBytes(StandardCharsets.UTF_8);
    byte[] header =
        ByteBuffer.allocate(2 * Integer.BYTES)
            .putInt(place.version())
            .putInt(folder.length)
            .array();
    byte[] zeroed = json.clone();
    Arrays.fill(zeroed, at, at + DIGITS, (byte) '0');
    byte[] made = Sha256.hmac(key.getEncoded(), header, folder, zeroed);
    return new MetadataMac(place.version(), made, kekId);
  }

  /** Whether this is the MAC of a document at a place, and in the document. */
  boolean matches(byte[] json, MetadataPlace place, SecretKeySpec key) {
    MetadataMac made = of(json, place, key);
    byte[] hex = HexFormat.of().formatHex(mac).getBytes(StandardCharsets.US_ASCII);
    return made != null
        && MessageDigest.isEqual(mac, made.mac())
        && Arrays.equals(json, digits(json), digits(json) + DIGITS, hex, 0, DIGITS);
  }

  /**
   * A document with this MAC in place of another value of the property.
   *
   * @throws IllegalArgumentException when it has none
   */
  byte[] putInto(byte[] json) {
    int member = indexOf(json, MEMBER);
    if (member < 0) {
      throw new IllegalArgumentException("It has no " + PROPERTY);
    }

    int from = member + MEMBER.length - 1;
    int to = from + 1;
    while (json[to] != '"') {
      to += json[to] == '\\' ? 2 : 1;
    }

    byte[] value = new JsonPrimitive(value()).toString().getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(json.length - (to + 1 - from) + value.length)
        .put(json, 0, from)
        .put(value)
        .put(json, to + 1, json.length - to - 1)
        .array();
  }

  /** Where the MAC's digits are in a document; -1 when its first MAC is not of this form. */
  private int digits(byte[] json) {
    byte[] start = (TAG + version + ".").getBytes(StandardCharsets.US_ASCII);
    int at = indexOf(json, MEMBER) + MEMBER.length;
    boolean here =
        at >= MEMBER.length
            && at + start.length + DIGITS <= json.length
            && Arrays.equals(json, at, at + start.length, start, 0, start.length);
    return here ? at + start.length : -1;
  }

  private static int indexOf(byte[] json, byte[] member) {
    for (int at = 0; at <= json.length - member.length; at++) {
      if (json[at] == member[0]
          && Arrays.equals(json, at, at + member.length, member, 0, member.length)) {
        return at;
      }
    }

    return -1;
  }
}
