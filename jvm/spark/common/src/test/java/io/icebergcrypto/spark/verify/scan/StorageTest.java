package io.icebergcrypto.spark.verify.scan;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StorageTest {
  private final Storage storage = new Storage(new HadoopFileIO(new Configuration()));

  /** Metadata writes them as the table's location is written; else all would be strays. */
  @Test
  void pathsBeginAsTheFolderWasGiven(@TempDir Path folder) throws IOException {
    Files.writeString(folder.resolve("a b%.parquet"), "x");
    Path relative = Path.of("").toAbsolutePath().relativize(folder);
    for (String given : new String[] {relative.toString(), folder + "//", "file:" + folder}) {
      Storage.Entry file = storage.list(given).next();
      assertThat(file.path()).isEqualTo(given.replaceFirst("/*$", "") + "/a b%.parquet");
      assertThat(file.length()).isEqualTo(1);
    }
  }
}
