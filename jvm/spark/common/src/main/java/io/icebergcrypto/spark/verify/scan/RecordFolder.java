package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.audit.RecordIndex;
import io.icebergcrypto.format.Sha256;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.hadoop.SerializableConfiguration;

/**
 * The storage of recorded outcomes, on the driver and in tasks. Files have names below the folder,
 * such as {@code records/RUN/part-0.json.gz}.
 *
 * @param hadoop the session's settings
 */
record RecordFolder(String location, SerializableConfiguration hadoop) implements Serializable {
  private Path path(String name) {
    return name.isEmpty() ? new Path(location) : new Path(location, name);
  }

  private FileSystem storage() throws IOException {
    return new Path(location).getFileSystem(hadoop.get());
  }

  /** The names of what is in a folder; none when there is no such folder. */
  List<String> listed(String in) throws IOException {
    try {
      return Stream.of(storage().listStatus(path(in))).map(s -> s.getPath().getName()).toList();
    } catch (FileNotFoundException e) {
      return List.of();
    }
  }

  /** The files of all runs in a folder, with their lengths. */
  Map<String, Long> filesOfRuns(String in) throws IOException {
    Map<String, Long> files = new TreeMap<>();
    for (String run : listed(in)) {
      files.putAll(files(in + "/" + run));
    }

    return files;
  }

  /** The files of a run, with their lengths: not those of an attempt, nor _SUCCESS. */
  Map<String, Long> files(String in) throws IOException {
    Map<String, Long> files = new TreeMap<>();
    try {
      for (FileStatus file : storage().listStatus(path(in))) {
        String name = file.getPath().getName();
        if (!name.matches("[_.].*")) {
          files.put(in + "/" + name, file.getLen());
        }
      }
    } catch (FileNotFoundException e) {
      return files;
    }

    return files;
  }

  /**
   * The bytes of a file.
   *
   * @throws FileNotFoundException when it does not exist, or a folder is in its place
   */
  byte[] read(String name, int most) throws IOException {
    try (InputStream in = storage().open(path(name))) {
      return in.readNBytes(most);
    }
  }

  /**
   * The bytes of a file of outcomes.
   *
   * @param signed the hashes that a signed report vouches for, by name; null: any bytes will do
   * @throws io.icebergcrypto.InvalidConfigurationException when they are not those that were signed
   */
  byte[] outcomes(String name, Map<String, String> signed) {
    byte[] content;
    try {
      content = read(name, Integer.MAX_VALUE);
    } catch (FileNotFoundException e) {
      throw signed == null ? new UncheckedIOException(e) : RecordIndex.missing(location, name);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    if (signed != null && !Sha256.hex(content).equals(signed.get(name))) {
      throw RecordIndex.changed(location, name);
    }

    return content;
  }

  /** Makes the folder. */
  void make() throws IOException {
    storage().mkdirs(new Path(location));
  }

  /** Writes a file that must not exist. */
  void write(String name, byte[] bytes) throws IOException {
    try (OutputStream out = storage().create(path(name), false)) {
      out.write(bytes);
    }
  }

  /** Writes a file of outcomes: a run that is stopped meanwhile leaves none that is cut off. */
  void writeWhole(String in, String name, byte[] bytes) throws IOException {
    Path part = path(in + "/_" + name);
    write(in + "/_" + name, bytes);
    if (!storage().rename(part, path(in + "/" + name))) {
      throw new IOException(part + " could not be renamed");
    }
  }

  /** Deletes a folder and all that is in it. */
  void delete(String in) throws IOException {
    storage().delete(path(in), true);
  }

  /** As Spark's writers take it. */
  String uri(String in) {
    return path(in).toString();
  }
}
