package io.icebergcrypto.spark.migrate;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Groups fit the cluster, unless the session says otherwise. */
class GroupSizeTest {
  private static final long GIB = 1L << 30;

  @ParameterizedTest
  @CsvSource({
    // cores, bytes and files per group set, max_bytes in GiB; when a group is full: files, GiB
    "   2, 0,  0, 99999, 2000,   16",
    " 300, 0,  0, 99999, 2000,  600",
    " 300, 0,  7, 99999,    7,  600",
    "1000, 0,  0, 99999, 4000, 1024",
    "9999, 0,  0, 99999, 20000, 1024",
    "1000, 5,  0, 99999, 4000,    5",
    "1000, 0,  0,     9, 4000,    9",
    "1000, 5,  7,     9,    7,    5",
  })
  void aGroupIsFull(int cores, long bytes, long files, long maxBytes, int atFiles, long atBytes) {
    GroupSize size = new GroupSize(() -> cores, bytes * GIB, files, maxBytes * GIB, GIB / 2, 2);
    assertThat(size.isFull(0, atFiles - 1)).isFalse();
    assertThat(size.isFull(0, atFiles)).isTrue();
    assertThat(size.isFull(atBytes * GIB - 1, 1)).isFalse();
    assertThat(size.isFull(atBytes * GIB, 1)).isTrue();
  }
}
