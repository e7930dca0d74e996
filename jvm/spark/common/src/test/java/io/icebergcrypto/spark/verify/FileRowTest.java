package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.audit.FileKind;
import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What makes a recorded outcome count for a file no longer. */
class FileRowTest {
  @Test
  void anEntryIsAllByWhichAFileIsChecked() {
    ByteBuffer key = ByteBuffer.wrap(new byte[] {1, 2, 3});
    String entry = FileRow.entry(FileKind.DATA, "PARQUET", 7, key, false);
    assertThat(entry).isEqualTo(FileRow.entry(FileKind.DATA, "PARQUET", 7, key, false));
    assertThat(key.remaining()).as("left as it is").isEqualTo(3);
    assertThat(
            List.of(
                entry,
                FileRow.entry(FileKind.EQUALITY_DELETES, "PARQUET", 7, key, false),
                FileRow.entry(FileKind.DATA, "AVRO", 7, key, false),
                FileRow.entry(FileKind.DATA, "PARQUET", 8, key, false),
                FileRow.entry(FileKind.DATA, "PARQUET", 7, ByteBuffer.wrap(new byte[3]), false),
                FileRow.entry(FileKind.DATA, "PARQUET", 7, ByteBuffer.allocate(0), false),
                FileRow.entry(FileKind.DATA, "PARQUET", 7, null, false),
                FileRow.entry(FileKind.DATA, "PARQUET", 7, key, true)))
        .doesNotHaveDuplicates()
        .allMatch(hash -> hash.length() == 64);
  }
}
