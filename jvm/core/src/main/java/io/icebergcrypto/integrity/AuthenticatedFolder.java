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
    String root = metadata.location() + "/metadata";
    String path = metadata.properties().get(TableProperties.WRITE_METADATA_LOCATION);
    if (path != null) {
      Matcher marked = MARKED.matcher(path);
      if (!marked.matches()) {
        root = path.replaceFirst("/+$", ""); // the user's choice
      } else if (marked.group(2).equals(metadata.uuid())
          && !(base != null && marked.group(1).equals(base.location() + "/metadata"))) {
        root = marked.group(1); // the user's choice, from an earlier commit
      }
    }

    return root + "/" + PREFIX + metadata.uuid();
  }

  /**
   * The property {@code write.metadata.path} that a table would have if its metadata was not
   * authenticated.
   *
   * @return null when it would have none
   */
  public static String pathWithout(TableMetadata metadata) {
    String path = metadata.properties().get(TableProperties.WRITE_METADATA_LOCATION);
    Matcher marked = path == null ? null : MARKED.matcher(path);
    String root = marked == null || !marked.matches() ? path : marked.group(1);
    return (metadata.location() + "/metadata").equals(root) ? null : root;
  }

  /** The UUID of the table that a metadata file is of, by its folder; null when it does not say. */
  public static String uuid(String metadataFile) {
    Matcher marked = MARKED.matcher(metadataFile);
    return marked.matches() && marked.group(3) != null ? marked.group(2) : null;
  }

  /** The place of a manifest or list, which the catalog behind would put beside the metadata. */
  public static String above(String file) {
    Matcher marked = MARKED.matcher(file);
    return marked.matches() && marked.group(3) != null ? marked.group(1) + marked.group(3) : file;
  }
}
