package io.icebergcrypto.spark.verify.scan;

import com.google.gson.JsonObject;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.RecordIndex;
import io.icebergcrypto.format.Json;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.SerializableConfiguration;

/**
 * Whose outcomes are recorded where. A file in the folder says it, too, so that no other table's or
 * depth's come among them.
 *
 * @param location where they are recorded
 * @param table the table's name
 * @param tableLocation where the table is
 */
record RecordPlace(String location, String table, String uuid, String tableLocation, String depth) {
  private static final String MARKER = "_verification.json";

  /**
   * The folder.
   *
   * @param isToBegin whether it is made if it does not exist; else a signed report vouches for it
   * @throws InvalidConfigurationException when it is another table's or depth's, or holds something
   *     else
   */
  RecordFolder folder(Configuration hadoop, boolean isToBegin) throws IOException {
    if ((Storage.comparable(location) + "/").startsWith(Storage.comparable(tableLocation) + "/")) {
      throw refused("it is in the table's own location", "Give a folder elsewhere.");
    }

    RecordFolder folder = new RecordFolder(location, new SerializableConfiguration(hadoop));
    JsonObject marker = markerOrNull(folder);
    if (marker == null && isToBegin) {
      begin(folder);
    } else if (isToBegin) {
      require(marker, "table_uuid", uuid, "table " + text(marker, "table"));
      require(marker, "depth", depth, "depth " + text(marker, "depth"));
    }

    return folder;
  }

  private static JsonObject markerOrNull(RecordFolder folder) throws IOException {
    try {
      byte[] bytes = folder.read(MARKER, RecordIndex.MAX_BYTES);
      return Json.object(new String(bytes, StandardCharsets.UTF_8));
    } catch (FileNotFoundException e) {
      return null;
    } catch (RuntimeException e) {
      throw new IOException(folder.uri(MARKER) + " is not what a verification wrote", e);
    }
  }

  private void begin(RecordFolder folder) throws IOException {
    folder.make();
    if (!folder.listed("").isEmpty()) {
      throw refused(
          "it holds files, but none that a verification wrote",
          "Give a new folder, or one that another verification of this table was given.");
    }

    Map<String, String> marker = new LinkedHashMap<>();
    marker.put("table", table);
    marker.put("table_uuid", uuid);
    marker.put("depth", depth);
    folder.write(MARKER, Json.of(marker).getBytes(StandardCharsets.UTF_8));
  }

  private void require(JsonObject marker, String key, String expected, String whose) {
    if (!expected.equals(text(marker, key))) {
      throw refused("it is of " + whose, "Give a folder of its own to each table and depth.");
    }
  }

  private static String text(JsonObject json, String key) {
    return json.has(key) && json.get(key).isJsonPrimitive() ? json.get(key).getAsString() : "";
  }

  private InvalidConfigurationException refused(String why, String hint) {
    return new InvalidConfigurationException(
        String.format("The folder %s cannot be used to resume: %s", location, why), hint);
  }
}
