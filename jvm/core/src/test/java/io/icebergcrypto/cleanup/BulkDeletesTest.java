package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Where the storage deletes many files by one call, a table's files are deleted so. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class BulkDeletesTest extends LakeFixture {
  private static final int FILES = 30;

  @Override
  protected Map<String, String> properties() {
    return Map.of("io-impl", Counting.class.getName());
  }

  @BeforeEach
  void forget() {
    Counting.BULKS.clear();
    Counting.SINGLES.clear();
  }

  /** A table of a snapshot with 30 data files, and a later one without them. */
  private Table withDeletedFiles() {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    var append = table.newFastAppend();
    for (int i = 0; i < FILES; i++) {
      append.appendFile(TestLake.write(table, i));
    }

    append.commit();
    table.newDelete().deleteFromRowFilter(Expressions.alwaysTrue()).commit();
    return TestLake.append(table, 100);
  }

  @Test
  void expiryDeletesManyAtOnceAlsoWithAnExecutor() {
    ExecutorService executor = Executors.newSingleThreadExecutor();
    try {
      Table table = withDeletedFiles();
      forget();
      table
          .expireSnapshots()
          .expireOlderThan(Long.MAX_VALUE)
          .retainLast(1)
          .executeDeleteWith(executor)
          .commit();
      assertThat(Counting.SINGLES).as("single deletes").isEmpty();
      assertThat(Counting.BULKS).contains(FILES);
      assertThat(TestLake.ids(table)).containsExactly(100L);
    } finally {
      executor.shutdownNow();
    }
  }

  @Test
  void purgeDeletesTheFilesOfAManifestAtOnce() {
    Table table = withDeletedFiles();
    forget();
    assertThat(catalog.dropTable(T, true)).isTrue();
    assertThat(Counting.SINGLES)
        .as("single deletes: the metadata in force")
        .containsExactly(TestLake.metadata(table).metadataFileLocation());
    // two manifests name them, which are read side by side, and each deletes what the other did not
    assertThat(Collections.max(Counting.BULKS)).isGreaterThanOrEqualTo(FILES / 2);
  }

  /** A write that fails because of a refusal removes its files. */
  @Test
  void aRefusedTablesFilesAreDeletedAtOnce() {
    FileIO io = DeleteOnlyFileIO.of(new OnlyBulk(), new IllegalStateException("refused"));
    ((SupportsBulkOperations) io).deleteFiles(List.of("/none/a", "/none/b"));
    assertThat(Counting.BULKS).containsExactly(2);
    assertThatThrownBy(() -> io.newInputFile("/none/a")).hasMessage("refused");
  }

  /** A user's class of storage, which lists nothing. */
  @Test
  void aStorageThatCannotListDeletesManyAtOnce() throws IOException {
    try (EncryptedCatalog own = lake.open(Map.of("io-impl", OnlyBulk.class.getName()))) {
      FileIO io = TestLake.createTable(own, "own", Map.of()).io();
      assertThat(io).isInstanceOf(SupportsBulkOperations.class);
      forget();
      ((SupportsBulkOperations) io).deleteFiles(List.of("/none/a", "/none/b"));
      assertThat(Counting.BULKS).containsExactly(2);
    }
  }

  /** Counts deletes. */
  public static final class Counting extends HadoopFileIO {
    private static final long serialVersionUID = 1L;
    private static final Queue<Integer> BULKS = new ConcurrentLinkedQueue<>();
    private static final Queue<String> SINGLES = new ConcurrentLinkedQueue<>();

    /** Iceberg makes one by this constructor. */
    public Counting() {}

    private Counting(Configuration conf) {
      super(conf);
    }

    @Override
    public void deleteFile(String path) {
      SINGLES.add(path);
      super.deleteFile(path);
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      List<String> all = new ArrayList<>();
      paths.forEach(all::add);
      BULKS.add(all.size());
      new HadoopFileIO(getConf()).deleteFiles(all);
    }
  }

  /** Deletes many at once, and cannot list. */
  public static final class OnlyBulk implements FileIO, SupportsBulkOperations {
    private static final long serialVersionUID = 1L;

    private final Counting io = new Counting(new Configuration());

    @Override
    public void deleteFiles(Iterable<String> paths) {
      io.deleteFiles(paths);
    }

    @Override
    public InputFile newInputFile(String path) {
      return io.newInputFile(path);
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return io.newOutputFile(path);
    }

    @Override
    public void deleteFile(String path) {
      io.deleteFile(path);
    }
  }
}
