package io.icebergcrypto.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.parquet.Parquet;

/**
 * What benchmarks do through Iceberg's Java API: in Java, because each call from Python takes its
 * time, too.
 */
public final class Tables {
  private static final AtomicLong NEXT = new AtomicLong();
  private static final int AT_ONCE = 200; // each change of a transaction keeps the metadata before it

  private Tables() {}

  /** The first data file of a table, with its key. */
  public static DataFile first(Table table) {
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      return tasks.iterator().next().file().copy();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Lists a data file so many times, in commits of at most {@code batch}: under other names, which
   * are links to it, as a commit reads the end of each.
   */
  public static void list(Table table, DataFile file, int times, int batch) throws IOException {
    Path stored = Path.of(URI.create(file.location()).getPath());
    for (int begin = 0; begin < times; begin += batch) {
      AppendFiles append = table.newFastAppend();
      for (int i = begin; i < Math.min(begin + batch, times); i++) {
        String link = "." + NEXT.incrementAndGet();
        Files.createLink(Path.of(stored + link), stored);
        append.appendFile(
            DataFiles.builder(table.spec()).copy(file).withPath(file.location() + link).build());
      }
      append.commit();
    }
  }

  /** Makes encrypted tables, each of which lists a data file so many times. */
  public static void many(
      Catalog catalog,
      String namespace,
      String prefix,
      int tables,
      Schema schema,
      DataFile file,
      int files,
      int batch)
      throws IOException {
    for (int i = 0; i < tables; i++) {
      TableIdentifier name =
          TableIdentifier.of(namespace, String.format(Locale.ROOT, "%s%05d", prefix, i));
      Map<String, String> properties = Map.of("encryption.key-id", "k1");
      list(
          catalog.createTable(name, schema, PartitionSpec.unpartitioned(), properties),
          file,
          files,
          batch);
    }
  }

  /** Adds files of one row each, the numbers from 0, in commits of at most {@code batch}. */
  public static void append(Table table, long files, long batch) {
    for (long begin = 0; begin < files; begin += batch) {
      AppendFiles append = table.newFastAppend();
      LongStream.range(begin, Math.min(begin + batch, files))
          .parallel()
          .mapToObj(number -> file(table, number))
          .toList()
          .forEach(append::appendFile);
      append.commit();
    }
  }

  private static DataFile file(Table table, long number) {
    String path = table.locationProvider().newDataLocation(number + ".parquet");
    Record row = GenericRecord.create(table.schema());
    row.set(0, number);
    try {
      DataWriter<Record> writer =
          Parquet.writeData(table.io().newOutputFile(path))
              .forTable(table)
              .createWriterFunc((schema, type) -> GenericParquetWriter.create(schema, type))
              .build();
      try (writer) {
        writer.write(row);
      }
      return writer.toDataFile();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Makes a snapshot without a file. */
  public static void touch(Table table) {
    table.newFastAppend().commit();
  }

  /** Makes so many snapshots without a file, by few commits of the catalog. */
  public static void touch(Table table, int times) {
    for (int left = times; left > 0; left -= AT_ONCE) {
      Transaction some = table.newTransaction();
      for (int i = 0; i < Math.min(left, AT_ONCE); i++) {
        some.newFastAppend().commit();
      }
      some.commitTransaction();
    }
  }

  /** Plans a scan of the whole table; returns the number of its tasks. */
  public static long plan(Table table) {
    long tasks = 0;
    try (CloseableIterable<FileScanTask> planned = table.newScan().planFiles()) {
      for (FileScanTask task : planned) {
        tasks += task.length() >= 0 ? 1 : 0;
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return tasks;
  }

  /** Bytes that all threads alive have allocated so far. */
  public static long allocated() {
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    long bytes = 0;
    for (long one : threads.getThreadAllocatedBytes(threads.getAllThreadIds())) {
      bytes += Math.max(one, 0);
    }
    return bytes;
  }
}
