package io.icebergcrypto.cleanup;

import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.SupportsBulkOperations;

/**
 * The FileIO of a table that was in use, and is now refused, dropped or out of reach. It deletes,
 * so that a write which fails for that reason can remove its files; it neither reads nor writes.
 */
public class DeleteOnlyFileIO implements FileIO {
  private static final long serialVersionUID = 1L;

  private final FileIO io;
  private final RuntimeException refusal;

  private DeleteOnlyFileIO(FileIO io, RuntimeException refusal) {
    this.io = io;
    this.refusal = refusal;
  }

  /**
   * Deletes files of a table.
   *
   * @param io its storage; if it deletes many files at once, so does this
   * @param refusal why the table is neither read nor written
   */
  public static FileIO of(FileIO io, RuntimeException refusal) {
    return io instanceof SupportsBulkOperations bulk
        ? new WithBulk(bulk, refusal)
        : new DeleteOnlyFileIO(io, refusal);
  }

  @Override
  public InputFile newInputFile(String path) {
    throw refusal;
  }

  @Override
  public InputFile newInputFile(ManifestListFile list) {
    throw refusal;
  }

  @Override
  public InputFile newInputFile(ManifestFile manifest) {
    throw refusal;
  }

  @Override
  public InputFile newInputFile(DataFile file) {
    throw refusal;
  }

  @Override
  public InputFile newInputFile(DeleteFile file) {
    throw refusal;
  }

  @Override
  public OutputFile newOutputFile(String path) {
    throw refusal;
  }

  @Override
  public void deleteFile(String path) {
    io.deleteFile(path);
  }

  @Override
  public Map<String, String> properties() {
    return io.properties();
  }

  private static final class WithBulk extends DeleteOnlyFileIO implements SupportsBulkOperations {
    private static final long serialVersionUID = 1L;

    private final SupportsBulkOperations bulk;

    private WithBulk(SupportsBulkOperations bulk, RuntimeException refusal) {
      super(bulk, refusal);
      this.bulk = bulk;
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      bulk.deleteFiles(paths);
    }
  }
}
