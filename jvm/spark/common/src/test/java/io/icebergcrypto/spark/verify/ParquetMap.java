package io.icebergcrypto.spark.verify;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.shaded.org.apache.parquet.ParquetReadOptions;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.iceberg.shaded.org.apache.parquet.internal.hadoop.metadata.IndexReference;
import org.apache.iceberg.shaded.org.apache.parquet.io.LocalInputFile;

/** Where the modules of an encrypted Parquet file are, as Parquet's own reader sees it. */
final class ParquetMap {
  /** A module; its length has that of its length field. */
  record Module(String name, long start, long length) {}

  private final ByteBuffer file;
  private final List<Module> modules = new ArrayList<>();

  private ParquetMap(byte[] bytes) {
    this.file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  static List<Module> of(EncryptedFile encrypted, Path folder) throws IOException {
    Path local = Files.write(folder.resolve("map.parquet"), encrypted.bytes());
    FileDecryptionProperties keys =
        FileDecryptionProperties.builder()
            .withFooterKey(encrypted.key())
            .withAADPrefix(encrypted.aadPrefix())
            .build();
    ParquetReadOptions options = ParquetReadOptions.builder().withDecryption(keys).build();
    ParquetMap map = new ParquetMap(encrypted.bytes());
    try (ParquetFileReader reader = ParquetFileReader.open(new LocalInputFile(local), options)) {
      for (BlockMetaData rowGroup : reader.getRowGroups()) {
        for (ColumnChunkMetaData chunk : rowGroup.getColumns()) {
          String column =
              String.format(
                  "column %s in row group %d",
                  chunk.getPath().toDotString(), rowGroup.getOrdinal());
          map.addChunk(chunk, reader.readOffsetIndex(chunk), column);
        }
      }
    }

    return map.modules;
  }

  private void addChunk(ColumnChunkMetaData chunk, OffsetIndex pages, String column) {
    if (chunk.getDictionaryPageOffset() > 0) {
      addPair("the dictionary page of " + column, chunk.getDictionaryPageOffset());
    }

    for (int page = 0; page < pages.getPageCount(); page++) {
      addPair("data page " + page + " of " + column, pages.getOffset(page));
    }

    IndexReference index = chunk.getColumnIndexReference();
    if (index != null) {
      modules.add(
          new Module("the column index of " + column, index.getOffset(), index.getLength()));
    }

    IndexReference offsets = chunk.getOffsetIndexReference();
    modules.add(
        new Module("the offset index of " + column, offsets.getOffset(), offsets.getLength()));
    if (chunk.getBloomFilterOffset() > 0) {
      addPair("the bloom filter of " + column, chunk.getBloomFilterOffset());
    }
  }

  private void addPair(String name, long start) {
    long header = length(start);
    modules.add(new Module("the header of " + name, start, header));
    modules.add(new Module(name, start + header, length(start + header)));
  }

  private long length(long start) {
    return 4L + file.getInt((int) start);
  }
}
