package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FileKindTest {
  /** Names as Hudi 1.0.2 and 1.2.0 and Delta 4.4.0 gave them. */
  @ParameterizedTest
  @CsvSource({
    "s3://b/t/a/.f34cea27-dc76-0_20261123081012490.log.1_0-125-127, hudi log",
    "/t/.f34cea27-dc76-0_20261123081012490.log.1_0-125-127.cdc, hudi log",
    "/t/.hoodie/metadata/files/files-0000-0_0-5-4_0.hfile, hudi metadata",
    "/t/.hoodie/metadata/.hoodie/timeline/1.deltacommit, hudi metadata",
    "/t/.hoodie/metadata/files/.files-0000-0_0.log.1_0-0-0, hudi metadata",
    "/t/.hoodie/metadata/column_stats/col-stats-0000-0_0-5-4_0.hfile, hudi column stats",
    "/t/.hoodie/metadata/partition_stats/partition-stats-0000-0_0-5-4_0.hfile, hudi partition"
        + " stats",
    "/t/.hoodie/metadata/bloom_filters/bloom-filters-0000-0_0-5-4_0.hfile, hudi bloom filters",
    "/t/.hoodie/metadata/record_index/record-index-0000-0_0-5-4_0.hfile, hudi record index",
    "/t/.hoodie/metadata/secondary_index_city/secondary-index-city-0000-0_0.hfile, hudi secondary"
        + " index",
    "/t/.hoodie/metadata/expr_index_year/expr-index-year-0000-0_0.hfile, hudi expression index",
    "/t/.hoodie/metadata/func_index_year/func-index-year-0000-0_0.hfile, hudi expression index",
    "/t/.hoodie/metadata/of_later/x.hfile, hudi other index",
    "/t/.hoodie/hoodie.properties, hudi timeline",
    "/t/.hoodie/timeline/1_2.commit, hudi timeline",
    "/t/a/.hoodie_partition_metadata, hudi timeline",
    "/t/a/.hoodie_partition_metadata.parquet, hudi timeline",
    "/t/a/5ba08d2d-0_0-11-13_2026.parquet, file",
    "/t/hoodie/metadata/x, file",
    "/t/server.log.1, file",
    "hoodie.properties, file",
    "/t/_delta_log/00000000000000000000.json, delta log",
    "/t/_delta_log/_sidecars/x.parquet, delta log",
    "/t/delta_log/x, file",
  })
  void filesOfAFolder(String path, String kind) {
    assertThat(FileKind.ofPath(path).label()).isEqualTo(kind);
    assertThat(FileKind.ofLabel(kind).label()).isEqualTo(kind);
  }
}
