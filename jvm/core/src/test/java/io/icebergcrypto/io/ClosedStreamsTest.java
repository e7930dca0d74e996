package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.junit.jupiter.api.Test;

/** The storage's stream is closed, no matter what fails in a step before. */
class ClosedStreamsTest {
  private static final byte[] HINT = "2".getBytes(StandardCharsets.UTF_8); // known when it ends

  /** Storage whose streams take no byte. */
  private static final class Full implements OutputFile {
    private int open = 0;

    @Override
    public PositionOutputStream create() {
      open++;
      return new PositionOutputStream() {
        @Override
        public long getPos() {
          return 0;
        }

        @Override
        public void write(int b) throws IOException {
          throw new IOException("the disk is full");
        }

        @Override
        public void close() {
          open--;
        }
      };
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return create();
    }

    @Override
    public String location() {
      return "s3://bucket/db/t/metadata/file";
    }

    @Override
    public InputFile toInputFile() {
      return new InMemoryOutputFile(location()).toInputFile();
    }
  }

  @Test
  void aGuardedFileThatIsToldByItsEndIsClosed() throws IOException {
    Full storage = new Full();
    PositionOutputStream out =
        new GuardedOutputFile("lake.db.t", storage, Set.of(FileMagic.values())).create();
    out.write(HINT);
    assertThatThrownBy(out::close).hasMessage("the disk is full");
    out.close();
    assertThat(storage.open).isZero();
  }
}
