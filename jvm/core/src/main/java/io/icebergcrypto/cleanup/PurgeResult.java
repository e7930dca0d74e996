package io.icebergcrypto.cleanup;

import java.util.List;

/**
 * What a purge without the key deleted.
 *
 * @param files how many files
 * @param bytes their length together
 * @param left folders outside of the table's location that it wrote to, by its properties: other
 *     tables may have files there, so nothing was deleted
 */
public record PurgeResult(long files, long bytes, List<String> left) {}
