package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.BulkDeletionFailureException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.junit.jupiter.api.Test;

/** What is deleted is gone, or it is told what is not, and why. */
class ProvenDeletionTest {
  private final Store store = new Store();

  private Map<String, String> delete(List<String> paths) {
    return new ProvenDeletion(store).delete(paths.iterator());
  }

  @Test
  void manyAreDeletedAtOnce() {
    List<String> paths = IntStream.range(0, 2500).mapToObj(i -> "s3://b/" + i).toList();
    store.files.addAll(paths);
    store.files.add("s3://b/other");
    assertThat(delete(paths)).isEmpty();
    assertThat(store.files).containsExactly("s3://b/other");
    assertThat(store.bulks).containsExactly(1000, 1000, 500);
    assertThat(store.singles).as("single deletes").isZero();
    assertThat(delete(List.of("s3://b/1", "s3://b/2"))).as("gone already").isEmpty();
  }

  @Test
  void whatFailsIsTriedAgain() {
    store.files.addAll(Set.of("a", "b", "c"));
    store.failures.put("b", 2);
    assertThat(delete(List.of("a", "b", "c"))).isEmpty();
    assertThat(store.files).isEmpty();
    assertThat(store.bulks).hasSize(1);
    assertThat(store.singles).as("those that the first attempt left").isPositive();
  }

  @Test
  void whatStaysIsTold() {
    store.files.addAll(Set.of("a", "b"));
    store.failures.put("b", 1000);
    assertThat(delete(List.of("a", "b"))).containsExactly(Map.entry("b", "denied: b"));
    assertThat(store.files).containsExactly("b");
  }

  @Test
  void aStorageThatSilentlyDeletesNothingIsTold() {
    store.files.add("a");
    store.deletes = false;
    assertThat(delete(List.of("a")).get("a")).contains("the storage silently deletes nothing");
  }

  @Test
  void whatCannotBeLookedAtIsNotTakenForGone() {
    store.files.add("a");
    store.looks = false;
    assertThat(delete(List.of("a")).get("a")).contains("is not known", "no answer");
  }

  /** Else a million files would wait for it, a thousand at a time. */
  @Test
  void whenNothingCanBeDeletedTheRestIsNotTried() {
    List<String> paths = IntStream.range(0, 1001).mapToObj(i -> "s3://b/" + i).toList();
    store.files.addAll(paths);
    store.deletes = false;
    Map<String, String> left = delete(paths);
    assertThat(left).containsOnlyKeys(paths);
    assertThat(left.get("s3://b/1000")).contains("was not tried");
    assertThat(store.bulks).containsExactly(1000);
  }

  /** A listing shows what is left: a request for each file would be a thousand times as many. */
  @Test
  void beforeAListingOneOfAThousandIsLookedAt() {
    List<String> paths = IntStream.range(0, 2500).mapToObj(i -> "s3://b/" + i).toList();
    store.files.addAll(paths);
    assertThat(ProvenDeletion.beforeListing(store).delete(paths.iterator())).isEmpty();
    assertThat(store.files).isEmpty();
    assertThat(store.bulks).containsExactly(1000, 1000, 500);
    assertThat(store.looked).hasValue(3);
    assertThat(store.singles).as("single deletes").isZero();
    store.looked.set(0);
    store.files.add("s3://b/1");
    assertThat(ProvenDeletion.beforeListing(store).delete(List.of("s3://b/1").iterator()))
        .isEmpty();
    assertThat(store.looked).hasValue(1);
  }

  @Test
  void beforeAListingWhatFailsIsLookedAt() {
    store.files.addAll(Set.of("a", "b", "c"));
    store.failures.put("b", 1000);
    assertThat(ProvenDeletion.beforeListing(store).delete(List.of("a", "b", "c").iterator()))
        .containsExactly(Map.entry("b", "denied: b"));
    assertThat(store.singles).as("of the one that is left").isLessThanOrEqualTo(4);
    store.deletes = false;
    store.failures.clear();
    store.files.addAll(Set.of("a", "c"));
    assertThat(ProvenDeletion.beforeListing(store).delete(List.of("a", "b", "c").iterator()))
        .containsOnlyKeys("a", "b", "c")
        .allSatisfy((path, why) -> assertThat(why).contains("silently deletes nothing"));
  }

  private static final class Store extends InMemoryFileIO implements SupportsBulkOperations {
    private static final long serialVersionUID = 1L;

    private final Set<String> files = ConcurrentHashMap.newKeySet();
    private final Map<String, Integer> failures = new HashMap<>();
    private final List<Integer> bulks = new ArrayList<>();
    private int singles = 0;
    private boolean deletes = true;
    private boolean looks = true;
    private final AtomicInteger looked = new AtomicInteger();

    private boolean fails(String path) {
      return failures.merge(path, -1, Integer::sum) >= 0;
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      int count = 0;
      int failed = 0;
      for (String path : paths) {
        count++;
        if (fails(path)) {
          failed++;
        } else if (deletes) {
          files.remove(path);
        }
      }

      bulks.add(count);
      if (failed > 0) {
        throw new BulkDeletionFailureException(failed);
      }
    }

    @Override
    public synchronized void deleteFile(String path) {
      singles++;
      if (fails(path)) {
        throw new ForbiddenException("denied: %s", path);
      } else if (deletes) {
        files.remove(path);
      }
    }

    @Override
    public InputFile newInputFile(String path) {
      if (!looks) {
        throw new IllegalStateException("no answer");
      }

      return new InMemoryInputFile(path, new byte[0]) {
        @Override
        public boolean exists() {
          looked.incrementAndGet();
          return files.contains(path);
        }
      };
    }
  }
}
