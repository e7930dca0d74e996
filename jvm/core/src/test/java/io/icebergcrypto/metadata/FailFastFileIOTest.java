package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.BytesFile;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;

/** What a load has read is not kept longer than it is needed: a thread may never load again. */
class FailFastFileIOTest {
  private static final String FILE = "memory:/t/1.metadata.json";

  private static WeakReference<byte[]> read;

  /** A storage that knows whether what was read from it is still in memory. */
  public static final class Storage extends InMemoryFileIO {
    @Override
    public InputFile newInputFile(String path) {
      return new BytesFile(new byte[1]) {
        @Override
        public SeekableInputStream newStream() {
          return new Stream() {
            @Override
            public byte[] readAllBytes() {
              byte[] bytes = new byte[1_000_000];
              read = new WeakReference<>(bytes);
              return bytes;
            }
          };
        }
      };
    }
  }

  private static void open() {
    Map<String, String> behind = new HashMap<>();
    behind.put("type", "jdbc");
    behind.put(CatalogProperties.FILE_IO_IMPL, Storage.class.getName());
    FailFastFileIO.configure(behind);
    FailFastFileIO io = new FailFastFileIO();
    io.initialize(behind);
    io.newInputFile(FILE).newStream();
  }

  private static void checkForgotten() throws InterruptedException {
    long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
    while (read.get() != null && System.nanoTime() < end) {
      System.gc();
      Thread.sleep(10);
    }

    assertThat(read.get() == null).as("forgotten").isTrue();
  }

  @Test
  void aLoadThatFailsLeavesNothing() throws InterruptedException {
    assertThatThrownBy(
            () ->
                FailFastFileIO.loading(
                    () -> {
                      open();
                      throw new IllegalStateException("refused");
                    }))
        .hasMessage("refused");
    checkForgotten();
  }

  @Test
  void neitherDoesWhatIsReadOutsideOfALoad() throws InterruptedException {
    open();
    checkForgotten();
  }
}
