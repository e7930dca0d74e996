package io.icebergcrypto.io;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * A file of an encrypted table whose first bytes have to tell that it may be written so: one
 * without a key is not part of the data, as {@link TableEncryptionManager#encrypt} takes data,
 * delete and manifest files out of the guard. The counterpart of {@link GuardedInputFile}.
 *
 * @param writable what it may be
 * @param refusal what any other is refused with
 */
record GuardedOutputFile(
    OutputFile stored, Set<FileMagic> writable, Supplier<IcebergCryptoException> refusal)
    implements OutputFile {
  /** A file that is written without a key. */
  GuardedOutputFile(String tableName, OutputFile stored, Set<FileMagic> writable) {
    this(stored, writable, () -> plaintext(tableName, stored.location()));
  }

  private static IcebergCryptoException plaintext(String tableName, String location) {
    return new PlaintextException(
            String.format("file %s would be written without encryption", location),
            "Write rows with INSERT, MERGE or a DataFrame. In Java, encrypt the file with"
                + " table.encryption(), as Iceberg's OutputFileFactory does; an action that"
                + " copies files as they are is not for encrypted tables.")
        .inTable(tableName);
  }

  /** A file that is going to be encrypted, taken out of the guard. */
  static OutputFile withoutGuard(OutputFile file) {
    return file instanceof GuardedOutputFile guarded ? guarded.stored : file;
  }

  /**
   * Creates the file.
   *
   * @throws IcebergCryptoException once the first bytes are written; nothing is in the storage then
   */
  @Override
  public PositionOutputStream create() {
    return new Checked(stored::create);
  }

  @Override
  public PositionOutputStream createOrOverwrite() {
    return new Checked(stored::createOrOverwrite);
  }

  @Override
  public String location() {
    return stored.location();
  }

  @Override
  public InputFile toInputFile() {
    return stored.toInputFile();
  }

  @Override
  public String toString() {
    return stored.toString();
  }

  /** Holds the first bytes back, and the storage unopened, until they tell what the file is. */
  private final class Checked extends PositionOutputStream {
    private final byte[] first = new byte[4];
    private final Supplier<PositionOutputStream> open;
    private int held = 0;
    private PositionOutputStream out;
    private boolean refused = false;
    private boolean closed = false;

    private Checked(Supplier<PositionOutputStream> open) {
      this.open = open;
    }

    @Override
    public void write(int b) throws IOException {
      if (refused) {
        throw refusal.get(); // a writer may try again while it closes, and suppress this one
      }

      if (out != null) {
        out.write(b);
        return;
      }

      first[held++] = (byte) b;
      if (held == first.length) {
        opened();
      }
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      int start = offset;
      int end = offset + length;
      while (out == null && start < end) {
        write(bytes[start++]);
      }

      if (start < end) {
        out.write(bytes, start, end - start);
      }
    }

    @Override
    public long getPos() throws IOException {
      return out == null ? held : out.getPos();
    }

    @Override
    public long storedLength() throws IOException {
      return out == null ? held : out.storedLength();
    }

    @Override
    public void flush() throws IOException {
      if (out != null) {
        out.flush();
      }
    }

    @Override
    public void close() throws IOException {
      if (closed) {
        return;
      }

      this.closed = true;
      try {
        if (out == null && !refused) {
          opened();
        }
      } finally {
        if (out != null) {
          out.close();
        }
      }
    }

    private void opened() throws IOException {
      if (!writable.contains(FileMagic.of(Arrays.copyOf(first, held)))) {
        this.refused = true;
        throw refusal.get();
      }

      this.out = open.get();
      out.write(first, 0, held);
    }
  }
}
