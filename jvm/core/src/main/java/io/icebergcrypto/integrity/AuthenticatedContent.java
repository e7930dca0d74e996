package io.icebergcrypto.integrity;

import io.icebergcrypto.metadata.CanonicalDocument;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Set;
import org.apache.iceberg.TableMetadata;

/**
 * What is authenticated of metadata: all but what the catalog behind sets on load.
 *
 * @param setOnLoad table properties that the catalog behind sets in what it loads, regardless of
 *     the file
 */
record AuthenticatedContent(Set<String> setOnLoad) {
  /**
   * That of metadata, as a catalog writes it to its file.
   *
   * @throws IllegalArgumentException when it has text that is not Unicode
   */
  CanonicalDocument of(TableMetadata metadata) {
    return without(CanonicalDocument.of(metadata));
  }

  /**
   * That of a file.
   *
   * @throws IllegalArgumentException when the file is not JSON, or ambiguous
   */
  CanonicalDocument of(MetadataFile file) {
    return without(file.canonical());
  }

  /** Whether a file says what the catalog behind loaded, as far as this Iceberg can read it. */
  boolean isSame(MetadataFile file, TableMetadata loaded) {
    return of(file.metadata()).isSame(of(loaded));
  }

  /** That of a document. */
  CanonicalDocument without(CanonicalDocument document) {
    return document.withoutProperties(setOnLoad);
  }
}
