package io.icebergcrypto.spark.copy;

import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.lifecycle.PathMapping;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.Listing;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The folder that the files of a copy are written to, and what one run wrote there. */
final class Staging {
  private static final Logger LOG = LoggerFactory.getLogger(Staging.class);
  private static final String FILE_LIST = "file-list"; // as Iceberg's action names it

  private final FileIO io;
  private final PathMapping paths;
  private final String folder;
  private final String run;
  private final List<String> written = new ArrayList<>();

  private Staging(FileIO io, PathMapping paths, String folder, String run) {
    this.io = io;
    this.paths = paths;
    this.folder = folder;
    this.run = run;
  }

  /**
   * The folder of a run.
   *
   * @param run the id of the run, which is in the name of each file that its tasks write
   * @throws io.icebergcrypto.InvalidConfigurationException when another run's list is there
   */
  static Staging of(BaseTable table, CopyRequest request, String run) {
    String folder =
        request.stagingLocation() == null
            ? table.operations().metadataFileLocation("copy-table-staging-" + run)
            : PathMapping.withoutSlash(request.stagingLocation());
    Staging staging = new Staging(storage(table), request.paths(), folder, run);
    if (request.stagingLocation() != null && staging.hasFileList()) {
      throw CopyRequest.invalid(
          table.name(),
          "staging_location has the files of another run: " + staging.fileList(),
          "Give another folder, or delete this one when its files have been copied.");
    }

    return staging;
  }

  /** Below the guard, which opens a file only when its first bytes are written. */
  private static FileIO storage(BaseTable table) {
    TableOperations ops = ((ForwardingOperations) table.operations()).below();
    return TableFileIO.storageBelow(FailFastFileIO.below(ops.io()));
  }

  /** The folder, without a slash at its end. */
  String folder() {
    return folder;
  }

  private String fileList() {
    return folder + "/" + FILE_LIST;
  }

  private boolean hasFileList() {
    return io.newInputFile(fileList()).exists();
  }

  /** A file for the driver to write, which is this run's from when it is created. */
  OutputFile newFile(String path) {
    OutputFile file = io.newOutputFile(path);
    return new OutputFile() {
      @Override
      public PositionOutputStream create() {
        PositionOutputStream stream = file.create(); // fails where another run's is
        written.add(path);
        return stream;
      }

      @Override
      public PositionOutputStream createOrOverwrite() {
        throw new UnsupportedOperationException("it may be another run's: " + path);
      }

      @Override
      public String location() {
        return path;
      }

      @Override
      public InputFile toInputFile() {
        return file.toInputFile();
      }
    };
  }

  /** Takes the lines of the list. */
  final class FileList {
    private final BufferedWriter out;

    private FileList(BufferedWriter out) {
      this.out = out;
    }

    /** A file that is copied as it is. */
    void copied(String path) {
      add(path, paths.moved(path));
    }

    /** A file that was rewritten. */
    void staged(StagedFile file) {
      add(file.staged(), file.target());
    }

    void add(String from, String to) {
      try {
        out.write(from + "," + to);
        out.newLine();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** Writes the list of files to be copied: lines of a path and, after a comma, another. */
  String writeFileList(Consumer<FileList> lines) {
    try (BufferedWriter out =
        new BufferedWriter(
            new OutputStreamWriter(newFile(fileList()).create(), StandardCharsets.UTF_8))) {
      lines.accept(new FileList(out));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + fileList(), e);
    }

    return fileList();
  }

  /**
   * Deletes what this run wrote, and nothing else.
   *
   * @return whether all of it could be deleted
   */
  boolean deleteWritten() {
    List<String> files = new ArrayList<>(written);
    boolean isListed = io instanceof SupportsPrefixOperations;
    if (io instanceof SupportsPrefixOperations prefixes) {
      try {
        for (FileInfo file : Listing.below(prefixes, folder)) {
          if (file.location().contains(run)) {
            files.add(file.location());
          }
        }
      } catch (RuntimeException e) { // there is no such folder yet, or it cannot be listed
        isListed = written.isEmpty();
        LOG.warn("Cannot list {}", folder, e);
      }
    }

    boolean isDeleted = isListed;
    for (String file : files) {
      try {
        io.deleteFile(file);
      } catch (RuntimeException e) {
        isDeleted = false;
        LOG.warn("Cannot delete {}", file, e);
      }
    }

    return isDeleted;
  }
}
