package io.icebergcrypto.io;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.checked.StoredInput;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Set;
import org.apache.iceberg.encryption.EncryptedInputFile;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * A file of an encrypted table that is opened without a key. It is read only if its first bytes say
 * that it is not part of the data.
 *
 * @param whole the file, of which anything may be read when it is not guarded
 * @param readable what it may be
 */
record GuardedInputFile(String tableName, StoredInput whole, Set<FileMagic> readable)
    implements ForwardingInputFile {
  /** A file that has a key, taken out of the guard; without one, plaintext files are allowed. */
  static StoredInput stored(EncryptedInputFile file) {
    InputFile input = file.encryptedInputFile();
    return input instanceof GuardedInputFile guarded
        ? guarded.whole
        : new StoredInput(input, input::getLength, null, false, false);
  }

  /** The file as it is stored, to be decrypted. */
  static InputFile withoutGuard(InputFile file) {
    return file instanceof GuardedInputFile guarded ? guarded.whole.file() : file;
  }

  @Override
  public InputFile under() {
    return whole.file();
  }

  /**
   * Opens the file.
   *
   * @throws PlaintextException when it is part of the data, and so should have a key
   * @throws NotSupportedException when it is encrypted, and its reader does not say with which key
   */
  @Override
  public SeekableInputStream newStream() {
    if (!whole.guarded()) {
      return under().newStream();
    } else if (readable.isEmpty()) {
      throw plaintext();
    }

    SeekableInputStream in = under().newStream();
    try {
      byte[] head = in.readNBytes(FileMagic.HEAD_LENGTH);
      check(FileMagic.of(head));
      return new StreamWithHead(head, in); // of the bytes that were looked at
    } catch (IOException e) {
      close(in);
      throw new UncheckedIOException("Cannot read " + location(), e);
    } catch (IcebergCryptoException | NotFoundException e) {
      close(in);
      throw e;
    } catch (RuntimeException e) {
      close(in);
      // S3 answers a ranged read of an empty object with an error
      if (getLength() == 0) {
        check(FileMagic.EMPTY);
        return under().newStream();
      }

      throw e;
    }
  }

  private void check(FileMagic magic) {
    if (magic.encrypted()) {
      throw new NotSupportedException(
              String.format("file %s is encrypted, but is opened without its key", location()),
              "Iceberg's readers for plain Java (IcebergGenerics) open delete files like this: read"
                  + " the table in Spark or Flink, or have Spark rewrite the data files that have"
                  + " deletes (rewrite_data_files with delete-file-threshold 1).")
          .inTable(tableName);
    }

    if (!readable.contains(magic)) {
      throw plaintext();
    }
  }

  private IcebergCryptoException plaintext() {
    return PlaintextException.ofFile(location()).inTable(tableName);
  }

  private static void close(SeekableInputStream in) {
    try {
      in.close();
    } catch (IOException e) {
      // what is thrown says more
    }
  }

  @Override
  public String toString() {
    return under().toString();
  }
}
