package io.icebergcrypto.testing;

import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/** A FileIO that counts what an object store would be asked, by the kind of file. */
public final class CountingFileIO extends HadoopFileIO {
  private static final long serialVersionUID = 1L;
  private static final Map<String, Integer> COUNTS = new TreeMap<>();

  /** Forgets what was counted. */
  public static synchronized void reset() {
    COUNTS.clear();
  }

  /** What was counted since: "open manifest", "length data", and so on. */
  public static synchronized Map<String, Integer> counts() {
    return new TreeMap<>(COUNTS);
  }

  private static synchronized void count(String what, String path) {
    COUNTS.merge(what + " " + kind(path), 1, Integer::sum);
  }

  private static String kind(String path) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    return name.endsWith("metadata.json")
        ? "metadata"
        : name.startsWith("snap-") ? "list" : name.endsWith(".avro") ? "manifest" : "data";
  }

  @Override
  public InputFile newInputFile(String path) {
    return new Counted(super.newInputFile(path), false);
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return new Counted(super.newInputFile(path, length), true);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return new CountedOutput(super.newOutputFile(path));
  }

  @Override
  public void deleteFile(String path) {
    count("delete", path);
    super.deleteFile(path);
  }

  private static final class Counted implements InputFile {
    private final InputFile file;
    private boolean knowsLength;

    private Counted(InputFile file, boolean knowsLength) {
      this.file = file;
      this.knowsLength = knowsLength;
    }

    @Override
    public long getLength() {
      if (!knowsLength) {
        count("length", location());
        this.knowsLength = true;
      }

      return file.getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      count("open", location());
      return file.newStream();
    }

    @Override
    public String location() {
      return file.location();
    }

    @Override
    public boolean exists() {
      count("exists", location());
      return file.exists();
    }
  }

  private record CountedOutput(OutputFile file) implements OutputFile {
    @Override
    public PositionOutputStream create() {
      count("create", location());
      return file.create();
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      count("create", location());
      return file.createOrOverwrite();
    }

    @Override
    public String location() {
      return file.location();
    }

    @Override
    public InputFile toInputFile() {
      return new Counted(file.toInputFile(), false);
    }
  }
}
