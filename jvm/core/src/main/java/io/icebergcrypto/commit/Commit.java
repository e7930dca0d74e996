package io.icebergcrypto.commit;

import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import java.util.function.Function;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;

/** One commit of a table: what its steps share. Its keys are resolved once, by the first user. */
final class Commit {
  private final TableKeys table;
  private final TableMetadata base;
  private final TableMetadata wanted;
  private final Function<TableEncryptionManager, FileIO> files;
  private TableEncryptionManager keys;

  /**
   * Begins a commit.
   *
   * @param base the metadata in force, null when the commit creates the table
   * @param wanted the metadata to be committed, before the first step
   * @param files makes the table's FileIO; with null, that of a table that is not encrypted
   */
  Commit(
      TableKeys table,
      TableMetadata base,
      TableMetadata wanted,
      Function<TableEncryptionManager, FileIO> files) {
    this.table = table;
    this.base = base;
    this.wanted = wanted;
    this.files = files;
  }

  String tableName() {
    return table.tableName();
  }

  /** The metadata in force, null when the commit creates the table. */
  TableMetadata base() {
    return base;
  }

  /** The manager of the table's keys; for metadata with a key id only. */
  TableEncryptionManager keys() {
    if (keys == null) {
      this.keys = table.managerFor(wanted);
    }

    return keys;
  }

  /** The table's FileIO, which decrypts, and knows what this commit has written. */
  FileIO io() {
    return keys().written().over(files.apply(keys()));
  }

  /** The FileIO of a table that is not encrypted. */
  FileIO plainIo() {
    return files.apply(null);
  }

  /** A file as it is stored. */
  InputFile stored(ContentFile<?> file) {
    return TableFileIO.storageBelow(plainIo())
        .newInputFile(file.location(), file.fileSizeInBytes());
  }
}
