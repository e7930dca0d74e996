package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.junit.jupiter.api.Test;

/** What storage lists: on Azure's, by night, tests/catalog/proof/test_object_storage.py. */
class ListingTest {
  private static final String AZURE = "abfss://lake@account.dfs.core.windows.net";

  @Test
  void namesInAContainerBecomeLocations() {
    Listed azure = new Listed("db/t/data/part=a%2Fb/f", "db/t/metadata/a:b");
    for (String folder : List.of(AZURE + "/db/t", AZURE + "/db/t//")) {
      assertThat(locations(Listing.below(azure, folder)))
          .containsExactly(AZURE + "/db/t/data/part=a%2Fb/f", AZURE + "/db/t/metadata/a:b");
      assertThat(azure.prefix).isEqualTo(AZURE + "/db/t/");
    }
  }

  @Test
  void locationsStayAsTheyAre() {
    for (String folder : List.of("s3://b/db/t", "gs://b/db/t", "file:///db/t", "/db/t")) {
      String file = folder.startsWith("/") ? "file:/db/t/f" : folder + "/f";
      Listed storage = new Listed(file);
      assertThat(locations(Listing.below(storage, folder))).containsExactly(file);
      assertThat(locations(Listing.ofLocations(storage, folder))).containsExactly(file);
    }
  }

  /** Iceberg would take them all for orphans. */
  @Test
  void namesInAContainerAreRefusedWhereIcebergDeletes() {
    Listed azure = new Listed("db/t/data/f");
    assertThatThrownBy(() -> locations(Listing.ofLocations(azure, AZURE + "/db/t")))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            AZURE + "/db/t",
            "db/t/data/f",
            "nothing was deleted",
            "without prefix_listing",
            "hadoop-azure");
  }

  private static List<String> locations(Iterable<FileInfo> files) {
    return StreamSupport.stream(files.spliterator(), false).map(FileInfo::location).toList();
  }

  private static final class Listed extends InMemoryFileIO implements SupportsPrefixOperations {
    private static final long serialVersionUID = 1L;

    private final List<String> files;
    private String prefix;

    private Listed(String... files) {
      this.files = List.of(files);
    }

    @Override
    public Iterable<FileInfo> listPrefix(String given) {
      this.prefix = given;
      return files.stream().map(file -> new FileInfo(file, 1, 1)).toList();
    }

    @Override
    public void deletePrefix(String given) {
      throw new UnsupportedOperationException(given);
    }
  }
}
