package io.icebergcrypto.parquet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.icebergcrypto.IcebergCryptoException;
import java.io.IOException;
import javax.crypto.AEADBadTagException;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.Test;

/** Whose an error is: the storage's, or the file's. */
class WatchedStorageTest {
  private final WatchedStorage storage = new WatchedStorage(new RawLocalFileSystem());
  private final IOException burnt = new IOException("the disk is on fire");

  private void fail() {
    catchThrowable(
        () ->
            storage.watched(
                () -> {
                  throw burnt;
                }));
  }

  private String whose(Exception error) {
    IcebergCryptoException typed =
        storage.typed(
            error,
            of -> new IcebergCryptoException("the storage's: " + of.getMessage(), "wait"),
            () -> new IcebergCryptoException("the file's", "restore it"));
    return typed.problem();
  }

  @Test
  void aReadThatSucceededAtASecondAttemptIsNoFailure() throws IOException {
    fail();
    assertThat(whose(new IOException("cannot read the page")))
        .isEqualTo("the storage's: the disk is on fire");
    storage.watched(() -> 1);
    assertThat(whose(new RuntimeException(new AEADBadTagException()))).isEqualTo("the file's");
    assertThat(whose(new RuntimeException(burnt)))
        .as("reads that follow, to clean up")
        .isEqualTo("the storage's: the disk is on fire");
  }
}
