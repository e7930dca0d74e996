package io.icebergcrypto.metadata;

import io.icebergcrypto.metadata.forwarding.ForwardingFileIO;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.exceptions.RuntimeIOException;
import org.apache.iceberg.hadoop.Configurable;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.apache.iceberg.util.Tasks;
import org.apache.iceberg.view.ViewMetadataParser;

/**
 * The storage of a catalog behind that loads metadata with many retries (JDBC and Glue: 20, in 90
 * seconds). Retries help when the storage fails, but not when the file is not metadata. So when a
 * thread opens a file again in one load, this parses it first, and raises an error that Iceberg
 * does not retry if that fails. Only the catalog behind uses this; tables get the storage below.
 *
 * <p>Each file is read at once, and its bytes are kept until the metadata is checked that Iceberg
 * made of them ({@link #bytesOf}), so that it is neither read again nor written as JSON for that.
 */
public final class FailFastFileIO
    implements ForwardingFileIO, SupportsBulkOperations, Configurable<Object> {
  private static final long serialVersionUID = 1L;

  /** Property of the catalog behind, not for users: the class of the storage below. */
  private static final String STORAGE = "io.icebergcrypto.storage-impl";

  private static final Pattern METADATA =
      Pattern.compile(".*\\.metadata\\.json(?:\\.gz)?", Pattern.DOTALL);

  /**
   * The file that a thread has opened last.
   *
   * @param bytes what it holds; null outside of a load, where nobody asks
   * @param times how many times the load has opened any
   */
  private record Opened(boolean inLoad, String location, byte[] bytes, int times) {
    private static final Opened NOTHING = new Opened(false, null, null, 0);
  }

  /** Metadata that was loaded, and all that its file holds. */
  private record Loaded(TableMetadata metadata, byte[] bytes) {}

  private static final ThreadLocal<Opened> OPENED = ThreadLocal.withInitial(() -> Opened.NOTHING);

  // soft: nobody may ever ask
  private static final ThreadLocal<SoftReference<Loaded>> LOADED = new ThreadLocal<>();

  private FileIO storage;
  private transient Object conf;

  /** Iceberg makes one by this constructor. */
  public FailFastFileIO() {}

  /**
   * Puts this in front of the storage of a catalog behind that retries (JDBC and Glue), and of
   * Hadoop's and Nessie's, whose metadata is checked, too.
   *
   * @param behind its properties
   */
  public static void configure(Map<String, String> behind) {
    String type = behind.get(CatalogUtil.ICEBERG_CATALOG_TYPE);
    String impl = behind.get(CatalogProperties.CATALOG_IMPL);
    if ("jdbc".equalsIgnoreCase(type)
        || CatalogUtil.ICEBERG_CATALOG_JDBC.equals(impl)
        || "hadoop".equalsIgnoreCase(type)
        || CatalogUtil.ICEBERG_CATALOG_HADOOP.equals(impl)
        || "nessie".equalsIgnoreCase(type)
        || CatalogUtil.ICEBERG_CATALOG_NESSIE.equals(impl)) {
      configure(behind, "org.apache.iceberg.hadoop.HadoopFileIO");
    } else if ("glue".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_GLUE.equals(impl)) {
      configure(behind, "org.apache.iceberg.aws.s3.S3FileIO");
    }
  }

  /** As above; without {@code io-impl} the catalog takes the usual class of storage. */
  private static void configure(Map<String, String> behind, String usual) {
    behind.put(STORAGE, behind.getOrDefault(CatalogProperties.FILE_IO_IMPL, usual));
    behind.put(CatalogProperties.FILE_IO_IMPL, FailFastFileIO.class.getName());
  }

  /** Loads a table or its metadata, on this thread. */
  static <T> T loading(Supplier<T> load) {
    OPENED.set(new Opened(true, null, null, 0));
    try {
      T loaded = load.get();
      Opened opened = OPENED.get();
      if (opened.times() > 0) {
        TableMetadata metadata = metadataOf(loaded);
        boolean isOfFile = // what was opened once, and is where it says that it is from
            metadata != null
                && opened.times() == 1
                && opened.location().equals(metadata.metadataFileLocation());
        LOADED.set(isOfFile ? new SoftReference<>(new Loaded(metadata, opened.bytes())) : null);
      }

      return loaded;
    } finally {
      OPENED.remove();
    }
  }

  private static TableMetadata metadataOf(Object loaded) {
    return loaded instanceof HasTableOperations table
        ? table.operations().current()
        : loaded instanceof TableMetadata metadata ? metadata : null;
  }

  /**
   * All that the file holds that metadata was read from just now, on this thread; null when that is
   * not known. It is told once.
   */
  public static byte[] bytesOf(TableMetadata metadata) {
    SoftReference<Loaded> last = LOADED.get();
    Loaded loaded = last == null ? null : last.get();
    if (loaded == null || loaded.metadata() != metadata) {
      return null;
    }

    LOADED.remove();
    return loaded.bytes();
  }

  /** The storage that tables get. */
  public static FileIO below(FileIO io) {
    return io instanceof FailFastFileIO own ? own.storage : io;
  }

  @Override
  public FileIO under() {
    return storage;
  }

  @Override
  public void setConf(Object hadoopConf) {
    this.conf = hadoopConf;
  }

  @Override
  public void initialize(Map<String, String> properties) {
    this.storage = CatalogUtil.loadFileIO(properties.get(STORAGE), properties, conf);
  }

  @Override
  public InputFile newInputFile(String path) {
    InputFile file = storage.newInputFile(path);
    return METADATA.matcher(path).matches() ? new MetadataInputFile(file) : file;
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return storage.newInputFile(path, length);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return storage.newOutputFile(path);
  }

  @Override
  public void deleteFiles(Iterable<String> paths) {
    CatalogUtil.deleteFiles(storage, paths, "");
  }

  @Override
  public void close() {
    if (storage != null) {
      storage.close();
    }
  }

  /** A metadata file that is parsed when it is opened for the second time. */
  private record MetadataInputFile(InputFile under) implements ForwardingInputFile {
    @Override
    public SeekableInputStream newStream() {
      Opened last = OPENED.get();
      boolean inLoad = last.inLoad();
      int times = last.times() + 1;
      OPENED.set(new Opened(inLoad, location(), null, times));
      byte[] bytes = read();
      OPENED.set(new Opened(inLoad, location(), inLoad ? bytes : null, times));
      boolean again = location().equals(last.location());
      return (again ? parsed(bytes) : new InMemoryInputFile(location(), bytes)).newStream();
    }

    private byte[] read() {
      try (InputStream in = under.newStream()) {
        return in.readAllBytes();
      } catch (IOException e) {
        throw new RuntimeIOException(e, "Failed to read file: %s", location());
      }
    }

    /** The file, or an error that Iceberg does not retry. */
    private InputFile parsed(byte[] bytes) {
      InputFile copy = new InMemoryInputFile(location(), bytes);
      RuntimeException asTable = failure(TableMetadataParser::read, copy);
      if (asTable != null && failure(ViewMetadataParser::read, copy) != null) {
        String name = String.format("%s (%d bytes)", location(), bytes.length);
        throw new Tasks.UnrecoverableException(UnreadableMetadata.of(name, asTable));
      }

      return copy;
    }

    private static RuntimeException failure(Function<InputFile, ?> parser, InputFile file) {
      try {
        parser.apply(file);
        return null;
      } catch (RuntimeException e) {
        return e;
      }
    }
  }
}
