package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestListFile;
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
 * thread soon opens a file again, this parses it first, and raises an error that Iceberg does not
 * retry if that fails. Only the catalog behind uses this; tables get the storage below.
 */
public final class FailFastFileIO implements SupportsBulkOperations, Configurable<Object> {
  private static final long serialVersionUID = 1L;

  /** Property of the catalog behind, not for users: the class of the storage below. */
  private static final String STORAGE = "io.icebergcrypto.storage-impl";

  private static final Pattern METADATA =
      Pattern.compile(".*\\.metadata\\.json(?:\\.gz)?", Pattern.DOTALL);

  /** Longer than Iceberg waits between two tries. */
  private static final long SOON_NANOS = 10_000_000_000L;

  private record Attempt(String location, long nanos) {}

  private static final ThreadLocal<Attempt> LAST = new ThreadLocal<>();

  private FileIO storage;
  private transient Object conf;

  /** Iceberg makes one by this constructor. */
  public FailFastFileIO() {}

  /**
   * Puts this in front of the storage of a catalog behind that retries: JDBC and Glue.
   *
   * @param behind its properties
   */
  public static void configure(Map<String, String> behind) {
    String type = behind.get(CatalogUtil.ICEBERG_CATALOG_TYPE);
    String impl = behind.get(CatalogProperties.CATALOG_IMPL);
    if ("jdbc".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_JDBC.equals(impl)) {
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

  /** What this thread opened was read as it should be: a later load is no further try. */
  static void wasRead() {
    LAST.remove();
  }

  /** The storage that tables get. */
  public static FileIO below(FileIO io) {
    return io instanceof FailFastFileIO own ? own.storage : io;
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
  public InputFile newInputFile(DataFile file) {
    return storage.newInputFile(file);
  }

  @Override
  public InputFile newInputFile(DeleteFile file) {
    return storage.newInputFile(file);
  }

  @Override
  public InputFile newInputFile(ManifestFile manifest) {
    return storage.newInputFile(manifest);
  }

  @Override
  public InputFile newInputFile(ManifestListFile manifestList) {
    return storage.newInputFile(manifestList);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return storage.newOutputFile(path);
  }

  @Override
  public void deleteFile(String path) {
    storage.deleteFile(path);
  }

  @Override
  public void deleteFiles(Iterable<String> paths) {
    CatalogUtil.deleteFiles(storage, paths, "");
  }

  @Override
  public Map<String, String> properties() {
    return storage.properties();
  }

  @Override
  public void close() {
    if (storage != null) {
      storage.close();
    }
  }

  /** A metadata file that is parsed when it is opened for the second time. */
  private record MetadataInputFile(InputFile file) implements InputFile {
    @Override
    public long getLength() {
      return file.getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      Attempt last = LAST.get();
      long now = System.nanoTime();
      LAST.set(new Attempt(location(), now));
      boolean again =
          last != null && last.location().equals(location()) && now - last.nanos() < SOON_NANOS;
      return again ? parsed().newStream() : file.newStream();
    }

    /** The file, or an error that Iceberg does not retry. Failures of the storage are retried. */
    private InputFile parsed() {
      byte[] bytes;
      try (InputStream in = file.newStream()) {
        bytes = in.readAllBytes();
      } catch (IOException e) {
        throw new RuntimeIOException(e, "Failed to read file: %s", location());
      }

      InputFile copy = new InMemoryInputFile(location(), bytes);
      RuntimeException asTable = failure(TableMetadataParser::read, copy);
      if (asTable != null && failure(ViewMetadataParser::read, copy) != null) {
        throw new Tasks.UnrecoverableException(unreadable(location(), bytes.length, asTable));
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

    private static IcebergCryptoException unreadable(
        String location, int length, RuntimeException e) {
      return UnreadableMetadata.of(String.format("%s (%d bytes)", location, length), e);
    }

    @Override
    public String location() {
      return file.location();
    }

    @Override
    public boolean exists() {
      return file.exists();
    }
  }
}
