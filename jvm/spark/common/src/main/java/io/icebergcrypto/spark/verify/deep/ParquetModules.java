package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.spark.verify.deep.ParquetFooter.Column;
import io.icebergcrypto.spark.verify.deep.ParquetFooter.Part;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesCipher;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory.ModuleType;
import org.apache.iceberg.shaded.org.apache.parquet.format.BloomFilterHeader;
import org.apache.iceberg.shaded.org.apache.parquet.format.DataPageHeaderV2;
import org.apache.iceberg.shaded.org.apache.parquet.format.PageHeader;
import org.apache.iceberg.shaded.org.apache.parquet.format.PageType;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;

/**
 * Checks every module of an encrypted Parquet file, and that it has nothing else (Parquet modular
 * encryption, sections 4.4 and 5). Nothing is decompressed or decoded, and at most one module is in
 * memory: what says how long it is was authenticated before, except for headers, of which a size of
 * {@value #MAX_HEADER} bytes is believed.
 */
public final class ParquetModules {
  private static final int MAGIC = 4;
  private static final int TAIL = 8;
  private static final int MAX_HEADER = 16 << 20;

  private static final int STEP = 64 << 10;

  private final StoredFile file;
  private final byte[] fileAad;
  private final boolean gaps;
  private final long end;

  private ParquetModules(StoredFile file, byte[] fileAad, boolean gaps, long end) {
    this.file = file;
    this.fileAad = fileAad;
    this.gaps = gaps;
    this.end = end;
  }

  /**
   * Reads a file from start to end.
   *
   * @param file the file as stored; it starts and ends with PARE
   * @param footerLength the length in bytes of its footer, as its tail gives it
   * @return the columns whose keys may not be used, with the reason; they were not checked, and
   *     with them the file's bytes are not all accounted for
   * @throws TamperedException when it is not what was written; names the module. Row groups,
   *     columns and pages count from 0
   */
  public static Map<String, String> check(StoredFile file, FileKey key, int footerLength) {
    long footerStart = file.getLength() - TAIL - footerLength;
    ParquetFooter footer = ParquetFooter.read(footer(file, footerLength), key);
    return check(file, footer, footerStart);
  }

  /**
   * The same of a file whose columns have keys, or some of them, and whose footer may be plaintext.
   * Columns without a key are not looked at.
   *
   * @param file whose footer was read before
   * @param encrypted whether the footer is
   */
  public static Map<String, String> checkColumns(StoredFile file, FileKey key, boolean encrypted) {
    byte[] tail = bytes(file, file.getLength() - TAIL, MAGIC);
    int length = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (length <= 0 || length > file.getLength() - TAIL - MAGIC) {
      throw NotAsWritten.unknown("its last bytes give a footer of " + length + " bytes");
    }

    byte[] bytes = footer(file, length);
    ParquetFooter footer =
        encrypted ? ParquetFooter.read(bytes, key) : ParquetFooter.signed(bytes, key);
    return check(file, footer, file.getLength() - TAIL - length);
  }

  private static byte[] footer(StoredFile file, int length) {
    if (length > StoredFile.MAX_END - TAIL) {
      throw NotAsWritten.unknown(
          String.format(
              "its last bytes give a footer of %d bytes, more than Parquet reads", length));
    }

    return bytes(file, file.getLength() - TAIL - length, length);
  }

  private static Map<String, String> check(
      StoredFile file, ParquetFooter footer, long footerStart) {
    boolean gaps = !footer.left().isEmpty() || footer.hasPlaintext();
    new ParquetModules(file, footer.fileAad(), gaps, footerStart).check(footer.parts());
    return footer.left();
  }

  private static byte[] bytes(StoredFile file, long position, int count) {
    try (SeekableInputStream in = file.newStream()) {
      byte[] bytes = new byte[count];
      in.seek(position);
      IOUtil.readFully(in, bytes, 0, count);
      return bytes;
    } catch (IOException e) {
      throw new IllegalStateException(e); // a StoredFile throws none
    }
  }

  /** Parts follow each other without gaps, from the magic to the footer. */
  private void check(List<Part> parts) {
    long position = MAGIC;
    for (int i = 0; i < parts.size(); i++) {
      Part part = parts.get(i);
      long next = i + 1 < parts.size() ? parts.get(i + 1).start() : end;
      long length = part.length() < 0 ? next - part.start() : part.length();
      position = skipped(position, part.start());
      checkPlace(part, position, length);
      switch (part.kind()) {
        case COLUMN_CHUNK -> new Pages(part).check(position, position + length);
        case COLUMN_INDEX -> checkModule(part, position, length, ModuleType.ColumnIndex);
        case OFFSET_INDEX -> checkModule(part, position, length, ModuleType.OffsetIndex);
        case BLOOM_FILTER -> checkBloomFilter(part, position, length);
      }

      position += length;
    }

    if (skipped(position, end) != end) {
      throw unaccounted(position, end);
    }
  }

  /** Goes over what may be of columns whose keys may not be used. */
  private long skipped(long from, long to) {
    if (!gaps || to > end) {
      return from;
    }

    for (long position = from; position < to; position += STEP) {
      file.require(position, (int) Math.min(STEP, to - position));
    }

    return Math.max(from, to);
  }

  private void checkPlace(Part part, long position, long length) {
    if (part.start() > position && part.start() <= end) {
      throw unaccounted(position, part.start());
    } else if (part.start() != position || length < 0 || length > end - position) {
      throw NotAsWritten.unknown(
          String.format(
              "the %s is not where it should be: from byte %d, %d bytes, expected byte %d",
              part, part.start(), length, position));
    }
  }

