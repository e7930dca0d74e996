package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.kms.call.Causes;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;

/**
 * Reads all pages of a Parquet file with keys whose pages have no tags, as a reader of all its
 * columns would: Parquet checks the tags of the footer and of pages' headers, and the signature of
 * a plaintext footer. That a page cannot be read proves nothing: other writers encrypt pages of
 * version 2 in another way than Parquet's Java reader expects.
 */
public final class PageCheck {
  private PageCheck() {}

  /**
   * Reads a file.
   *
   * @param hadoop has the KMS's settings
   * @return the columns whose keys may not be used, with the reason: they were not checked
   * @throws TamperedException when the file is not what was written
   * @throws IcebergCryptoException when the footer's key cannot be had, or the storage failed
   */
  public static Map<String, String> check(String location, Configuration hadoop) {
    Path path = new Path(location);
    WatchedStorage storage;
    long length;
    try {
      storage = new WatchedStorage(path.getFileSystem(hadoop));
      length = storage.getFileStatus(path).getLen();
    } catch (IOException e) {
      throw notRead(location, e);
    }

    InputFile file =
        new InputFile() {
          @Override
          public long getLength() {
            return length;
          }

          @Override
          public SeekableInputStream newStream() throws IOException {
            return HadoopStreams.wrap(storage.open(path));
          }
        };
    ParquetReadOptions options =
        HadoopReadOptions.builder(hadoop, path)
            .withDecryption(new ParquetCryptoFactory().getFileDecryptionProperties(hadoop, path))
            .build();
    Map<String, String> left = new LinkedHashMap<>();
    try (ParquetFileReader reader = ParquetFileReader.open(file, options)) {
      MessageType schema = reader.getFileMetaData().getSchema();
      for (ColumnDescriptor column : schema.getColumns()) {
        try {
          checkColumn(reader, schema, column, location);
        } catch (KeyAccessDeniedException e) {
          left.put(String.join(".", column.getPath()), Causes.innermostMessage(e));
        }
      }
    } catch (IOException | RuntimeException e) {
      throw storage.typed(e, of -> notRead(location, of), () -> changed(location, e));
    }

    return left;
  }

  private static void checkColumn(
      ParquetFileReader reader, MessageType schema, ColumnDescriptor column, String location)
      throws IOException {
    String[] path = column.getPath();
    Type narrowed = narrowed(schema.getType(path[0]), path, 1);
    reader.setRequestedSchema(new MessageType(schema.getName(), narrowed));
    for (int group = 0; group < reader.getRowGroups().size(); group++) {
      PageReadStore pages = reader.readRowGroup(group);
      PageReader found = pages.getPageReader(column);
      long values = 0;
      try {
        found.readDictionaryPage();
        for (var page = found.readPage(); page != null; page = found.readPage()) {
          values += page.getValueCount();
        }
      } catch (RuntimeException e) {
        throw notUnderstood(
            location,
            String.format(
                "pages of column %s cannot be read: %s",
                String.join(".", column.getPath()), Causes.innermostMessage(e)),
            null); // what Parquet says of it would pass for a wrong tag
      }

      if (values != found.getTotalValueCount()) {
        throw notUnderstood(
            location,
            String.format(
                "it has %d values of column %s, expected %d",
                values, String.join(".", column.getPath()), found.getTotalValueCount()),
            null);
      }
    }
  }

  /** A field with nothing but the column in it. */
  private static Type narrowed(Type field, String[] path, int depth) {
    return field.isPrimitive()
        ? field
        : field
            .asGroupType()
            .withNewFields(narrowed(field.asGroupType().getType(path[depth]), path, depth + 1));
  }

  /** The error of a file of which something was read that is wrong. */
  static IcebergCryptoException changed(String location, Exception error) {
    return Evidence.isOfParquet(error)
        ? new TamperedException(
            String.format(
                "%s is not what was written: %s", location, Causes.innermostMessage(error)),
            "The file was overwritten or changed after it was written. Restore it from a backup or"
                + " from an object version.",
            error)
        : notUnderstood(location, Causes.innermostMessage(error), error);
  }

  /** The error of a file that could not be checked, for a reason that proves no change. */
  public static IcebergCryptoException notUnderstood(
      String location, String problem, Exception cause) {
    return new IcebergCryptoException(
        String.format("%s could not be checked: %s", location, problem),
        "A library may be missing, another program or a later version may have written the file, or"
            + " it was cut off: read it with the program that wrote it, and compare its length with"
            + " that of a backup.",
        cause);
  }

  /** The error of a file that its storage does not give. */
  static IcebergCryptoException notRead(String location, Exception ofStorage) {
    return new IcebergCryptoException(
        String.format("%s could not be read: %s", location, Causes.innermostMessage(ofStorage)),
        "This says nothing about the file. Check that the storage is up and that its credentials"
            + " allow reading it.",
        ofStorage);
  }
}
