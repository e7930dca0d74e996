package io.icebergcrypto.spark.verify.scan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which files are in a table's folders, and so may be deleted with it. */
class FoldersTest {
  @Test
  void aListingShowsWhatLiterallyBeginsWithItsFolder() {
    List<String> folders = List.of("s3://b/wh//t", "s3://b/old/");
    assertThat(Folders.shows(folders, "s3://b/wh//t/data/f")).isTrue();
    assertThat(Folders.shows(folders, "s3://b/old/f")).isTrue();
    assertThat(Folders.shows(folders, "s3://b/wh/t/data/f")).as("another key").isFalse();
    assertThat(Folders.shows(folders, "s3://b/wh//t2/f")).isFalse();
    assertThat(Folders.shows(folders, "s3a://b/old/f")).isFalse();
  }

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
