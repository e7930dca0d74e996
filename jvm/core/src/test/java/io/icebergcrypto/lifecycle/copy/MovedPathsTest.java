package io.icebergcrypto.lifecycle.copy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class MovedPathsTest {
  @Test
  void pathsMoveAsFoldersDo() {
    for (String slash : new String[] {"", "/"}) {
      MovedPaths paths = new MovedPaths("s3://a/t" + slash, "s3://b/copies/t" + slash);
      assertThat(paths.moved("s3://a/t/data/f.parquet"))
          .isEqualTo("s3://b/copies/t/data/f.parquet");
      assertThat(paths.moved("s3://a/t")).isEqualTo("s3://b/copies/t");
      assertThat(paths.moved("s3://a/t/")).isEqualTo("s3://b/copies/t/");
      assertThat(paths.below("/s/", "s3://a/t/m")).isEqualTo("/s/m");
    }
  }

  @Test
  void aNeighbourIsNotMoved() {
    MovedPaths paths = new MovedPaths("s3://a/t", "s3://b/t");
    assertThat(paths.covers("s3://a/t2/f")).isFalse();
    assertThat(paths.covers("s3a://a/t/f")).isFalse();
    assertThat(MovedPaths.isWithin("s3://a/t2", "s3://a/t")).isFalse();
    assertThatThrownBy(() -> paths.moved("s3://a/t2/f")).hasMessageContaining("is not below");
  }
}
