package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.format.Sha256;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.iceberg.FileScanTask;

/**
 * What is copied as a whole: a data file with its row ids and its delete files, by a hash of their
 * paths, so that a great many take little memory, and a list of them says nothing about the table.
 * The same file has other row ids where it was cherry-picked, and has none before an upgrade to
 * format version 3: what was copied with those is not a copy of these rows.
 */
public record Unit(long high, long low) {
  private static final int BYTES = 16;

  /**
   * The unit of a file to be read.
   *
   * @param occurrence how often a version has listed the same file before: it may do so twice
   */
  public static Unit of(FileScanTask task, int occurrence) {
    String deletes =
        task.deletes().stream()
            .map(file -> file.location() + '@' + file.contentOffset())
            .sorted()
            .collect(Collectors.joining("\n"));
    String file = task.file().location() + '\n' + task.file().firstRowId();
    String all = file + '\n' + occurrence + '\n' + deletes;
    return of(Sha256.of(all.getBytes(StandardCharsets.UTF_8)));
  }

  /** The unit that {@link #hex} wrote, with which a hash begins. */
  static Unit of(String hex) {
    return of(HexFormat.of().parseHex(hex));
  }

  private static Unit of(byte[] hash) {
    ByteBuffer buffer = ByteBuffer.wrap(hash, 0, BYTES);
    return new Unit(buffer.getLong(), buffer.getLong());
  }

  /** As text. */
  String hex() {
    return HexFormat.of().formatHex(ByteBuffer.allocate(BYTES).putLong(high).putLong(low).array());
  }
}
