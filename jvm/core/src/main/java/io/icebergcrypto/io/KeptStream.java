package io.icebergcrypto.io;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.Consumer;
import org.apache.iceberg.io.PositionOutputStream;

/** Writes the content of a file, and keeps it until the file is closed. */
final class KeptStream extends PositionOutputStream {
  private final PositionOutputStream stream;
  private final int limit;
  private final Consumer<byte[]> kept;
  private Content content = new Content();

  /**
   * Begins a file.
   *
   * @param limit how many bytes; of a larger file nothing is kept
   * @param kept takes the content of a file that was closed
   */
  KeptStream(PositionOutputStream stream, int limit, Consumer<byte[]> kept) {
    this.stream = stream;
    this.limit = limit;
    this.kept = kept;
  }

  @Override
  public void write(int b) throws IOException {
    stream.write(b);
    if (fits(1)) {
      content.write(b);
    }
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    stream.write(bytes, offset, length);
    if (fits(length)) {
      content.write(bytes, offset, length);
    }
  }

  private boolean fits(int more) {
    if (content != null && content.size() + more > limit) {
      content.wipe();
      this.content = null;
    }

    return content != null;
  }

  @Override
  public long getPos() throws IOException {
    return stream.getPos();
  }

  @Override
  public long storedLength() throws IOException {
    return stream.storedLength();
  }

  @Override
  public void flush() throws IOException {
    stream.flush();
  }

  @Override
  public void close() throws IOException {
    Content written = content;
    this.content = null;
    try {
      stream.close();
      if (written != null) {
        kept.accept(written.toByteArray());
      }
    } finally {
      if (written != null) {
        written.wipe();
      }
    }
  }

  /**
   * Bytes that are overwritten when they are no longer needed: a manifest has the keys of files.
   */
  static final class Content extends ByteArrayOutputStream {
    void wipe() {
      Arrays.fill(buf, (byte) 0);
    }
  }
}
