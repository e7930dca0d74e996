package io.icebergcrypto.cleanup;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;

/**
 * What manifest lists name, once they are read. A manifest is kept once, and a list as the numbers
 * of its manifests, a bit each: most of its manifests are those of the list before it, and so are
 * near each other. 10,000 lists of 10,000 manifests take 20 to 40 MB. Many threads may add at once.
 */
final class ManifestLists {
  private final Map<String, Integer> numbers = new HashMap<>();
  private final List<ManifestFile> manifests = new ArrayList<>();
  private final Map<ListFile, Bits> lists = new HashMap<>();

  /** A manifest list, which nobody can exchange for another one under the same key. */
  private record ListFile(long snapshotId, String location, String keyId) {
    static ListFile of(Snapshot snapshot) {
      return new ListFile(snapshot.snapshotId(), snapshot.manifestListLocation(), snapshot.keyId());
    }
  }

  /** A set of numbers, as a bit each: the words that are not zero, and where they are. */
  private record Bits(int[] places, long[] words) {
    static Bits of(BitSet set) {
      long[] all = set.toLongArray();
      int[] places = IntStream.range(0, all.length).filter(i -> all[i] != 0).toArray();
      return new Bits(places, IntStream.of(places).mapToLong(i -> all[i]).toArray());
    }

    void addTo(long[] union) {
      for (int i = 0; i < places.length; i++) {
        union[places[i]] |= words[i];
      }
    }
  }

  /** Whether the list of a snapshot was added. */
  synchronized boolean contain(Snapshot snapshot) {
    return lists.containsKey(ListFile.of(snapshot));
  }

  /** Adds the list of a snapshot. */
  synchronized void add(Snapshot snapshot, List<ManifestFile> named) {
    BitSet set = new BitSet(manifests.size());
    named.forEach(
        manifest -> set.set(numbers.computeIfAbsent(manifest.path(), path -> next(manifest))));
    lists.put(ListFile.of(snapshot), Bits.of(set));
  }

  private int next(ManifestFile manifest) {
    manifests.add(manifest);
    return manifests.size() - 1;
  }

  /** The manifests that any of the lists of snapshots names, by path. All were added. */
  synchronized Map<String, ManifestFile> manifests(Collection<Snapshot> snapshots) {
    long[] union = new long[manifests.size() / Long.SIZE + 1];
    snapshots.forEach(snapshot -> lists.get(ListFile.of(snapshot)).addTo(union));
    Map<String, ManifestFile> byPath = new HashMap<>();
    BitSet.valueOf(union).stream()
        .mapToObj(manifests::get)
        .forEach(manifest -> byPath.put(manifest.path(), manifest));
    return byPath;
  }

  /** How many words the lists take. */
  synchronized long words() {
    return lists.values().stream().mapToLong(bits -> bits.words.length).sum();
  }
}
