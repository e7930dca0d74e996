package io.icebergcrypto.lifecycle;

import java.io.Serializable;

/**
 * Where the files of a table are in its copy: paths that begin with one prefix begin with another.
 *
 * @param source the prefix in the table, without a slash at its end
 * @param target the prefix in the copy, without a slash at its end
 */
public record PathMapping(String source, String target) implements Serializable {
  /** Takes the prefixes with or without a slash at their ends. */
  public PathMapping {
    source = withoutSlash(source);
    target = withoutSlash(target);
  }

  /** Whether a path is the source prefix, or below it as folders go. */
  public boolean covers(String path) {
    return isWithin(path, source);
  }

  /** Whether a path is a folder, or below it. */
  public static boolean isWithin(String path, String folder) {
    return withoutSlash(path).equals(folder) || path.startsWith(folder + "/");
  }

  /**
   * The path in the copy.
   *
   * @throws IllegalArgumentException when the path is not below the source prefix
   */
  public String moved(String path) {
    return below(target, path);
  }

  /**
   * A path of the table, below another folder than the source prefix.
   *
   * @throws IllegalArgumentException when the path is not below the source prefix
   */
  public String below(String folder, String path) {
    if (!covers(path)) {
      throw new IllegalArgumentException(path + " is not below " + source);
    }

    return withoutSlash(folder) + path.substring(Math.min(source.length(), path.length()));
  }

  /** A path without slashes at its end. */
  public static String withoutSlash(String path) {
    return path.replaceFirst("/+$", "");
  }
}
