package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.call.Causes;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesCipher;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory.ModuleType;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnChunk;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.RowGroup;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;
import org.apache.parquet.crypto.KeyAccessDeniedException;

/**
 * The footer of an encrypted Parquet file, decrypted, or a plaintext one whose signature is right:
 * where the file's other parts are (Parquet modular encryption, sections 5.2 and 5.3).
 */
final class ParquetFooter {
  /** What a part of a file is. */
  enum Kind {
    COLUMN_CHUNK,
    COLUMN_INDEX,
    OFFSET_INDEX,
    BLOOM_FILTER
  }

  /**
   * A part of the file, of one column in one row group.
   *
   * @param start its first byte
   * @param length its bytes; -1 when the footer does not say, as of bloom filters that older
   *     writers made
   * @param dictionary whether it is a column chunk that starts with a dictionary page
   * @param modules decrypts it
   */
  record Part(
      Kind kind,
      long start,
      long length,
      Column column,
      boolean dictionary,
      ModuleDecryptor modules) {
    @Override
    public String toString() {
      return Json.words(kind) + " of " + column;
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
  private final FileKey key;
  private final ModuleDecryptor modules;
  private final List<Part> parts = new ArrayList<>();
  private final Map<String, ModuleDecryptor> ofColumns = new HashMap<>();
  private final Map<String, String> left = new LinkedHashMap<>();
  private boolean hasPlaintext;

  private ParquetFooter(byte[] fileAad, FileKey key, ModuleDecryptor modules) {
    this.fileAad = fileAad;
    this.key = key;
    this.modules = modules;
  }

  /** The AAD prefix and the file's identifier, with which the AAD of all modules starts. */
  byte[] fileAad() {
    return fileAad;
  }

  /** All parts of the file but the footer, by their positions; without those of columns left. */
  List<Part> parts() {
    return parts;
  }

  /** The columns whose keys may not be used, with the reason. */
  Map<String, String> left() {
    return left;
  }

  /** Whether columns have no key, which files with keys of columns may have. */
  boolean hasPlaintext() {
    return hasPlaintext;
  }

  /**
   * Decrypts a footer.
   *
   * @param bytes the whole footer
   * @param key the file's
   * @throws TamperedException when it is not what was written
   * @throws PlaintextException when a column of a file with one key is not encrypted
   */
  static ParquetFooter read(byte[] bytes, FileKey key) {
    ByteArrayInputStream in = new ByteArrayInputStream(bytes);
    FileCryptoMetaData crypto = crypto(in, bytes);
    byte[] fileAad = fileAad(crypto.getEncryption_algorithm(), key);
    ModuleDecryptor modules = new ModuleDecryptor(key.ofFooter(crypto.getKey_metadata()));
    int at = bytes.length - in.available();
    byte[] aad = AesCipher.createFooterAAD(fileAad);
    int length = modules.check("the footer", bytes, at, bytes.length - at, aad);
    FileMetaData metadata =
        modules.parse("the footer", length, plain -> Util.readFileMetaData(plain));
    return new ParquetFooter(fileAad, key, modules).withParts(metadata);
  }

  /**
   * Checks a plaintext footer, which is followed by a nonce and a tag.
   *
   * @param bytes the whole footer with its signature
   * @param key finds the keys of a file with keys of columns
   * @throws TamperedException when it is not what was written
   */
  static ParquetFooter signed(byte[] bytes, FileKey key) {
    int length = bytes.length - ModuleDecryptor.SIGNATURE;
    FileMetaData metadata;
    try {
      metadata = Util.readFileMetaData(new ByteArrayInputStream(bytes, 0, Math.max(length, 0)));
    } catch (IOException | RuntimeException e) {
      throw NotAsWritten.unknown("its footer does not parse", e);
    }

    if (!metadata.isSetEncryption_algorithm()) {
      throw NotAsWritten.unknown("its footer says nothing about encryption");
    }

    byte[] fileAad = fileAad(metadata.getEncryption_algorithm(), key);
    byte[] footerKey = key.ofFooter(metadata.getFooter_signing_key_metadata());
    byte[] aad = AesCipher.createFooterAAD(fileAad);
    ModuleDecryptor.checkSignature(footerKey, bytes, length, aad);
    return new ParquetFooter(fileAad, key, new ModuleDecryptor(footerKey)).withParts(metadata);
  }

  private ParquetFooter withParts(FileMetaData metadata) {
    List<RowGroup> rowGroups = metadata.getRow_groups();
    for (int i = 0; i < rowGroups.size(); i++) {
      RowGroup rowGroup = rowGroups.get(i);
      addParts(rowGroup, rowGroup.isSetOrdinal() ? rowGroup.getOrdinal() : i);
    }

    parts.sort(Comparator.comparingLong(Part::start));
    return this;
  }

  /** Reads the plaintext in front of the footer's module, up to where the module starts. */
  private static FileCryptoMetaData crypto(ByteArrayInputStream in, byte[] bytes) {
    FileCryptoMetaData crypto;
    ByteArrayOutputStream again = new ByteArrayOutputStream();
    try {
      crypto = Util.readFileCryptoMetaData(in);
      Util.writeFileCryptoMetaData(crypto, again);
    } catch (IOException | RuntimeException e) {
      throw NotAsWritten.unknown("its file crypto metadata does not parse", e);
    }

    int length = bytes.length - in.available();
    if (!Arrays.equals(again.toByteArray(), 0, again.size(), bytes, 0, length)) {
      throw NotAsWritten.unknown("its file crypto metadata has unknown parts");
    }

    return crypto;
  }

  private static byte[] fileAad(EncryptionAlgorithm encryption, FileKey key) {
    if (!encryption.isSetAES_GCM_V1()) {
      throw NotAsWritten.unauthenticated(
          "its pages are encrypted with AES_GCM_CTR_V1, which does not authenticate them: nothing"
              + " shows whether they were changed");
    }

    AesGcmV1 algorithm = encryption.getAES_GCM_V1();
    byte[] stored = algorithm.isSetAad_prefix() ? algorithm.getAad_prefix() : null;
    // a file with keys of columns tells its prefix itself, if it has one
    byte[] known = key.parts() == null ? key.aadPrefix() : stored;
    byte[] prefix = known == null ? new byte[0] : known;
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

  private void addParts(RowGroup rowGroup, int ordinal) {
    List<ColumnChunk> columns = rowGroup.getColumns();
    for (int i = 0; i < columns.size(); i++) {
      ColumnChunk chunk = columns.get(i);
      Column column = column(chunk, ordinal, i);
      if (key.parts() != null && !chunk.isSetCrypto_metadata()) {
        this.hasPlaintext = true;
      } else if (key.parts() != null && (hasOwnKey(chunk) || isSealed(chunk))) {
        addPartsWithKey(chunk, column);
      } else {
        checkEncrypted(chunk, column);
        addParts(chunk, chunk.getMeta_data(), column, modules);
      }
    }
  }

  private static boolean hasOwnKey(ColumnChunk chunk) {
    return chunk.isSetCrypto_metadata()
        && chunk.getCrypto_metadata().isSetENCRYPTION_WITH_COLUMN_KEY();
  }

  /** Where the footer is plaintext, the metadata of columns with its key is encrypted, too. */
  private static boolean isSealed(ColumnChunk chunk) {
    return chunk.isSetEncrypted_column_metadata();
  }

  private static Column column(ColumnChunk chunk, int rowGroup, int ordinal) {
    List<String> path = List.of();
    if (hasOwnKey(chunk)) {
      path = chunk.getCrypto_metadata().getENCRYPTION_WITH_COLUMN_KEY().getPath_in_schema();
    } else if (chunk.isSetMeta_data()) {
      path = chunk.getMeta_data().getPath_in_schema();
    }

    return new Column(String.join(".", path), rowGroup, ordinal);
  }

  private static void checkEncrypted(ColumnChunk chunk, Column column) {
    if (!chunk.isSetCrypto_metadata()) {
      throw NotAsWritten.plaintext(column + " is not encrypted");
    } else if (hasOwnKey(chunk)) {
      throw NotAsWritten.unknown(
          column + " is encrypted with a key of its own, which the table does not have");
    } else if (!chunk.isSetMeta_data() || chunk.isSetFile_path()) {
      throw nowhere(column);
    }
  }

  private static IcebergCryptoException nowhere(Column column) {
    return NotAsWritten.unknown("the footer does not say where in the file " + column + " is");
  }

  /** Where a column with a key of its own is, is encrypted with its key. */
  private void addPartsWithKey(ColumnChunk chunk, Column column) {
    ModuleDecryptor own = modules;
    if (hasOwnKey(chunk)) {
      own = left.containsKey(column.name()) ? null : decryptor(chunk, column.name());
    }

    if (own == null) {
      return; // and it is among those left
    } else if (!chunk.isSetEncrypted_column_metadata() || chunk.isSetFile_path()) {
      throw nowhere(column);
    }

    String name = "the metadata of " + column;
    byte[] bytes = chunk.getEncrypted_column_metadata();
    int length =
        own.check(
            name,
            bytes,
            0,
            bytes.length,
            AesCipher.createModuleAAD(
                fileAad, ModuleType.ColumnMetaData, column.rowGroup(), column.ordinal(), -1));
    ColumnMetaData metadata =
        own.parse(name, length, plain -> Util.readColumnMetaData(plain, null, null));
    addParts(chunk, metadata, column, own);
  }

  /** A column has one key, in all row groups. */
  private ModuleDecryptor decryptor(ColumnChunk chunk, String column) {
    return ofColumns.computeIfAbsent(
        column,
        name -> {
          var crypto = chunk.getCrypto_metadata().getENCRYPTION_WITH_COLUMN_KEY();
          try {
            return modules.withKey(key.parts().getKey(crypto.getKey_metadata()));
          } catch (KeyAccessDeniedException e) {
            left.put(name, Causes.innermostMessage(e));
            return null;
          }
        });
  }

  private void addParts(
      ColumnChunk chunk, ColumnMetaData metadata, Column column, ModuleDecryptor decryptor) {
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
            hasDictionary,
            decryptor));
    if (chunk.isSetColumn_index_offset()) {
      parts.add(
          new Part(
              Kind.COLUMN_INDEX,
              chunk.getColumn_index_offset(),
              chunk.getColumn_index_length(),
              column,
              false,
              decryptor));
    }

    if (chunk.isSetOffset_index_offset()) {
      parts.add(
          new Part(
              Kind.OFFSET_INDEX,
              chunk.getOffset_index_offset(),
              chunk.getOffset_index_length(),
              column,
              false,
              decryptor));
    }

    if (metadata.isSetBloom_filter_offset()) {
      long length = metadata.isSetBloom_filter_length() ? metadata.getBloom_filter_length() : -1;
      parts.add(
          new Part(
              Kind.BLOOM_FILTER,
              metadata.getBloom_filter_offset(),
              length,
              column,
              false,
              decryptor));
    }
  }
}
