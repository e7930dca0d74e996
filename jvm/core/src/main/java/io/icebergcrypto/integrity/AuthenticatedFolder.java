package io.icebergcrypto.integrity;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;

/**
 * The folder of an authenticated table's metadata files, on catalogs that keep a pointer to the
 * current one: {@code <location>/metadata/authenticated-<table UUID>}, set by Iceberg's own table
 * property {@code write.metadata.path}. So the pointer, which a writer to the storage cannot
 * change, says that the table is authenticated and which table it is, even if all of that is gone
 * from the file. Manifests stay one folder above.
 */
public final class AuthenticatedFolder {
  private static final String PREFIX = "authenticated-";
  private static final Pattern MARKED =
      Pattern.compile("(.*)/" + PREFIX + "([0-9a-fA-F-]{36})(/[^/]*)?");

  private AuthenticatedFolder() {}

  /** The folder for a commit's metadata file. */
  static String of(TableMetadata base, TableMetadata metadata) {
    return root(base, metadata) + "/" + PREFIX + metadata.uuid();
  }

  /** The folder above it, with the manifests: the user's choice, or that of the location. */
  private static String root(TableMetadata base, TableMetadata metadata) {
    String path = metadata.properties().get(TableProperties.WRITE_METADATA_LOCATION);
    if (path != null) {
      Matcher marked = MARKED.matcher(path);
      if (!marked.matches()) {
        return path.replaceFirst("/+$", "");
      } else if (marked.group(2).equals(metadata.uuid())
          && !(base != null && marked.group(1).equals(base.location() + "/metadata"))) {
        return marked.group(1); // the user's choice, from an earlier commit
      }
    }

    return metadata.location() + "/metadata";
  }

  /**
   * The property {@code write.metadata.path} that a table would have if its metadata was not
   * authenticated.
   *
   * @return null when it would have none
   */
  public static String pathWithout(TableMetadata metadata) {
    String root = root(null, metadata);
    return (metadata.location() + "/metadata").equals(root) ? null : root;
  }

  /**
   * Whether a commit made this value of {@code write.metadata.path}, for a table of any UUID but
   * one.
   *
   * @param path the value, which may be null
   * @param own the UUID of the table that may have it; null: no table may
   */
  public static boolean isOfAnother(String path, String own) {
    Matcher marked = MARKED.matcher(path == null ? "" : path);
    return marked.matches() && !marked.group(2).equals(own);
  }

  /** The UUID of the table that a metadata file is of, by its folder; null when it does not say. */
  public static String uuid(String metadataFile) {
    Matcher marked = MARKED.matcher(metadataFile);
    return marked.matches() && marked.group(3) != null ? marked.group(2) : null;
  }

  /**
   * The place of a manifest or list, which the catalog behind would put into a folder of metadata
   * files: that of another table, where the property was copied, or of a location that the table
   * leaves.
   *
   * @param base the metadata in force, null when the table is new
   * @param metadata that of the manifest's commit
   */
  public static String above(TableMetadata base, TableMetadata metadata, String file) {
    return root(base, metadata) + file.substring(file.lastIndexOf('/'));
  }
}
