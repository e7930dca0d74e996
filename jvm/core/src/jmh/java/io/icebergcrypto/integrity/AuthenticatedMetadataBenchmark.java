package io.icebergcrypto.integrity;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.iceberg.LocationProviders;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.types.Types;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * What authenticated metadata adds to a commit and to a load, beside what the catalog does anyway:
 * it writes the metadata once, or reads it once.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
public class AuthenticatedMetadataBenchmark {
  /** 100 kB and 10 MB of metadata, about. */
  @Param({"130", "13000"})
  public int snapshots;

  private final Operations ops = new Operations();
  private final MetadataAuthenticator authenticator =
      MetadataAuthenticator.of("lake.db.t", ops, true, NoKms::new, Set.of());
  private TableMetadata metadata;
  private String file;

  /** Makes metadata in force, which is authenticated. */
  @Setup
  public void make() {
    TableMetadata first =
        TableMetadata.newTableMetadata(
            new Schema(Types.NestedField.required(1, "id", Types.LongType.get())),
            PartitionSpec.unpartitioned(),
            "s3://bucket/db/t",
            Map.of("format-version", "3", "encryption.key-id", "k1"));
    TableMetadata.Builder builder = TableMetadata.buildFrom(first);
    long now = System.currentTimeMillis();
    for (int i = 1; i <= snapshots; i++) {
      builder.addSnapshot(SnapshotParser.fromJson(snapshot(i, now + i)));
    }

    TableMetadata signed = authenticator.sign(null, builder.build());
    this.file = TableMetadataParser.toJson(signed);
    this.metadata = read("v1.metadata.json");
    System.out.printf("metadata.json of %d kB%n", file.length() / 1000);
  }

  private static String snapshot(int number, long when) {
    return String.format(
        "{\"sequence-number\":%d,\"snapshot-id\":%d,\"timestamp-ms\":%d,\"summary\":{"
            + "\"operation\":\"append\",\"spark.app.id\":\"local-1763831234567\","
            + "\"added-data-files\":\"1\",\"added-records\":\"100000\",\"added-files-size\":\"1234567\","
            + "\"changed-partition-count\":\"1\",\"total-records\":\"%d\",\"total-files-size\":\"%d\","
            + "\"total-data-files\":\"%d\",\"total-delete-files\":\"0\",\"total-position-deletes\":\"0\","
            + "\"total-equality-deletes\":\"0\",\"engine-version\":\"4.1.4\",\"app-id\":\"local-176\",\"engine-name\":\"spark\",\"iceberg-version\":\"Apache"
            + " Iceberg 1.12.0\"},"
            + "\"manifest-list\":\"s3://bucket/db/t/metadata/snap-%d-1-%036d.avro\",\"schema-id\":0,"
            + "\"first-row-id\":%d,\"added-rows\":1}",
        number,
        7_000_000_000L + number,
        when,
        number * 100_000L,
        number * 1_234_567L,
        number,
        number,
        number,
        number - 1);
  }

  private TableMetadata read(String name) {
    return TableMetadataParser.fromJson("s3://bucket/db/t/metadata/" + name, file);
  }

  /** For comparison: what a catalog does in a commit. */
  @Benchmark
  public int write() {
    return TableMetadataParser.toJson(metadata).length();
  }

  /** For comparison: what a catalog does in a load. */
  @Benchmark
  public TableMetadata read() {
    return read("v1.metadata.json");
  }

  /** A commit. */
  @Benchmark
  public TableMetadata sign() {
    return authenticator.sign(metadata, metadata);
  }

  /** A load. */
  @Benchmark
  public void check() {
    authenticator.check(metadata, metadata.metadataFileLocation());
  }

  /** Any bytes are wrapped as they are: copied, as the caller overwrites its own. */
  private static final class NoKms implements KeyManagementClient, AuthenticatedWrapping {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      return copyOf(key);
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      return copyOf(wrappedKey);
    }

    private static ByteBuffer copyOf(ByteBuffer bytes) {
      return ByteBuffer.allocate(bytes.remaining()).put(bytes.duplicate()).flip();
    }

    @Override
    public void initialize(Map<String, String> properties) {}

    @Override
    public boolean authenticatesWrapping(String keyId) {
      return true;
    }
  }

  /** Only what the authenticator asks for. */
  private static class Operations implements TableOperations {
    private final FileIO io = new InMemoryFileIO();

    @Override
    public TableMetadata current() {
      throw new UnsupportedOperationException();
    }

    @Override
    public TableMetadata refresh() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileIO io() {
      return io;
    }

    @Override
    public TableOperations temp(TableMetadata metadata) {
      return this;
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return "s3://bucket/db/t/metadata/" + fileName;
    }

    @Override
    public LocationProvider locationProvider() {
      return LocationProviders.locationsFor("s3://bucket/db/t", Map.of());
    }
  }
}
