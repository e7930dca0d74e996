package io.icebergcrypto.testing;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.kms.KeystoreKmsClient;
import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.metadata.Kek;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.DVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.puffin.Blob;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinWriter;
import org.apache.iceberg.types.Types;

/** An encrypting catalog over a real one, with a table of two columns to write and read. */
public final class TestLake {
  /** The namespace of all tables. */
  public static final Namespace DB = Namespace.of("db");

  /** id and data. */
  public static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "data", Types.StringType.get()));

  private final Backend backend;
  private final Path folder;
  private final Map<String, String> properties;

  /**
   * Says where; nothing is opened yet.
   *
   * @param properties of each encrypting catalog that is opened
   */
  public TestLake(Backend backend, Path folder, Map<String, String> properties) {
    this.backend = backend;
    this.folder = folder;
    this.properties = properties;
  }

  /** Opens another encrypting catalog, as another process would. */
  public EncryptedCatalog open(Map<String, String> more) throws IOException {
    Map<String, String> all = new HashMap<>(backend.encrypted(folder));
    all.putAll(properties);
    all.putAll(more);
    return (EncryptedCatalog) CatalogUtil.buildIcebergCatalog("lake", all, backend.conf(folder));
  }

  /** Opens the catalog behind, without encryption. */
  public Catalog openStock() throws IOException {
    return CatalogUtil.buildIcebergCatalog(
        "lake", backend.properties(folder), backend.conf(folder));
  }

  /** Opens the catalog behind with the same keystore: stock Iceberg, which encrypts on Hive. */
  public Catalog openStockWithKeys() throws IOException {
    Map<String, String> all = new HashMap<>(backend.properties(folder));
    all.putAll(properties);
    all.remove("encryption.kms-type");
    all.put("encryption.kms-impl", KeystoreKmsClient.class.getName());
    return CatalogUtil.buildIcebergCatalog("lake", all, backend.conf(folder));
  }

  /**
   * Makes the namespace and an encrypted table; commits are retried often, for concurrent tests.
   */
  public static Table createTable(Catalog catalog, String name, Map<String, String> more) {
    if (!((SupportsNamespaces) catalog).namespaceExists(DB)) {
      ((SupportsNamespaces) catalog).createNamespace(DB);
    }

    return catalog
        .buildTable(TableIdentifier.of(DB, name), SCHEMA)
        .withProperty("encryption.key-id", "k1")
        .withProperty("commit.retry.num-retries", "200")
        .withProperty("commit.retry.min-wait-ms", "10")
        .withProperty("commit.retry.max-wait-ms", "200")
        .withProperties(more)
        .create();
  }

  /** Makes the table t with the rows 0, 1 and so on, each of a commit of its own. */
  public static Table createTable(Catalog catalog, int commits) {
    Table table = createTable(catalog, "t", Map.of());
    for (int i = 0; i < commits; i++) {
      append(table, i);
    }

    return table;
  }

  /** Writes one data file with these ids. It is not committed. */
  public static DataFile write(Table table, long... ids) {
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .build()
            .newDataWriter(
                OutputFileFactory.builderFor(table, 1, System.nanoTime()).build().newOutputFile(),
                table.spec(),
                null);
    try (writer) {
      for (long id : ids) {
        GenericRecord row = GenericRecord.create(SCHEMA);
        row.setField("id", id);
        row.setField("data", "row " + id);
        writer.write(row);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return writer.toDataFile();
  }

  /** Writes a file that deletes the rows with an id from all older data. It is not committed. */
  public static DeleteFile equalityDelete(Table table, long id) {
    Schema ofId = table.schema().select("id");
    EqualityDeleteWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .equalityFieldIds(new int[] {1})
            .equalityDeleteRowSchema(ofId)
            .build()
            .newEqualityDeleteWriter(
                files(table, FileFormat.PARQUET).newOutputFile(), table.spec(), null);
    try (writer) {
      GenericRecord row = GenericRecord.create(ofId);
      row.setField("id", id);
      writer.write(row);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return writer.toDeleteFile();
  }

  /** Writes a vector that deletes one row of a data file. It is not committed. */
  public static List<DeleteFile> vector(Table table, DataFile data, long position) {
    DVFileWriter writer = new BaseDVFileWriter(files(table, FileFormat.PUFFIN), path -> null);
    try (writer) {
      writer.delete(data.location(), position, table.spec(), null);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return writer.result().deleteFiles();
  }

  /** Writes statistics of a snapshot, as Spark's compute_table_stats does. Not committed. */
  public static StatisticsFile statistics(Table table, long snapshot, String content) {
    String location =
        ((HasTableOperations) table)
            .operations()
            .metadataFileLocation(snapshot + "-" + UUID.randomUUID() + ".stats");
    try (PuffinWriter writer = Puffin.write(table.io().newOutputFile(location)).build()) {
      ByteBuffer bytes = StandardCharsets.UTF_8.encode(content);
      writer.add(new Blob("test", List.of(1), snapshot, 1, bytes));
      writer.finish();
      return new GenericStatisticsFile(
          snapshot, writer.location(), writer.fileSize(), writer.footerSize(), List.of());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static OutputFileFactory files(Table table, FileFormat format) {
    return OutputFileFactory.builderFor(table, 1, System.nanoTime()).format(format).build();
  }

  /** Writes and commits one data file with these ids; the table. */
  public static Table append(Table table, long... ids) {
    table.newAppend().appendFile(write(table, ids)).commit();
    return table;
  }

  /** Removes all snapshots but the last of the branch, and no file. */
  public static void expire(Table table) {
    table
        .expireSnapshots()
        .expireOlderThan(Long.MAX_VALUE)
        .retainLast(1)
        .cleanupLevel(ExpireSnapshots.CleanupLevel.NONE)
        .commit();
  }

  /** The ids in the table. */
  public static Set<Long> ids(Table table) {
    return new TreeSet<>(rows(table));
  }

  /** The ids in the table, in order, as often as they are there. */
  public static List<Long> rows(Table table) {
    return ids(IcebergGenerics.read(table));
  }

  /** The same of a snapshot of the table. */
  public static List<Long> rows(Table table, long snapshotId) {
    return ids(IcebergGenerics.read(table).useSnapshot(snapshotId));
  }

  /** The ids in a snapshot of the table. */
  public static Set<Long> ids(Table table, long snapshotId) {
    return new TreeSet<>(rows(table, snapshotId));
  }

  private static List<Long> ids(IcebergGenerics.ScanBuilder scan) {
    List<Long> ids = new ArrayList<>();
    try (CloseableIterable<Record> rows = scan.build()) {
      rows.forEach(row -> ids.add((Long) row.getField("id")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    ids.sort(null);
    return ids;
  }

  /** The files that any snapshot reaches, on a local disk. */
  public static Set<Path> reachable(Table table) {
    return locations(table).stream().map(TestLake::path).collect(Collectors.toSet());
  }

  /** The files that any snapshot reaches: lists, manifests, data and delete files. */
  public static Set<String> locations(Table table) {
    Set<String> paths = new TreeSet<>();
    for (Snapshot snapshot : table.snapshots()) {
      paths.add(snapshot.manifestListLocation());
      for (ManifestFile manifest : snapshot.allManifests(table.io())) {
        paths.add(manifest.path());
        try (CloseableIterable<String> files =
            ManifestFiles.readPaths(manifest, table.io(), table.specs())) {
          files.forEach(paths::add);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }
    }

    return paths;
  }

  /** The file or folder at a location. */
  public static Path path(String location) {
    return Path.of(location.replaceFirst("^file:(//)?", ""));
  }

  /** Metadata of a new table, which no catalog has. */
  public static TableMetadata metadata(String location, Map<String, String> properties) {
    return TableMetadata.newTableMetadata(
        SCHEMA, PartitionSpec.unpartitioned(), location, properties);
  }

  /** A plaintext table's metadata as encrypt_table makes it, under the key k1 and without rows. */
  public static TableMetadata encrypted(
      EncryptedCatalog catalog, TableIdentifier name, TableMetadata base) {
    EncryptedKey kek =
        Kek.make(catalog.context().fullName(name), base, "k1", catalog.context().kms());
    return EncryptedForm.of(base, "k1", List.of(kek));
  }

  /** The metadata that a table has, without a look at whether there is newer one. */
  public static TableMetadata metadata(Table table) {
    return ((HasTableOperations) table).operations().current();
  }

  /** All files below the table's folder but metadata.json, hints and checksums. */
  public static List<Path> files(Table table) {
    Path root = path(table.location());
    try (Stream<Path> all = Files.walk(root)) {
      return new ArrayList<>(
          all.filter(Files::isRegularFile)
              .filter(
                  file ->
                      !file.toString().matches(".*(\\.metadata\\.json|version-hint\\.\\w+|\\.crc)"))
              .toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Every file below a folder, with what differs once it was written again. */
  public static Map<Path, String> states(Path root) throws IOException {
    Map<Path, String> states = new TreeMap<>();
    try (Stream<Path> all = Files.walk(root)) {
      for (Path file : all.filter(Files::isRegularFile).toList()) {
        states.put(file, Files.getLastModifiedTime(file) + ", " + Files.size(file) + " bytes");
      }
    }

    return states;
  }

  /** What a file starts with. */
  public static FileMagic magic(Path file) {
    return FileInspector.magic(org.apache.iceberg.Files.localInput(file.toFile()));
  }
}
