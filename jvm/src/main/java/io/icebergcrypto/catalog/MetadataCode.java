package io.icebergcrypto.catalog;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;

/**
 * The message authentication code of a table's metadata, as the table property {@code
 * encryption.metadata-mac} holds it: {@code v1.<file version>.<code in hex>.<id of the KEK>}.
 *
 * <p>The code is HMAC-SHA-256 over JSON with sorted names: the place of the metadata file (folder
 * and version) and all of {@link TableMetadataParser#toJson}, this one property left out. Its key
 * is derived from a KEK of the table in the way of NIST SP 800-108r1, section 4.1 (counter mode,
 * one block), with the table's UUID as the context: nobody makes a code without the KMS's consent,
 * and the code of one table is not valid for another.
 *
 * @param version the number in the name of the metadata file that the code was made for
 * @param code 32 bytes
 * @param kekId the key id, in {@code encryption-keys}, of the KEK that the code's key comes from
 */
record MetadataCode(int version, byte[] code, String kekId) {
  /** Table property: the code. Only commits of this catalog set it. */
  static final String PROPERTY = EncryptionProperties.METADATA_MAC;

  private static final String ALGORITHM = "HmacSHA256";
  private static final byte[] LABEL =
      "io.icebergcrypto table metadata authentication v1".getBytes(StandardCharsets.US_ASCII);
  private static final Pattern FORMAT = Pattern.compile("v1\\.(\\d{1,9})\\.([0-9a-f]{64})\\.(.+)");

  /**
   * Where a metadata file is, as far as the catalog's pointer tells.
   *
   * @param folder without what clients write in several ways: the scheme (s3 and s3a, file: and
   *     none), and the server of HDFS (a name service, one of its hosts, none)
   * @param version the number in the file's name; -1 when there is none
   */
  record Place(String folder, int version) {
    private static final Pattern METASTORE = Pattern.compile("(\\d{1,9})-.*");
    private static final Pattern HADOOP = Pattern.compile("v(\\d{1,9})\\..*");

    /** The place of a metadata file. */
    static Place of(String file) {
      String name = file.substring(file.lastIndexOf('/') + 1);
      int version = metastoreVersion(file);
      Matcher hadoop = HADOOP.matcher(name);
      if (version < 0 && hadoop.matches()) {
        version = Integer.parseInt(hadoop.group(1));
      }

      return new Place(folderOf(file), version);
    }

    /** The number that a catalog with a pointer finds in a file's name; -1 when there is none. */
    static int metastoreVersion(String file) {
      Matcher matcher = METASTORE.matcher(file.substring(file.lastIndexOf('/') + 1));
      return matcher.matches() ? Integer.parseInt(matcher.group(1)) : -1;
    }

    /** The folder of a file, without scheme; HDFS without the server, S3 with the bucket. */
    static String folderOf(String file) {
      int end = file.lastIndexOf('/');
      return file.substring(0, Math.max(end, 0))
          .replaceFirst("^(?:hdfs|viewfs)://[^/]*", "")
          .replaceFirst("^[A-Za-z][A-Za-z0-9+.-]*:", "")
          .replaceFirst("^/+", "/");
    }
  }

  /** Reads the property's value; null when it is not one. */
  static MetadataCode parse(String value) {
    Matcher matcher = FORMAT.matcher(value == null ? "" : value);
    return matcher.matches()
        ? new MetadataCode(
            Integer.parseInt(matcher.group(1)),
            HexFormat.of().parseHex(matcher.group(2)),
            matcher.group(3))
        : null;
  }

  /** The property's value. */
  String value() {
    return "v1." + version + "." + HexFormat.of().formatHex(code) + "." + kekId;
  }

  /**
   * Derives the key of a table's codes.
   *
   * @param kek the bytes of the KEK; the caller overwrites them
   * @param uuid the table's UUID
   */
  static SecretKeySpec key(ByteBuffer kek, String uuid) {
    byte[] bytes = new byte[kek.remaining()];
    kek.duplicate().get(bytes);
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(bytes, ALGORITHM));
      mac.update(new byte[] {0, 0, 0, 1}); // the block's number
      mac.update(LABEL);
      mac.update((byte) 0);
      mac.update(uuid.getBytes(StandardCharsets.UTF_8));
      mac.update(new byte[] {0, 0, 1, 0}); // 256 bits
      return new SecretKeySpec(mac.doFinal(), ALGORITHM);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no " + ALGORITHM, e);
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /** Makes the code of metadata at a place. */
  static MetadataCode of(TableMetadata metadata, Place place, SecretKeySpec key, String kekId) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      byte[] code = mac.doFinal(canonical(metadata, place).getBytes(StandardCharsets.UTF_8));
      return new MetadataCode(place.version(), code, kekId);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no " + ALGORITHM, e);
    }
  }

  /** Whether this is the code of metadata at a place. */
  boolean matches(TableMetadata metadata, Place place, SecretKeySpec key) {
    return MessageDigest.isEqual(code, of(metadata, place, key, kekId).code());
  }

  /** Metadata with this code in its properties, as a reader of the file will have it. */
  TableMetadata addTo(TableMetadata metadata) {
    JsonObject json = json(metadata);
    json.getAsJsonObject("properties").addProperty(PROPERTY, value());
    return TableMetadataParser.fromJson(json.toString());
  }

  private static JsonObject json(TableMetadata metadata) {
    return JsonParser.parseString(TableMetadataParser.toJson(metadata)).getAsJsonObject();
  }

  /** What the code is made over. */
  private static String canonical(TableMetadata metadata, Place place) {
    JsonObject json = json(metadata);
    json.getAsJsonObject("properties").remove(PROPERTY);
    // an absent member and an empty one mean the same; versions of Iceberg differ in which they
    // write
    json.entrySet().removeIf(member -> isEmpty(member.getValue()));
    JsonObject all = new JsonObject();
    all.addProperty("file-version", place.version());
    all.addProperty("folder", place.folder());
    all.add("metadata", json);
    StringWriter out = new StringWriter();
    try (JsonWriter writer = new JsonWriter(out)) {
      write(writer, all);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return out.toString();
  }

  private static boolean isEmpty(JsonElement value) {
    return value.isJsonNull()
        || value instanceof JsonArray array && array.isEmpty()
        || value instanceof JsonObject object && object.isEmpty();
  }

  /** Names sorted as RFC 8785 sorts them; numbers as Iceberg writes them. */
  private static void write(JsonWriter out, JsonElement value) throws IOException {
    if (value instanceof JsonObject object) {
      out.beginObject();
      for (Map.Entry<String, JsonElement> member : new TreeMap<>(object.asMap()).entrySet()) {
        out.name(member.getKey());
        write(out, member.getValue());
      }
      out.endObject();
    } else if (value instanceof JsonArray array) {
      out.beginArray();
      for (JsonElement element : array) {
        write(out, element);
      }
      out.endArray();
    } else if (value.isJsonNull()) {
      out.nullValue();
    } else if (value.getAsJsonPrimitive().isString()) {
      out.value(value.getAsString());
    } else {
      out.jsonValue(value.getAsString()); // a number or a boolean
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof MetadataCode that && value().equals(that.value());
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
