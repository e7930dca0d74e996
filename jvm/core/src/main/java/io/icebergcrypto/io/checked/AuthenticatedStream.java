package io.icebergcrypto.io.checked;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.io.stream.DecryptingStream;
import java.io.EOFException;
import java.io.IOException;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * The plaintext of an AES GCM stream, with errors that name the file. None of them is an
 * EOFException, which Avro takes for the end of the data. After the first error the stream gives no
 * more bytes.
 */
final class AuthenticatedStream extends DecryptingStream {
  private final ExpectedFile file;
  private final long plainLength;
  private IcebergCryptoException failed;

  AuthenticatedStream(
      SeekableInputStream stored,
      Ags1Layout layout,
      NativeEncryptionKeyMetadata keyMetadata,
      ExpectedFile file) {
    super(stored, layout, keyMetadata);
    this.file = file;
    this.plainLength = layout.plaintextLength();
  }

  @Override
  public int read(byte[] bytes, int offset, int count) throws IOException {
    checkFailed();
    try {
      return super.read(bytes, offset, count);
    } catch (EOFException | RuntimeException e) {
      throw fail(e);
    }
  }

  @Override
  public void readFully(long from, byte[] bytes, int offset, int count) throws IOException {
    checkFailed();
    try {
      super.readFully(from, bytes, offset, count);
    } catch (EOFException | RuntimeException e) {
      throw fail(e);
    }
  }

  /**
   * Scans are split by the stored length, which exceeds the plaintext's a little. A split that
   * starts between the two has nothing to read; Iceberg's own stream fails there.
   */
  @Override
  public void seek(long position) throws IOException {
    checkFailed();
    super.seek(position <= file.length() ? Math.min(position, plainLength) : position);
  }

  @Override
  public long skip(long count) {
    checkFailed();
    return super.skip(count);
  }

  private void checkFailed() {
    if (failed != null) {
      throw failed;
    }
  }

  private RuntimeException fail(Exception e) {
    if (e instanceof IcebergCryptoException known) {
      this.failed = known;
    } else if (e instanceof DecryptingStream.TagException) {
      this.failed = file.wrongTag(e);
    } else if (e instanceof DecryptingStream.HeaderException) {
      this.failed = file.malformed(e);
    } else if (e instanceof DecryptingStream.OtherVersionException) {
      this.failed = file.ofOtherVersion(e.getMessage());
    } else if (e instanceof EOFException) { // not the storage's: see LengthCheckedStream
      this.failed = file.unreadable(e);
    } else {
      return (RuntimeException) e; // the storage's, of any type
    }

    return failed;
  }
}
