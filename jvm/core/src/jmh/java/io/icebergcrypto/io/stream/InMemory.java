package io.icebergcrypto.io.stream;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/** What stands around the streams: as little as can be. */
final class InMemory {
  private InMemory() {}

  /** A file that keeps nothing. */
  static final class Discarding implements OutputFile {
    @Override
    public PositionOutputStream create() {
      return new PositionOutputStream() {
        private long position = 0;

        @Override
        public void write(int b) {
          position++;
        }

        @Override
        public void write(byte[] bytes, int offset, int count) {
          this.position += count;
        }

        @Override
        public long getPos() {
          return position;
        }
      };
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return create();
    }

    @Override
    public String location() {
      return "memory";
    }

    @Override
    public InputFile toInputFile() {
      throw new UnsupportedOperationException();
    }
  }

  /** Files' keys need none. */
  static final class NoKms implements KeyManagementClient {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      throw new UnsupportedOperationException();
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void initialize(Map<String, String> properties) {}
  }
}
