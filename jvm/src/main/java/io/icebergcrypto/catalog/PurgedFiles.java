package io.icebergcrypto.catalog;

/**
 * What a purge deleted.
 *
 * @param files how many files
 * @param bytes their length together
 */
public record PurgedFiles(long files, long bytes) {
  PurgedFiles plus(PurgedFiles more) {
    return new PurgedFiles(files + more.files, bytes + more.bytes);
  }
}
