package io.icebergcrypto.integrity;

import com.google.gson.JsonObject;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Set;
import org.apache.iceberg.TableMetadata;

/**
 * What is authenticated of metadata: all but what the catalog behind sets on load.
 *
 * @param setOnLoad table properties that the catalog behind sets in what it loads, whatever the
 *     file says
 */
record AuthenticatedContent(Set<String> setOnLoad) {
  /** That of metadata, as a catalog writes it to its file. */
  JsonObject of(TableMetadata metadata) {
    return without(CanonicalJson.of(metadata));
  }

  /**
   * That of a file.
   *
   * @throws IllegalArgumentException when the file is not JSON, or ambiguous
   */
  JsonObject of(MetadataFile file) {
    return without(file.json());
  }

  /** Whether a file says what the catalog behind loaded, as far as this Iceberg can read it. */
  boolean isSame(MetadataFile file, TableMetadata loaded) {
    return CanonicalJson.canonical(of(file.metadata())).equals(CanonicalJson.canonical(of(loaded)));
  }

  /** That of a document, which stays as it is. */
  JsonObject without(JsonObject json) {
    if (setOnLoad.isEmpty() || !(json.get("properties") instanceof JsonObject properties)) {
      return json;
    }

    JsonObject others = MetadataMac.copy(properties);
    setOnLoad.forEach(others::remove);
    JsonObject copy = MetadataMac.copy(json);
    copy.add("properties", others);
    return copy;
  }
}
