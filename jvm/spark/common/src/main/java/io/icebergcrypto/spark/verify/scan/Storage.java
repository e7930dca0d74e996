package io.icebergcrypto.spark.verify.scan;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.metadata.Listing;
import io.icebergcrypto.metadata.MetadataPlace;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.iceberg.hadoop.HadoopConfigurable;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterator;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * Storage that tasks list: folder by folder where Hadoop's file systems read it; else all below a
 * prefix at once, as object storage does.
 *
 * @param io the storage
 */
@DefaultSerializer(JavaSerializer.class)
public record Storage(FileIO io) implements Serializable {
  private static final Pattern URI_START =
      Pattern.compile("^([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?");

  /**
   * Any storage that Hadoop, or Iceberg by the scheme of a location, reads.
   *
   * @param hadoop the session's settings
   */
  public static ResolvingFileIO any(Configuration hadoop) {
    ResolvingFileIO any = new ResolvingFileIO();
    any.setConf(hadoop);
    any.initialize(Map.of());
    return any;
  }

  /**
   * A file, or a folder that is yet to be listed.
   *
   * @param path its location
   * @param length a file's length in bytes; 0 for a folder
   */
  public record Entry(String path, long length, boolean isFolder) {}

  /**
   * What is in a folder: with some storage all below it, and no folders. A folder that does not
   * exist is empty, as on object storage.
   *
   * @throws UncheckedIOException when it cannot be listed
   * @throws NotSupportedException when this class of storage cannot list
   */
  public Iterator<Entry> list(String folder) {
    if (isHadoop(folder) || !(io instanceof SupportsPrefixOperations prefixes)) {
      return listByHadoop(folder);
    }

    return CloseableIterator.transform(
        CloseableIterator.withClose(Listing.below(prefixes, folder).iterator()),
        file -> new Entry(file.location(), file.size(), false));
  }

  private Iterator<Entry> listByHadoop(String folder) {
    if (!(io instanceof HadoopConfigurable configurable)) {
      throw new NotSupportedException(
          String.format("%s cannot list %s", io.getClass().getName(), folder),
          "Look for files that no metadata reaches with the storage's own tools.");
    }

    try {
      Path path = new Path(folder);
      Configuration conf = configurable.getConf();
      RemoteIterator<FileStatus> found = path.getFileSystem(conf).listStatusIterator(path);
      return new HadoopListing(folder, found);
    } catch (FileNotFoundException e) {
      return Collections.emptyIterator();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private boolean isHadoop(String folder) {
    return io instanceof HadoopFileIO
        || io instanceof ResolvingFileIO resolving
            && resolving.ioClass(folder) == HadoopFileIO.class;
  }

  /**
   * A location in the one form in which it can be compared: without the scheme, which is written in
   * several ways, without doubled slashes, and without one at its end.
   */
  public static String comparable(String location) {
    return MetadataPlace.folderOf(location + "/").replaceAll("/{2,}", "/").replaceFirst("/$", "");
  }

  /**
   * The storage of a location: its scheme, without what clients write in several ways (s3a, abfss),
   * and its bucket, container or cluster.
   */
  static String of(String location) {
    Matcher parts = URI_START.matcher(location);
    if (!parts.find() || parts.group(1).equalsIgnoreCase("file")) {
      return "";
    }

    String scheme = parts.group(1).toLowerCase(Locale.ROOT);
    return scheme.replaceFirst("^s3[an]$", "s3").replaceFirst("^(abfs|wasb)s$", "$1")
        + "://"
        + Objects.requireNonNullElse(parts.group(2), "");
  }

  /** Paths begin as that of the folder was given, which may be a relative one. */
  private record HadoopListing(String folder, RemoteIterator<FileStatus> found)
      implements Iterator<Entry> {
    @Override
    public boolean hasNext() {
      try {
        return found.hasNext();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public Entry next() {
      try {
        FileStatus status = found.next();
        return new Entry(
            folder.replaceFirst("/*$", "/") + status.getPath().getName(),
            status.isDirectory() ? 0 : status.getLen(),
            status.isDirectory());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
