package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The metadata files of a log, which are read several at once. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class MetadataFilesTest extends LakeFixture {
  @Test
  void severalAreReadAtOnceAndTheirOrderIsThatOfTheLog() throws Exception {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    for (int i = 0; i < 10; i++) {
      table.newAppend().appendFile(TestLake.write(table, i)).commit();
    }

    TableOperations ops = ((HasTableOperations) table).operations();
    List<String> paths = new ArrayList<>(List.of(ops.current().metadataFileLocation()));
    ops.current().previousFiles().forEach(entry -> paths.add(entry.file()));
    assertThat(paths).hasSizeGreaterThan(10);
    String gone = paths.get(5);
    SlowIO slow = new SlowIO(ops.io(), gone, Integer.MAX_VALUE);

    MetadataFiles read = MetadataFiles.ofLog(slow, ops.current());

    assertThat(read.versions()).extracting(MetadataFiles.Version::path).isEqualTo(paths);
    assertThat(read.versions())
        .filteredOn(version -> version.problem() != null)
        .containsExactly(new MetadataFiles.Version(gone, -1, FileProblem.MISSING, null));
    assertThat(read.named())
        .containsExactlyElementsOf(MetadataFiles.ofSnapshots(ops.current()).named());
    assertThat(slow.most.get()).isBetween(2, 8);
  }

  @Test
  void oneAnswerThatThereIsNoSuchFileIsAskedAgain() {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    table.updateProperties().set("a", "b").commit();
    String path = metadata(table).previousFiles().get(0).file();

    MetadataFiles read = MetadataFiles.ofLog(new SlowIO(table.io(), path, 1), metadata(table));

    assertThat(read.versions())
        .filteredOn(version -> version.path().equals(path))
        .singleElement()
        .satisfies(
            version -> {
              assertThat(version.problem()).isNull();
              assertThat(version.failure()).isInstanceOf(NotFoundException.class);
            });
  }

  @Test
  void thePropertyLeadsToNoOtherTableAndHidesNoFileOfTheLog() {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    table.newAppend().appendFile(TestLake.write(table, 1)).commit();
    Table other = TestLake.createTable(catalog, "other", Map.of());
    other.newAppend().appendFile(TestLake.write(other, 1)).commit();
    FileIO io = table.io();
    TableMetadata metadata = metadata(table);
    String anothers = metadata(other).metadataFileLocation();

    MetadataFiles read = MetadataFiles.ofLog(io, keeping(metadata, anothers));

    MetadataFiles.Version version = read.versions().get(read.versions().size() - 1);
    assertThat(version.path()).isEqualTo(anothers);
    assertThat(version.problem().code()).isEqualTo(ProblemCode.UNREADABLE);
    assertThat(version.problem().words()).contains(EncryptionProperties.PLAINTEXT_METADATA);
    assertThat(read.named()).containsExactlyElementsOf(MetadataFiles.ofSnapshots(metadata).named());
    assertThat(read.olderKeys()).doesNotContainAnyElementsOf(metadata(other).encryptionKeys());

    String logged = metadata.previousFiles().get(0).file();
    io.deleteFile(logged);
    assertThat(MetadataFiles.ofLog(io, keeping(metadata, logged)).versions())
        .contains(new MetadataFiles.Version(logged, -1, FileProblem.MISSING, null));
    String purged = metadata.location() + "/metadata/plaintext.metadata.json";
    assertThat(MetadataFiles.ofLog(io, keeping(metadata, purged)).versions())
        .extracting(MetadataFiles.Version::path)
        .doesNotContain(purged);
  }

  @Test
  void statisticsCountWithoutTheirSnapshotAndManifestsInTheMetadataAreTold() {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    table.newAppend().appendFile(TestLake.write(table, 1)).commit();
    TableMetadata metadata = metadata(table);
    String current = metadata.metadataFileLocation();
    String json = TableMetadataParser.toJson(metadata);
    String statistics =
        "{'snapshot-id': 7, 'statistics-path': 's3://b/x.stats', 'file-size-in-bytes': 9,"
            + " 'file-footer-size-in-bytes': 4, 'blob-metadata': []}";
    String[] parts = {"\"statistics\":[", "\"snapshots\":["};
    TableMetadata with =
        TableMetadataParser.fromJson(
            current, json.replace(parts[0], parts[0] + statistics.replace('\'', '"')));

    assertThat(MetadataFiles.ofSnapshots(with).named())
        .extracting(ReachableFile::path)
        .contains("s3://b/x.stats");
    assertThat(MetadataFiles.ofSnapshots(with).versions()).isEmpty();
    assertThat(MetadataFiles.ofRefs(with).named())
        .containsExactlyElementsOf(MetadataFiles.ofRefs(metadata).named());

    String snapshot = "{'snapshot-id': 7, 'timestamp-ms': 1, 'manifests': ['s3://b/m.avro']},";
    String old = json.replace(parts[1], parts[1] + snapshot.replace('\'', '"'));
    TableMetadata embedded = TableMetadataParser.fromJson(current, old);
    assertThat(MetadataFiles.ofRefs(embedded).versions()).isEmpty();
    for (MetadataFiles files :
        List.of(MetadataFiles.ofSnapshots(embedded), MetadataFiles.ofLog(table.io(), embedded))) {
      assertThat(files.versions())
          .filteredOn(version -> version.problem() != null)
          .singleElement()
          .satisfies(
              version -> {
                assertThat(version.path()).isEqualTo(current);
                assertThat(version.problem().code()).isEqualTo(ProblemCode.UNREADABLE);
              });
    }
  }

  private static TableMetadata metadata(Table table) {
    return ((HasTableOperations) table).operations().current();
  }

  /** The table's metadata as a client could set it; it is not committed. */
  private static TableMetadata keeping(TableMetadata metadata, String path) {
    return TableMetadata.buildFrom(metadata)
        .setProperties(Map.of(EncryptionProperties.PLAINTEXT_METADATA, path))
        .discardChanges()
        .withMetadataLocation(metadata.metadataFileLocation())
        .build();
  }

  /** Storage of which the first read goes on when another one has begun. */
  private static final class SlowIO extends InMemoryFileIO {
    private static final long serialVersionUID = 1L;

    private final transient FileIO io;
    private final String gone;
    private final AtomicInteger times;
    private final transient CountDownLatch another = new CountDownLatch(2);
    private final AtomicInteger now = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();

    SlowIO(FileIO io, String gone, int times) {
      this.io = io;
      this.gone = gone;
      this.times = new AtomicInteger(times);
    }

    @Override
    public InputFile newInputFile(String path) {
      if (path.equals(gone) && times.getAndDecrement() > 0) {
        throw new NotFoundException("no such file");
      }

      most.accumulateAndGet(now.incrementAndGet(), Math::max);
      another.countDown();
      try {
        another.await(10, TimeUnit.SECONDS);
        return io.newInputFile(path);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      } finally {
        now.decrementAndGet();
      }
    }
  }
}
