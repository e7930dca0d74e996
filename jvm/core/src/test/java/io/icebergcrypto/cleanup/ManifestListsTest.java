package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Stub;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotParser;
import org.junit.jupiter.api.Test;

class ManifestListsTest {
  private static final int LISTS = 300;

  private final ManifestLists lists = new ManifestLists();

  /** Else a table of 10,000 snapshots with 10,000 manifests needs 400 MB for their lists alone. */
  @Test
  void aListTakesABitForEachManifest() {
    int each = 5_000;
    List<ManifestFile> all = manifests(each + LISTS);
    for (int i = 0; i < LISTS; i++) { // as of snapshots that each replace one manifest
      lists.add(snapshot(i), all.subList(i, i + each));
    }

    assertThat(lists.words()).isLessThanOrEqualTo(LISTS * (each / Long.SIZE + 2));
    assertThat(lists.manifests(List.of(snapshot(0), snapshot(7))).values())
        .containsExactlyInAnyOrderElementsOf(all.subList(0, each + 7));
  }

  @Test
  void snapshotsReachWhatTheirListsName() {
    Random random = new Random(1);
    List<ManifestFile> all = manifests(2_000);
    Map<Snapshot, List<ManifestFile>> named = new HashMap<>();
    for (int i = 0; i < LISTS; i++) { // few of many: most words have one bit
      named.put(snapshot(i), random.ints(i % 20, 0, all.size()).mapToObj(all::get).toList());
    }

    named.forEach(lists::add);
    assertThat(lists.contain(snapshot(0))).isTrue();
    assertThat(lists.contain(snapshot(LISTS))).isFalse();
    for (int i = 0; i < 100; i++) {
      Set<Snapshot> some = new HashSet<>();
      Set<ManifestFile> expected = new HashSet<>();
      named.forEach(
          (snapshot, manifests) -> {
            if (random.nextInt(10) == 0) {
              some.add(snapshot);
              expected.addAll(manifests);
            }
          });
      Map<String, ManifestFile> reached = lists.manifests(some);
      assertThat(Set.copyOf(reached.values())).isEqualTo(expected);
      reached.forEach((path, manifest) -> assertThat(manifest.path()).isEqualTo(path));
    }
  }

  private static Snapshot snapshot(long id) {
    return SnapshotParser.fromJson(
        String.format("{'snapshot-id':%d,'timestamp-ms':1,'manifest-list':'l%d'}", id, id)
            .replace("'", "\""));
  }

  private static List<ManifestFile> manifests(int count) {
    return IntStream.range(0, count).mapToObj(number -> manifest("m" + number)).toList();
  }

  private static ManifestFile manifest(String path) {
    return Stub.of(
        ManifestFile.class,
        (proxy, method, arguments) ->
            switch (method.getName()) {
              case "path", "toString" -> path;
              case "equals" -> proxy == arguments[0];
              case "hashCode" -> path.hashCode();
              default -> throw new UnsupportedOperationException(method.getName());
            });
  }
}
