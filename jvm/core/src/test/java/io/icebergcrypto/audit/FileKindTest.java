package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FileKindTest {
  /** Names as Hudi 1.0.2 gave them. */
  @ParameterizedTest
  @CsvSource({
    "s3://b/t/a/.f34cea27-dc76-0_20261123081012490.log.1_0-125-127, hudi log",
    "/t/.f34cea27-dc76-0_20261123081012490.log.1_0-125-127.cdc, hudi log",
    "/t/.hoodie/metadata/files/files-0000-0_0-5-4_0.hfile, hudi metadata",
    "/t/.hoodie/metadata/.hoodie/timeline/1.deltacommit, hudi metadata",
    "/t/.hoodie/metadata/files/.files-0000-0_0.log.1_0-0-0, hudi metadata",
    "/t/.hoodie/hoodie.properties, hudi timeline",
    "/t/.hoodie/timeline/1_2.commit, hudi timeline",
    "/t/a/.hoodie_partition_metadata, hudi timeline",
    "/t/a/.hoodie_partition_metadata.parquet, hudi timeline",
    "/t/a/5ba08d2d-0_0-11-13_2026.parquet, file",
    "/t/hoodie/metadata/x, file",
    "/t/server.log.1, file",
    "hoodie.properties, file",
  })
  void filesOfAFolder(String path, String kind) {
    assertThat(FileKind.ofPath(path).label()).isEqualTo(kind);
    assertThat(FileKind.ofLabel(kind).label()).isEqualTo(kind);
  }
}
