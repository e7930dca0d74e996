package io.icebergcrypto.io.checked;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Which Parquet files a failed read may be of. */
class OpenParquetFileTest {
  private static final ThreadLocal<List<OpenParquetFile>> WATCHED = new ThreadLocal<>();

  private final OpenParquetFile open = new OpenParquetFile();

  /** An engine whose tasks run on the test's thread. */
  public static final class TestEngine implements OpenParquetFile.Watcher {
    @Override
    public boolean watch(OpenParquetFile file) {
      return WATCHED.get() != null && WATCHED.get().add(file);
    }
  }

  @BeforeEach
  void readOnThisThread() {
    WATCHED.set(new ArrayList<>());
  }

  @AfterEach
  void readNoMore() {
    WATCHED.remove();
  }

  private void onAnotherThread(String location) {
    CompletableFuture.runAsync(() -> open.opened("lake.db.t", location)).join();
  }

  @Test
  void dataFilesAreReadOneAfterTheOther() {
    assertThat(open.locations()).isEmpty();
    open.opened("lake.db.t", "a");
    open.opened("lake.db.t", "b");
    assertThat(open.table()).isEqualTo("lake.db.t");
    assertThat(open.locations()).containsExactly("b");
    assertThat(WATCHED.get()).containsExactly(open);
  }

  /** Iceberg's threads for deletes open them before the data file, and while it is read. */
  @Test
  void deleteFilesAreReadBeside() {
    onAnotherThread("d1");
    assertThat(WATCHED.get()).as("no engine learns of failures on that thread").isEmpty();
    open.opened("lake.db.t", "a");
    onAnotherThread("d2");
    onAnotherThread("d2");
    assertThat(open.locations()).containsExactly("a", "d1", "d2");
    open.opened("lake.db.t", "b");
    assertThat(open.locations()).containsExactly("b", "d1", "d2");
    assertThat(WATCHED.get()).containsExactly(open);
  }
}