  private static IcebergCryptoException unaccounted(long from, long to) {
    return NotAsWritten.unknown(
        String.format("bytes %d to %d belong to no module of the file", from, to - 1));
  }

  private void checkModule(Part part, long position, long length, ModuleType type) {
    checkModule(part.modules(), "the " + part, position, length, aad(type, part.column()));
  }

  private void checkBloomFilter(Part part, long position, long length) {
    String name = "the header of the " + part;
    long headerLength = headerLength(name, position, position + length);
    int content =
        checkModule(
            part.modules(),
            name,
            position,
            headerLength,
            aad(ModuleType.BloomFilterHeader, part.column()));
    BloomFilterHeader header = part.modules().parse(name, content, Util::readBloomFilterHeader);
    int bits =
        checkModule(
            part.modules(),
            "the " + part,
            position + headerLength,
            length - headerLength,
            aad(ModuleType.BloomFilterBitset, part.column()));
    if (bits != header.getNumBytes()) {
      throw NotAsWritten.unknown(
          String.format("the %s has %d bytes, expected %d", part, bits, header.getNumBytes()));
    }
  }

  /** Checks a module that has to have this length. */
  private int checkModule(
      ModuleDecryptor modules, String name, long position, long length, byte[] aad) {
    if (length < ModuleDecryptor.OVERHEAD || length > Integer.MAX_VALUE - TAIL) {
      throw NotAsWritten.unknown(
          String.format("%s has %d bytes, which no module has", name, length));
    }

    int at = file.require(position, (int) length);
    return modules.check(name, file.window(), at, (int) length, aad);
  }

  /** The length of a header, by its own account: nothing else says it. */
  private long headerLength(String name, long position, long end) {
    long most = Math.min(end - position, MAX_HEADER);
    if (most >= ModuleDecryptor.OVERHEAD) {
      int at = file.require(position, ModuleDecryptor.OVERHEAD);
      long length = ModuleDecryptor.moduleLength(file.window(), at);
      if (length >= ModuleDecryptor.OVERHEAD && length <= most) {
        return length;
      }
    }

    throw NotAsWritten.because(
        String.format("%s does not fit: there are %d bytes for it", name, end - position));
  }

  private byte[] aad(ModuleType type, Column column) {
    return aad(type, column, -1);
  }

  private byte[] aad(ModuleType type, Column column, int page) {
    try {
      return AesCipher.createModuleAAD(fileAad, type, column.rowGroup(), column.ordinal(), page);
    } catch (RuntimeException e) { // an ordinal that is too large
      throw NotAsWritten.unknown("of " + column + ": " + e.getMessage(), e);
    }
  }

  /** The pages of one column chunk. */
  private final class Pages {
    private final Column column;
    private final ModuleDecryptor modules;
    private final boolean dictionary;

    Pages(Part chunk) {
      this.column = chunk.column();
      this.modules = chunk.modules();
      this.dictionary = chunk.dictionary();
    }

    /** Pages follow each other without gaps, to the chunk's end. */
    void check(long start, long end) {
      long position = start;
      if (dictionary) {
        position =
            checkPage(
                position,
                end,
                "the dictionary page of " + column,
                aad(ModuleType.DictionaryPageHeader, column),
                aad(ModuleType.DictionaryPage, column),
                true);
      }

      byte[] headerAad = aad(ModuleType.DataPageHeader, column, 0);
      byte[] pageAad = aad(ModuleType.DataPage, column, 0);
      for (int page = 0; position < end; page++) {
        String name = "data page " + page + " of " + column;
        if (page > Short.MAX_VALUE) {
          throw NotAsWritten.unknown(name + " comes after the last one that Parquet can encrypt");
        }

        AesCipher.quickUpdatePageAAD(headerAad, page);
        AesCipher.quickUpdatePageAAD(pageAad, page);
        position = checkPage(position, end, name, headerAad, pageAad, false);
      }
    }

    /** Returns where the page ends. */
    private long checkPage(
        long position, long end, String name, byte[] headerAad, byte[] pageAad, boolean expected) {
      String headerName = "the header of " + name;
      long headerLength = headerLength(headerName, position, end);
      int content = checkModule(modules, headerName, position, headerLength, headerAad);
      PageHeader header = modules.parse(headerName, content, Util::readPageHeader);
      long start = position + headerLength;
      int length = header.getCompressed_page_size();
      boolean isDictionary = header.getType() == PageType.DICTIONARY_PAGE;
      if (isDictionary != expected || header.getType() == PageType.INDEX_PAGE) {
        throw NotAsWritten.unknown(headerName + " is that of a " + header.getType());
      } else if (length < ModuleDecryptor.OVERHEAD || length > end - start) {
        throw NotAsWritten.unknown(
            String.format("%s has %d bytes, there are %d", name, length, end - start));
      }

      int at = file.require(start, length);
      if (header.getType() == PageType.DATA_PAGE_V2) {
        checkLevels(name, header.getData_page_header_v2(), at, length);
      }

      modules.check(name, file.window(), at, length, pageAad);
      return start + length;
    }

    /** Of pages of version 2, Parquet's Java writer leaves the levels in plaintext. */
    private void checkLevels(String name, DataPageHeaderV2 header, int at, int length) {
      long levels =
          (long) header.getDefinition_levels_byte_length()
              + header.getRepetition_levels_byte_length();
      if (levels > 0 && ModuleDecryptor.moduleLength(file.window(), at) != length) {
        throw NotAsWritten.plaintext(
            String.format(
                "%s is not encrypted as a whole: its %d bytes of repetition and definition levels"
                    + " are plaintext, and not authenticated (it is a page of version 2, as"
                    + " Parquet's Java writer makes it)",
                name, levels));
      }
    }
  }
}
