package io.icebergcrypto.io;

import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.regex.Pattern;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Encrypts and decrypts the manifests that Flink's sinks stage: a checkpoint's data files, with
 * their keys, which the committer reads, perhaps in another process days later, and deletes.
 * Iceberg writes them by path, as plaintext. Here each is a {@link SealedContent}, with which comes
 * what its reader needs beside the KMS.
 */
final class StagedManifests {
  // Iceberg's names: <job>-<operator>-<subtask>-<attempt>-<checkpoint>-<count>[-<suffix>].avro
  private static final Pattern NAME =
      Pattern.compile("(.*/)?[0-9a-f]{32}-[0-9a-f]{32}-\\d{5,}-\\d+-\\d+-\\d{5,}(-[^/]*)?\\.avro");

  private StagedManifests() {}

  /** Whether a file is a staged manifest, by its name. */
  static boolean isNamed(String path) {
    return NAME.matcher(path).matches();
  }

  /** A new one. */
  static OutputFile encrypted(TableEncryptionManager manager, OutputFile stored) {
    return new Encrypted(manager, stored);
  }

  /** One that was staged; its content is read when it is asked for, and once. */
  static InputFile decrypted(TableEncryptionManager manager, InputFile stored) {
    return new Decrypted(manager, stored);
  }

  private record Encrypted(TableEncryptionManager manager, OutputFile stored)
      implements OutputFile {
    @Override
    public PositionOutputStream create() {
      return new SealedStream(this, false);
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return new SealedStream(this, true);
    }

    @Override
    public String location() {
      return stored.location();
    }

    @Override
    public InputFile toInputFile() {
      return new Decrypted(manager, stored.toInputFile());
    }
  }

  /** Holds the content until it is closed: a manifest, of one checkpoint's files. */
  private static final class SealedStream extends PositionOutputStream {
    private final Encrypted file;
    private final boolean overwrites;
    private final KeptStream.Content content = new KeptStream.Content();
    private long storedLength = -1; // not yet
    private boolean closed = false;

    private SealedStream(Encrypted file, boolean overwrites) {
      this.file = file;
      this.overwrites = overwrites;
    }

    @Override
    public void write(int b) {
      content.write(b);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) {
      content.write(bytes, offset, length);
    }

    @Override
    public long getPos() {
      return content.size();
    }

    @Override
    public long storedLength() {
      return storedLength < 0 ? content.size() : storedLength;
    }

    @Override
    public void close() throws IOException {
      if (closed) {
        return;
      }

      this.closed = true;
      byte[] sealed;
      try {
        sealed = SealedContent.seal(file.manager, file.location(), content.toByteArray());
      } finally {
        content.wipe();
      }

      this.storedLength = sealed.length;
      try (PositionOutputStream out =
          overwrites ? file.stored.createOrOverwrite() : file.stored.create()) {
        out.write(sealed);
      }
    }
  }

  private static final class Decrypted implements ForwardingInputFile {
    private final TableEncryptionManager manager;
    private final InputFile stored;
    private InputFile content = null;

    private Decrypted(TableEncryptionManager manager, InputFile stored) {
      this.manager = manager;
      this.stored = stored;
    }

    @Override
    public InputFile under() {
      return stored;
    }

    @Override
    public long getLength() {
      return content().getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      return content().newStream();
    }

    @Override
    public String toString() {
      return location();
    }

    private synchronized InputFile content() {
      if (content == null) {
        // in plaintext it is the guard's, which refuses it unless plaintext files are allowed
        InputFile bytes = GuardedInputFile.withoutGuard(stored);
        this.content = FileInspector.magic(bytes) == FileMagic.AGS1 ? opened(bytes) : stored;
      }

      return content;
    }

    private InputFile opened(InputFile bytes) {
      try (InputStream in = bytes.newStream()) {
        byte[] sealed = in.readAllBytes();
        return new InMemoryInputFile(location(), SealedContent.open(manager, location(), sealed));
      } catch (IOException e) {
        throw new UncheckedIOException("Cannot read " + location(), e);
      }
    }
  }
}
