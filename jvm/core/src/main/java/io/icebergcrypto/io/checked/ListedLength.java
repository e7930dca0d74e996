package io.icebergcrypto.io.checked;

import io.icebergcrypto.format.Ags1Layout;

/**
 * How long an AES GCM stream is whose key metadata does not say, as iceberg-rust leaves it. The
 * manifest list or the manifest that lists the file is authenticated, and gives a length, too: in
 * bytes as they are stored, as the specification has it, or of the content, as iceberg-rust has it
 * for manifests. What lists a manifest list, the table's metadata, gives none.
 */
public final class ListedLength {
  private ListedLength() {}

  /**
   * Whether a file is as long as what lists it says, so that nothing of it is missing.
   *
   * @param listed the length that the list gives, in one of the two meanings
   * @param stored the length in bytes that the storage gives
   */
  public static boolean fits(long listed, long stored) {
    return listed > 0
        && (stored == Ags1Layout.storedLength(listed)
            || stored == listed && !isWholeBlocks(listed));
  }

  /**
   * Whether a length, taken for that of the content, may be that of a longer file which was cut off
   * behind a full block.
   */
  private static boolean isWholeBlocks(long length) {
    long block = Ags1Layout.ICEBERG_BLOCK_SIZE + Ags1Layout.BLOCK_OVERHEAD;
    return length > block && (length - Ags1Layout.HEADER_LENGTH) % block == 0;
  }

  /**
   * The length of a file in bytes as it is stored. The storage is asked for it.
   *
   * @return null when nothing tells that is authenticated
   * @throws io.icebergcrypto.TamperedException when the file has another one than what lists it
   *     gives
   */
  static Long of(StoredInput stored, ExpectedFile file) {
    Long listed = stored.listed();
    if (listed == null || listed <= 0) {
      return null;
    }

    long actual = stored.length().getAsLong();
    if (fits(listed, actual)) {
      return actual;
    } else if (actual == listed) {
      return null;
    }

    throw new ExpectedFile(file.table(), file.location(), listed).notAsListed(actual);
  }
}
