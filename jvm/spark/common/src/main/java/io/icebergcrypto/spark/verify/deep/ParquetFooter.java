package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.TamperedException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesCipher;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnChunk;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.RowGroup;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;

/**
 * The footer of an encrypted Parquet file, decrypted: where the file's other parts are (Parquet
 * modular encryption, section 5.2, "Encrypted footer mode").
 */
final class ParquetFooter {
  /** What a part of a file is; its label is what people read. */
  enum Kind {
    COLUMN_CHUNK("column chunk"),
    COLUMN_INDEX("column index"),
    OFFSET_INDEX("offset index"),
    BLOOM_FILTER("bloom filter");

    private final String label;

    Kind(String label) {
      this.label = label;
    }

    String label() {
      return label;
    }
  }

  /**
   * A part of the file, of one column in one row group.
   *
   * @param start its first byte
   * @param length its bytes; -1 when the footer does not say, as of bloom filters that older
   *     writers made
   * @param dictionary whether it is a column chunk that starts with a dictionary page
   */
  record Part(Kind kind, long start, long length, Column column, boolean dictionary) {
    @Override
    public String toString() {
      return kind.label() + " of " + column;
    }
  }

  /** A column in one row group; the ordinals count from 0, and are part of the modules' AAD. */
  record Column(String name, int rowGroup, int ordinal) {
    @Override
    public String toString() {
      return String.format("column %s in row group %d", name, rowGroup);
    }
  }

  private final byte[] fileAad;
  private final List<Part> parts;

  private ParquetFooter(byte[] fileAad, List<Part> parts) {
    this.fileAad = fileAad;
    this.parts = parts;
  }

  /** The AAD prefix and the file's identifier, with which the AAD of all modules starts. */
  byte[] fileAad() {
    return fileAad;
  }

  /** All parts of the file but the footer, by their positions. */
  List<Part> parts() {
    return parts;
  }

  /**
   * Decrypts a footer.
   *
   * @param bytes the whole footer
   * @param key the file's
   * @param modules decrypts with that key
   * @throws TamperedException when it is not what was written, or a column is not encrypted with
   *     the file's key
   */
  static ParquetFooter read(byte[] bytes, FileKey key, ModuleDecryptor modules) {
    ByteArrayInputStream in = new ByteArrayInputStream(bytes);
    byte[] fileAad = fileAad(in, bytes, key);
    int at = bytes.length - in.available();
    byte[] aad = AesCipher.createFooterAAD(fileAad);
    int length = modules.check("the footer", bytes, at, bytes.length - at, aad);
    FileMetaData metadata =
        modules.parse("the footer", length, plain -> Util.readFileMetaData(plain));
    List<Part> parts = new ArrayList<>();
    List<RowGroup> rowGroups = metadata.getRow_groups();
    for (int i = 0; i < rowGroups.size(); i++) {
      RowGroup rowGroup = rowGroups.get(i);
      addParts(rowGroup, rowGroup.isSetOrdinal() ? rowGroup.getOrdinal() : i, parts);
    }

    parts.sort(Comparator.comparingLong(Part::start));
    return new ParquetFooter(fileAad, parts);
  }

