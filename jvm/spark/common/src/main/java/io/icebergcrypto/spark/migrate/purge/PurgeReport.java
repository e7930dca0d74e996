package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.format.Outcome;
import java.util.List;
import java.util.Map;

/**
 * What was deleted, or would be.
 *
 * @param table the table's full name
 * @param files how many files
 * @param bytes their length together
 * @param paths the first 1000 of them
 * @param outside plaintext files that the old metadata names in other folders than the table's: how
 *     many there are, by folder
 * @param outsidePaths their paths, up to 100,000 in a dry run
 * @param left how many plaintext files stay: in folders that the user keeps, and in former folders
 *     of the table where no metadata names them
 * @param leftPaths the first 1000 of them
 * @param gaps what of the old metadata cannot be read, in words
 * @param committed whether they are gone: not by a dry run
 */
public record PurgeReport(
    String table,
    long files,
    long bytes,
    List<String> paths,
    Map<String, Long> outside,
    List<String> outsidePaths,
    long left,
    List<String> leftPaths,
    List<String> gaps,
    boolean committed)
    implements Outcome {
  @Override
  public String message() {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            committed
                ? "%d plaintext files deleted; no file in the table's folders is plaintext"
                : "%d plaintext files would be deleted; nothing was changed",
            files));
    if (!outside.isEmpty()) {
      text.append(
          String.format(
              "; %d others that the old metadata names are not in the table's folders, and have to"
                  + " be named in folders or keep",
              outside.values().stream().mapToLong(Long::longValue).sum()));
    }

    if (!gaps.isEmpty()) {
      text.append(
          String.format(
              "; %d files that named old files cannot be read: what they named is not known",
              gaps.size()));
    }

    if (left > 0) {
      text.append(
          String.format("; %d plaintext files elsewhere are left: find out whose they are", left));
    }

    return text.toString();
  }
}
