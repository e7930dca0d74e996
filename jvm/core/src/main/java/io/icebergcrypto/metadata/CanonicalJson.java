package io.icebergcrypto.metadata;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.ToNumberPolicy;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.inmemory.InMemoryOutputFile;

/**
 * The canonical form of table metadata in JSON, with all that the file holds: members that this
 * Iceberg does not know, and numbers as they were written. Two documents that differ in anything
 * but white space, the order of names and how a character is escaped have two canonical forms.
 */
public final class CanonicalJson {
  /** More than any metadata has, and far less than would overflow the stack. */
  private static final int MAX_DEPTH = 200;

  private CanonicalJson() {}

  /**
   * Reads a document.
   *
   * @throws IllegalArgumentException when it is not a JSON object, is nested too deeply, or an
   *     object in it has two members of one name, of which one reader might take the first and
   *     another the last
   */
  public static JsonObject parse(String text) {
    try (JsonReader in = new JsonReader(new StringReader(text))) {
      in.setStrictness(Strictness.STRICT);
      JsonElement read = read(in, 0);
      if (in.peek() == JsonToken.END_DOCUMENT && read instanceof JsonObject object) {
        return object;
      }
    } catch (IOException | IllegalStateException e) {
      throw new IllegalArgumentException("it is not JSON: " + e.getMessage(), e);
    }

    throw new IllegalArgumentException("it is not a JSON object");
  }

  /** What a catalog that is given this metadata writes to its file. */
  public static JsonObject of(TableMetadata metadata) {
    return parse(TableMetadataParser.toJson(metadata));
  }

  /** Metadata as a reader of its file will have it. */
  public static TableMetadata asRead(TableMetadata metadata) {
    return read(written(metadata));
  }

  /** Metadata from its bytes. */
  public static TableMetadata read(byte[] written) {
    return TableMetadataParser.fromJson(new String(written, StandardCharsets.UTF_8));
  }

  /**
   * What a catalog that is given this metadata writes to its file, by Iceberg's own writer: UTF-8
   * has no place for half of a surrogate pair, which becomes a question mark.
   */
  public static byte[] written(TableMetadata metadata) {
    InMemoryOutputFile file = new InMemoryOutputFile("v1.metadata.json");
    TableMetadataParser.write(metadata, file);
    return file.toByteArray();
  }

  /**
   * The same of metadata that was loaded from a file.
   *
   * @throws IllegalArgumentException when it has text that is not Unicode: half of a surrogate pair
   *     is an error, not the question mark that may have been signed
   */
  public static byte[] bytes(TableMetadata metadata) {
    String text = TableMetadataParser.toJson(metadata);
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (!new String(bytes, StandardCharsets.UTF_8).equals(text)) {
      throw new IllegalArgumentException("it has text that is not Unicode");
    }

    return bytes;
  }

  /** The document with its names sorted as RFC 8785 sorts them, and numbers as they are. */
  public static String canonical(JsonElement document) {
    StringWriter out = new StringWriter();
    try (JsonWriter writer = new JsonWriter(out)) {
      write(writer, document);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return out.toString();
  }

  private static JsonElement read(JsonReader in, int depth) throws IOException {
    if (depth > MAX_DEPTH) {
      throw new IllegalArgumentException("its JSON is nested too deeply");
    }

    return switch (in.peek()) {
      case BEGIN_OBJECT -> readObject(in, depth + 1);
      case BEGIN_ARRAY -> readArray(in, depth + 1);
      case STRING -> new JsonPrimitive(in.nextString());
      case NUMBER -> new JsonPrimitive(ToNumberPolicy.LAZILY_PARSED_NUMBER.readNumber(in));
      case BOOLEAN -> new JsonPrimitive(in.nextBoolean());
      default -> {
        in.nextNull();
        yield JsonNull.INSTANCE;
      }
    };
  }

  private static JsonObject readObject(JsonReader in, int depth) throws IOException {
    JsonObject object = new JsonObject();
    in.beginObject();
    while (in.hasNext()) {
      String name = in.nextName();
      if (object.has(name)) {
        throw new IllegalArgumentException("two members have one name, at " + in.getPath());
      }

      object.add(name, read(in, depth));
    }

    in.endObject();
    return object;
  }

  private static JsonArray readArray(JsonReader in, int depth) throws IOException {
    JsonArray array = new JsonArray();
    in.beginArray();
    while (in.hasNext()) {
      array.add(read(in, depth));
    }

    in.endArray();
    return array;
  }

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
}
