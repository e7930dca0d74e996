package io.icebergcrypto;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.commit.CommitRetry;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.types.Types;
import org.apache.spark.SparkException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What counts as a cancel, and what it stops. */
final class CancelledExceptionTest {
  @AfterEach
  void notInterrupted() {
    CancelledException.ended();
  }

  @Test
  void cancelsAreFoundBelowOtherErrors() {
    for (Exception cancel :
        List.of(
            new SparkException("Job 12 cancelled as part of cancellation of all jobs"),
            new SparkException(
                "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group x"),
            new InterruptedException("sleep interrupted"),
            new ClosedByInterruptException(),
            new CancellationException())) {
      assertThatThrownBy(() -> CancelledException.rethrow(new RuntimeException("aborted", cancel)))
          .isInstanceOf(CancelledException.class)
          .hasMessageContaining(cancel.toString())
          .hasMessageContaining("hint: Nothing was done after that. Call it again");
    }

    for (Exception other :
        List.of(
            new SparkException("Job aborted due to stage failure"),
            new IllegalStateException("Job 12 cancelled"),
            new UncheckedIOException(new SocketTimeoutException("Read timed out")),
            new UncheckedIOException(new InterruptedIOException("timeout")),
            new CommitFailedException("another commit came first"))) {
      assertThatCode(() -> CancelledException.rethrow(other)).doesNotThrowAnyException();
    }
  }

  @Test
  void anInterruptedThreadCommitsNothing() throws Exception {
    try (InMemoryCatalog catalog = new InMemoryCatalog()) {
      catalog.initialize("lake", Map.of());
      catalog.createNamespace(Namespace.of("db"));
      Schema schema = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));
      BaseTable table = (BaseTable) catalog.createTable(TableIdentifier.of("db", "t"), schema);
      TableOperations ops = table.operations();
      Thread.currentThread().interrupt();
      assertThatThrownBy(
              () -> CommitRetry.commit("lake.db.t", ops, Map.of(), CancelledExceptionTest::changed))
          .isInstanceOf(CancelledException.class);
      assertThat(ops.refresh().properties()).doesNotContainKey("changed");

      CancelledException.toTheEnd(
          () -> assertThat(Thread.currentThread().isInterrupted()).isFalse());
      assertThatThrownBy(CancelledException::check).isInstanceOf(CancelledException.class);
      assertThatThrownBy(() -> CancelledException.rethrow(new CommitFailedException("a race")))
          .isInstanceOf(CancelledException.class)
          .hasMessageContaining("its thread was interrupted");

      assertThat(Thread.interrupted()).isTrue();
      CancelledException.cancel(Thread.currentThread());
      assertThat(Thread.interrupted()).isTrue(); // as a library might do
      assertThatThrownBy(CancelledException::check).isInstanceOf(CancelledException.class);
      CancelledException.toTheEnd(
          () -> {
            CancelledException.cancel(Thread.currentThread()); // again, as Python does
            assertThat(Thread.currentThread().isInterrupted()).isFalse();
          });
      assertThatThrownBy(CancelledException::check).isInstanceOf(CancelledException.class);
      CancelledException.ended();
      CommitRetry.commit("lake.db.t", ops, Map.of(), CancelledExceptionTest::changed);
      assertThat(ops.current().properties()).containsKey("changed");
    }
  }

  private static TableMetadata changed(TableMetadata metadata) {
    return TableMetadata.buildFrom(metadata).setProperties(Map.of("changed", "yes")).build();
  }
}
