package io.icebergcrypto.io;

import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.checked.StoredInput;
import io.icebergcrypto.metadata.forwarding.ForwardingFileIO;
import java.util.EnumSet;
import java.util.Set;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Refuses to read and to write plaintext files of an encrypted table. It stands on the table's
 * storage, below Iceberg's EncryptingFileIO, which passes a file without a key on and would read
 * plaintext. Such a file can be named, measured and deleted here, but not read, unless that is
 * allowed. Files with a key come by, too: {@link TableEncryptionManager} takes them out again.
 *
 * @param under the table's storage
 * @param plaintextFiles whether all plaintext files may be read and written
 * @param plaintextStatistics whether statistics may be
 * @param filesWithoutLength whether encrypted files may be read of which only the storage tells how
 *     long they are
 */
record PlaintextGuard(
    String tableName,
    FileIO under,
    boolean plaintextFiles,
    boolean plaintextStatistics,
    boolean filesWithoutLength)
    implements ForwardingFileIO {
  /** What a data file, a delete file or a manifest without a key may be: nothing. */
  private static final Set<FileMagic> NOTHING = EnumSet.noneOf(FileMagic.class);

  /** Manifest lists, which Iceberg opens by path, and what is not part of the data. */
  @Override
  public InputFile newInputFile(String path) {
    return guarded(path, under.newInputFile(path), null, unencrypted());
  }

  /** Manifests, data and delete files: their length is known. */
  @Override
  public InputFile newInputFile(String path, long length) {
    return guarded(path, under.newInputFile(path, length), length, NOTHING);
  }

  /** A file that must not be plaintext, regardless of its first bytes. */
  InputFile newEncryptedInputFile(String path) {
    return guarded(path, under.newInputFile(path), null, NOTHING);
  }

  private InputFile guarded(String path, InputFile file, Long listed, Set<FileMagic> readable) {
    if (plaintextFiles && FileFormat.fromFileName(path) == FileFormat.PARQUET) {
      return file; // Parquet reads Hadoop's own files faster, and asks them for their length
    }

    StoredInput stored =
        new StoredInput(
            file,
            () -> under.newInputFile(path).getLength(),
            listed,
            !plaintextFiles,
            filesWithoutLength);
    return new GuardedInputFile(tableName, stored, readable);
  }

  /**
   * Files of all kinds. Iceberg hands them to the encryption manager before it writes to them,
   * except those that are not part of the data.
   */
  @Override
  public OutputFile newOutputFile(String path) {
    OutputFile stored = under.newOutputFile(path);
    return plaintextFiles ? stored : new GuardedOutputFile(tableName, stored, unencrypted());
  }

  /**
   * What a file that is opened by its path alone may be. A manifest list would be plaintext Avro;
   * metadata.json and the offsets of a stream are neither that nor Parquet.
   */
  private Set<FileMagic> unencrypted() {
    EnumSet<FileMagic> data =
        plaintextStatistics
            ? EnumSet.of(FileMagic.AVRO, FileMagic.ORC, FileMagic.LATER)
            : EnumSet.of(
                FileMagic.AVRO, FileMagic.ORC, FileMagic.PAR1, FileMagic.PUFFIN, FileMagic.LATER);
    return EnumSet.complementOf(data);
  }
}
