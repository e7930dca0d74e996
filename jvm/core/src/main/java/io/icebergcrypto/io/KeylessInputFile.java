package io.icebergcrypto.io;

import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import java.util.EnumSet;
import java.util.Set;
import org.apache.iceberg.encryption.EncryptedInputFile;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/** A stored file of an encrypted table for which the table's metadata has no key. */
final class KeylessInputFile implements InputFile {
  /** What a data file, a delete file or a manifest without a key may be: nothing. */
  static final Set<FileMagic> NEVER = EnumSet.noneOf(FileMagic.class);

  private final String tableName;
  private final InputFile stored;
  private final Set<FileMagic> readable;

  KeylessInputFile(String tableName, InputFile stored, Set<FileMagic> readable) {
    this.tableName = tableName;
    this.stored = stored;
    this.readable = readable;
  }

  /**
   * What a file that is opened by its path alone may be. A manifest list would be plaintext Avro;
   * metadata.json and the offsets of a stream are neither that nor Parquet.
   */
  static Set<FileMagic> other(boolean plaintextStatistics) {
    Set<FileMagic> other =
        EnumSet.complementOf(
            EnumSet.of(FileMagic.AVRO, FileMagic.PAR1, FileMagic.PUFFIN, FileMagic.ORC));
    if (plaintextStatistics) {
      other.add(FileMagic.PUFFIN);
      other.add(FileMagic.PAR1);
    }

    return other;
  }

  /** A file that has a key, on its storage again. */
  static EncryptedInputFile withKey(EncryptedInputFile file) {
    return file.encryptedInputFile() instanceof KeylessInputFile keyless
        ? new WithKey(keyless.stored, file.keyMetadata())
        : file;
  }

  private record WithKey(InputFile encryptedInputFile, EncryptionKeyMetadata keyMetadata)
      implements EncryptedInputFile {}

  @Override
  public long getLength() {
    return stored.getLength();
  }

  /**
   * Opens the file.
   *
   * @throws PlaintextException when it is a file of the table: it should have a key
   */
  @Override
  public SeekableInputStream newStream() {
    if (readable.isEmpty() || !readable.contains(FileInspector.magic(stored))) {
      throw new PlaintextException(
              String.format("file %s is not encrypted: the table has no key for it", location()),
              "A client without encryption, or somebody with access to catalog and storage, put it"
                  + " there: find out who. Verify the table, and roll it back to a snapshot without"
                  + " the file. To read the file all the same, set the catalog property"
                  + " encryption.plaintext-files=allow.")
          .inTable(tableName);
    }

    return stored.newStream();
  }

  @Override
  public String location() {
    return stored.location();
  }

  @Override
  public boolean exists() {
    return stored.exists();
  }

  @Override
  public String toString() {
    return stored.toString();
  }
}
