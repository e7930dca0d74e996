package io.icebergcrypto.integrity;

import com.google.gson.JsonObject;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Set;
import org.apache.iceberg.TableMetadata;

/**
 * What is authenticated of metadata that was loaded: all but what the catalog behind sets on load.
 *
 * @param setOnLoad table properties that the catalog behind sets in what it loads, regardless of
 *     the file
 */
record AuthenticatedContent(Set<String> setOnLoad) {
  /** Whether a file says what the catalog behind loaded, as far as this Iceberg can read it. */
  boolean isSame(MetadataFile file, TableMetadata loaded) {
    return of(file.metadata()).equals(of(loaded));
  }

  /**
   * The same of what was loaded from these bytes. A catalog that sets properties on load (Nessie)
   * sets ids of its own, too: of the current schema and snapshot, of the default spec and order.
   */
  boolean isWhatWasRead(MetadataFile file, TableMetadata loaded) {
    return setOnLoad.isEmpty() || isSame(file, loaded);
  }

  private String of(TableMetadata metadata) {
    JsonObject document = CanonicalJson.of(metadata);
    if (document.get("properties") instanceof JsonObject properties) {
      setOnLoad.forEach(properties::remove);
    }

    return CanonicalJson.canonical(document);
  }
}
