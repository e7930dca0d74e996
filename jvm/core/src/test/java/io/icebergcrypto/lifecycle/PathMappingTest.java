package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PathMappingTest {
  @Test
  void pathsMoveAsFoldersDo() {
    for (String slash : new String[] {"", "/"}) {
      PathMapping paths = new PathMapping("s3://a/t" + slash, "s3://b/copies/t" + slash);
      assertThat(paths.moved("s3://a/t/data/f.parquet"))
          .isEqualTo("s3://b/copies/t/data/f.parquet");
      assertThat(paths.moved("s3://a/t")).isEqualTo("s3://b/copies/t");
      assertThat(paths.moved("s3://a/t/")).isEqualTo("s3://b/copies/t/");
      assertThat(paths.below("/s/", "s3://a/t/m")).isEqualTo("/s/m");
    }
  }

  @Test
  void aNeighbourIsNotMoved() {
    PathMapping paths = new PathMapping("s3://a/t", "s3://b/t");
    assertThat(paths.covers("s3://a/t2/f")).isFalse();
    assertThat(paths.covers("s3a://a/t/f")).isFalse();
    assertThat(PathMapping.isWithin("s3://a/t2", "s3://a/t")).isFalse();
    assertThatThrownBy(() -> paths.moved("s3://a/t2/f")).hasMessageContaining("is not below");
  }
}
