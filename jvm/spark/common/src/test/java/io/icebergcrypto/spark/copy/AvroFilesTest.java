package io.icebergcrypto.spark.copy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.BytesFile;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.function.Consumer;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;

/** Streams of Avro files are closed, no matter what fails. */
class AvroFilesTest {
  private static final Schema SCHEMA =
      SchemaBuilder.record("r").fields().requiredString("path").endRecord();

  private int open = 0;

  /** A file whose streams are counted. */
  private final class Counted extends BytesFile {
    private Counted(byte[] bytes) {
      super(bytes);
    }

    @Override
    public SeekableInputStream newStream() {
      open++;
      return new Stream() {
        @Override
        public void close() {
          open--;
        }
      };
    }
  }

  /** A file that takes some bytes, and is counted. */
  private final class Limited implements OutputFile {
    private final int limit;

    private Limited(int limit) {
      this.limit = limit;
    }

    @Override
    public PositionOutputStream create() {
      open++;
      return new PositionOutputStream() {
        private int position = 0;
        private boolean closed = false;

        @Override
        public long getPos() {
          return position;
        }

        @Override
        public void write(int b) throws IOException {
          if (closed || position++ >= limit) {
            throw new IOException("the disk is full");
          }
        }

        @Override
        public void close() {
          open -= closed ? 0 : 1;
          this.closed = true;
        }
      };
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return create();
    }

    @Override
    public String location() {
      return "copy.avro";
    }

    @Override
    public InputFile toInputFile() {
      return new Counted(new byte[0]);
    }
  }

  private static byte[] file() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataFileWriter<GenericRecord> writer =
        new DataFileWriter<GenericRecord>(new GenericDatumWriter<>(SCHEMA))
            .setCodec(CodecFactory.nullCodec())
            .create(SCHEMA, bytes)) {
      writer.append(new GenericRecordBuilder(SCHEMA).set("path", "x".repeat(100)).build());
    }

    return bytes.toByteArray();
  }

  @Test
  void streamsAreClosedWhateverFails() throws IOException {
    Consumer<GenericRecord> nothing = record -> {};
    byte[] file = file();
    for (int limit : new int[] {0, 10, file.length - 20}) {
      assertThatThrownBy(() -> AvroFiles.rewrite(new Counted(file), new Limited(limit), nothing))
          .as("%d bytes", limit)
          .hasMessageContaining("the disk is full");
      assertThat(open).as("%d bytes", limit).isZero();
    }

    assertThatThrownBy(() -> AvroFiles.read(new Counted("no Avro".getBytes()), nothing))
        .isInstanceOf(IOException.class);
    assertThat(open).isZero();
    assertThat(AvroFiles.rewrite(new Counted(file), new Limited(1000), nothing))
        .isEqualTo(file.length);
    assertThat(open).isZero();
  }
}