  /** Reads the plaintext in front of the footer's module, up to where the module starts. */
  private static byte[] fileAad(ByteArrayInputStream in, byte[] bytes, FileKey key) {
    FileCryptoMetaData crypto;
    ByteArrayOutputStream again = new ByteArrayOutputStream();
    try {
      crypto = Util.readFileCryptoMetaData(in);
      Util.writeFileCryptoMetaData(crypto, again);
    } catch (IOException | RuntimeException e) {
      throw NotAsWritten.because("its file crypto metadata does not parse", e);
    }

    int length = bytes.length - in.available();
    if (!Arrays.equals(again.toByteArray(), 0, again.size(), bytes, 0, length)) {
      throw NotAsWritten.because("its file crypto metadata has bytes that no writer makes");
    }

    if (!crypto.getEncryption_algorithm().isSetAES_GCM_V1()) {
      throw NotAsWritten.because(
          "its pages are encrypted with AES_GCM_CTR_V1, which does not authenticate them: whether"
              + " they were changed cannot be told");
    }

    AesGcmV1 algorithm = crypto.getEncryption_algorithm().getAES_GCM_V1();
    byte[] prefix = key.aadPrefix() == null ? new byte[0] : key.aadPrefix();
    byte[] stored = algorithm.isSetAad_prefix() ? algorithm.getAad_prefix() : null;
    if (stored != null && !Arrays.equals(stored, prefix)) {
      throw NotAsWritten.because("its AAD prefix is not that of its key metadata");
    } else if (stored == null && algorithm.isSupply_aad_prefix() != prefix.length > 0) {
      throw NotAsWritten.because(
          prefix.length > 0
              ? "it says that it has no AAD prefix; its key metadata has one"
              : "it says that it has an AAD prefix; its key metadata has none");
    }

    byte[] unique = algorithm.isSetAad_file_unique() ? algorithm.getAad_file_unique() : new byte[0];
    byte[] fileAad = Arrays.copyOf(prefix, prefix.length + unique.length);
    System.arraycopy(unique, 0, fileAad, prefix.length, unique.length);
    return fileAad;
  }

  private static void addParts(RowGroup rowGroup, int ordinal, List<Part> parts) {
    List<ColumnChunk> columns = rowGroup.getColumns();
    for (int i = 0; i < columns.size(); i++) {
      ColumnChunk chunk = columns.get(i);
      addParts(chunk, encryptedColumn(chunk, ordinal, i), parts);
    }
  }

  private static Column encryptedColumn(ColumnChunk chunk, int rowGroup, int ordinal) {
    List<String> path = List.of();
    if (chunk.isSetMeta_data()) {
      path = chunk.getMeta_data().getPath_in_schema();
    } else if (chunk.isSetCrypto_metadata()
        && chunk.getCrypto_metadata().isSetENCRYPTION_WITH_COLUMN_KEY()) {
      path = chunk.getCrypto_metadata().getENCRYPTION_WITH_COLUMN_KEY().getPath_in_schema();
    }

    Column column = new Column(String.join(".", path), rowGroup, ordinal);
    if (!chunk.isSetCrypto_metadata()) {
      throw NotAsWritten.plaintext(column + " is not encrypted");
    } else if (!chunk.getCrypto_metadata().isSetENCRYPTION_WITH_FOOTER_KEY()) {
      throw NotAsWritten.because(
          column + " is encrypted with a key of its own, which the table does not have");
    } else if (!chunk.isSetMeta_data() || chunk.isSetFile_path()) {
      throw NotAsWritten.because("the footer does not say where in the file " + column + " is");
    }

    return column;
  }

  private static void addParts(ColumnChunk chunk, Column column, List<Part> parts) {
    ColumnMetaData metadata = chunk.getMeta_data();
    long data = metadata.getData_page_offset();
    long dictionary =
        metadata.isSetDictionary_page_offset() ? metadata.getDictionary_page_offset() : 0;
    boolean hasDictionary =
        dictionary > 0 && dictionary < data; // 0: what some writers give for none
    parts.add(
        new Part(
            Kind.COLUMN_CHUNK,
            hasDictionary ? dictionary : data,
            metadata.getTotal_compressed_size(),
            column,
            hasDictionary));
    if (chunk.isSetColumn_index_offset()) {
      parts.add(
          new Part(
              Kind.COLUMN_INDEX,
              chunk.getColumn_index_offset(),
              chunk.getColumn_index_length(),
              column,
              false));
    }

    if (chunk.isSetOffset_index_offset()) {
      parts.add(
          new Part(
              Kind.OFFSET_INDEX,
              chunk.getOffset_index_offset(),
              chunk.getOffset_index_length(),
              column,
              false));
    }

    if (metadata.isSetBloom_filter_offset()) {
      long length = metadata.isSetBloom_filter_length() ? metadata.getBloom_filter_length() : -1;
      parts.add(
          new Part(Kind.BLOOM_FILTER, metadata.getBloom_filter_offset(), length, column, false));
    }
  }
}
