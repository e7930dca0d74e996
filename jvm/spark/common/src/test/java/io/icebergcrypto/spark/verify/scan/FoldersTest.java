package io.icebergcrypto.spark.verify.scan;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which files are in a table's folders, and so may be deleted with it. */
class FoldersTest {
  @ParameterizedTest
  @CsvSource({
    "s3://lake/db/t, s3a://lake/db/t/data/f.parquet",
    "s3://lake/db/t/, s3://lake/db/t//data/f.parquet",
    "abfss://c@a.dfs.core.windows.net/t, abfs://c@a.dfs.core.windows.net/t/f",
    "file:/wh/t, /wh/t/f",
    "/wh/t, file:///wh/t/f",
  })
  void isInTheFolder(String folder, String file) {
    assertThat(isIn(folder, file)).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "s3://lake/db/t, s3://lake/db/t2/f",
    "s3://lake/db/t, s3://lake/db/t/../t2/f",
    "s3://lake/db/t, s3://lake/db/t",
    "s3://lake/db/t, s3://other/db/t/f",
    "s3://lake/db/t, gs://lake/db/t/f",
    "hdfs://new/wh/t, hdfs://old/wh/t/f",
    "/wh/t, hdfs://old/wh/t/f",
    "hdfs://new/wh/t, /wh/t/f",
    "abfss://c@a.dfs.core.windows.net/t, abfss://d@a.dfs.core.windows.net/t/f",
  })
  void isOutside(String folder, String file) {
    assertThat(isIn(folder, file)).isFalse();
  }

  private static boolean isIn(String folder, String file) {
    return Folders.Place.of(file).isIn(Folders.Place.of(folder));
  }
}
