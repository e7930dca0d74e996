package io.icebergcrypto.metadata;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where a metadata file is, as far as the catalog's pointer shows.
 *
 * @param folder without what clients write in several ways: the scheme (s3 and s3a, file: and
 *     none), and the server of HDFS (a name service, one of its hosts, none)
 * @param version the number in the file's name; -1 if it has none
 */
public record MetadataPlace(String folder, int version) {
  private static final Pattern METASTORE = Pattern.compile("(\\d{1,9})-.*");
  private static final Pattern HADOOP = Pattern.compile("v(\\d{1,9})\\..*");

  /** The place of a metadata file. */
  public static MetadataPlace of(String file) {
    String name = file.substring(file.lastIndexOf('/') + 1);
    int version = metastoreVersion(file);
    Matcher hadoop = HADOOP.matcher(name);
    if (version < 0 && hadoop.matches()) {
      version = Integer.parseInt(hadoop.group(1));
    }

    return new MetadataPlace(folderOf(file), version);
  }

  /** The number that a catalog with a pointer finds in a file's name; -1 if it has none. */
  public static int metastoreVersion(String file) {
    Matcher matcher = METASTORE.matcher(file.substring(file.lastIndexOf('/') + 1));
    return matcher.matches() ? Integer.parseInt(matcher.group(1)) : -1;
  }

  /** The folder of a file, without scheme; HDFS without the server, S3 with the bucket. */
  public static String folderOf(String file) {
    int end = file.lastIndexOf('/');
    return file.substring(0, Math.max(end, 0))
        .replaceFirst("^(?:hdfs|viewfs)://[^/]*", "")
        .replaceFirst("^[A-Za-z][A-Za-z0-9+.-]*:", "")
        .replaceFirst("^/+", "/");
  }
}
