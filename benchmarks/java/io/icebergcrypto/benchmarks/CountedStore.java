package io.icebergcrypto.benchmarks;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Consumer;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.Table;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.DelegateFileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.spark.SparkContext;
import org.apache.spark.storage.RDDInfo;

/**
 * Storage in the memory of this JVM, which counts the requests that S3FileIO would make: one for
 * each file that is opened, and for each place that is read in it; one for each file whose length
 * or existence is asked for; one for each thousand that are listed; and one for each batch that is
 * deleted (`s3.delete.batch-size`).
 */
public final class CountedStore implements DelegateFileIO {
  private static final long serialVersionUID = 1L;
  private static final int LISTED_AT_ONCE = 1000;
  private static final int USUAL_BATCH = 250;

  private static final ConcurrentSkipListMap<String, byte[]> FILES = new ConcurrentSkipListMap<>();
  private static final Map<String, Long> COUNTS = new TreeMap<>();
  private static boolean measures;
  private static long heap;
  private static long nanos;

  private Map<String, String> properties = Map.of();

  /** Iceberg makes one by this constructor. */
  public CountedStore() {}

  /** Forgets what was counted, and measures the heap when the first file is deleted. */
  public static synchronized void begin() {
    COUNTS.clear();
    heap = 0;
    nanos = 0;
    measures = true;
  }

  /** Requests by their kind, since. */
  public static synchronized Map<String, Long> counts() {
    return new TreeMap<>(COUNTS);
  }

  /** What was reachable on the heap before the first file was deleted; 0: none was. */
  public static synchronized long heapAtFirstDelete() {
    return heap;
  }

  /** How long that took to find out, in seconds. */
  public static synchronized double secondsOfHeap() {
    return nanos / 1e9;
  }

  /** What is reachable on the heap, without what Spark's executors in this JVM have cached. */
  public static long heap() {
    for (int i = 0; i < 3; i++) { // Spark removes broadcasts after their references were collected
      System.gc();
      try {
        Thread.sleep(300);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    System.gc();
    long cached = 0;
    for (RDDInfo one : SparkContext.getOrCreate().getRDDStorageInfo()) {
      cached += one.memSize();
    }

    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory() - cached;
  }

  /** How many files there are below a prefix. */
  public static int files(String prefix) {
    return FILES.subMap(prefix, prefix + Character.MAX_VALUE).size();
  }

  /** Copies a data file so many times, all of the same bytes in memory, and appends the copies. */
  public static void copy(Table table, DataFile file, int times, int batch) {
    byte[] bytes = FILES.get(file.location());
    for (int begin = 0; begin < times; begin += batch) {
      AppendFiles append = table.newFastAppend();
      for (int i = begin; i < Math.min(begin + batch, times); i++) {
        String path = String.format("%s-%07d.parquet", file.location(), i);
        FILES.put(path, bytes);
        append.appendFile(DataFiles.builder(table.spec()).copy(file).withPath(path).build());
      }

      append.commit();
    }
  }

  private static synchronized void count(String kind) {
    if (kind.startsWith("DELETE") && measures) {
      measures = false;
      long start = System.nanoTime();
      heap = heap();
      nanos = System.nanoTime() - start;
    }

    COUNTS.merge(kind, 1L, Long::sum);
  }

  private static byte[] bytes(String path) {
    byte[] bytes = FILES.get(path);
    if (bytes == null) {
      throw new NotFoundException("Location does not exist: %s", path);
    }

    return bytes;
  }

  @Override
  public void initialize(Map<String, String> given) {
    this.properties = Map.copyOf(given);
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public InputFile newInputFile(String path) {
    return new Stored(path, -1);
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return new Stored(path, length);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return new Written(path);
  }

  @Override
  public void deleteFile(String path) {
    count("DELETE");
    FILES.remove(path);
  }

  @Override
  public void deleteFiles(Iterable<String> paths) {
    int most =
        Integer.parseInt(properties.getOrDefault("s3.delete.batch-size", "" + USUAL_BATCH));
    List<String> batch = new ArrayList<>();
    Consumer<List<String>> delete =
        some -> {
          count("DELETE MANY");
          some.forEach(FILES::remove);
          some.clear();
        };
    for (String path : paths) {
      batch.add(path);
      if (batch.size() == most) {
        delete.accept(batch);
      }
    }

    if (!batch.isEmpty()) {
      delete.accept(batch);
    }
  }

  @Override
  public Iterable<FileInfo> listPrefix(String prefix) {
    return () -> {
      count("LIST");
      Iterator<Map.Entry<String, byte[]>> all =
          FILES.subMap(prefix, prefix + Character.MAX_VALUE).entrySet().iterator();
      return new Iterator<>() {
        private int listed;

        @Override
        public boolean hasNext() {
          return all.hasNext();
        }

        @Override
        public FileInfo next() {
          if (listed > 0 && listed % LISTED_AT_ONCE == 0) {
            count("LIST");
          }

          listed++;
          Map.Entry<String, byte[]> file = all.next();
          return new FileInfo(file.getKey(), file.getValue().length, 1);
        }
      };
    };
  }

  @Override
  public void deletePrefix(String prefix) {
    deleteFiles(
        () -> {
          Iterator<FileInfo> files = listPrefix(prefix).iterator();
          return new Iterator<>() {
            @Override
            public boolean hasNext() {
              return files.hasNext();
            }

            @Override
            public String next() {
              return files.next().location();
            }
          };
        });
  }

  private static final class Stored implements InputFile {
    private final String path;
    private long length;

    private Stored(String path, long length) {
      this.path = path;
      this.length = length;
    }

    @Override
    public long getLength() {
      if (length < 0) {
        count("HEAD");
        this.length = bytes(path).length;
      }

      return length;
    }

    @Override
    public SeekableInputStream newStream() {
      return new Stream(bytes(path));
    }

    @Override
    public String location() {
      return path;
    }

    @Override
    public boolean exists() {
      count("HEAD");
      return FILES.containsKey(path);
    }
  }

  private static final class Stream extends SeekableInputStream {
    private final byte[] bytes;
    private int position;
    private int open = -1;

    private Stream(byte[] bytes) {
      this.bytes = bytes;
    }

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public void seek(long to) {
      this.position = (int) to;
    }

    @Override
    public int read() {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int most) {
      if (open != position) {
        count("GET");
      }

      int length = Math.min(most, bytes.length - position);
      if (length <= 0) {
        this.open = position;
        return most == 0 ? 0 : -1;
      }

      System.arraycopy(bytes, position, into, offset, length);
      position += length;
      this.open = position;
      return length;
    }
  }

  private record Written(String path) implements OutputFile {
    @Override
    public PositionOutputStream create() {
      return createOrOverwrite();
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      return new PositionOutputStream() {
        @Override
        public long getPos() {
          return bytes.size();
        }

        @Override
        public void write(int b) {
          bytes.write(b);
        }

        @Override
        public void write(byte[] from, int offset, int length) {
          bytes.write(from, offset, length);
        }

        @Override
        public void close() throws IOException {
          count("PUT");
          FILES.put(path, bytes.toByteArray());
        }
      };
    }

    @Override
    public String location() {
      return path;
    }

    @Override
    public InputFile toInputFile() {
      return new Stored(path, -1);
    }
  }
}
