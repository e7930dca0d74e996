package io.icebergcrypto.spark.verify;

import io.icebergcrypto.testing.Fuzz;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesCipher;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesMode;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory.ModuleType;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.BlockCipher;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnChunk;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.CompressionCodec;
import org.apache.iceberg.shaded.org.apache.parquet.format.DataPageHeader;
import org.apache.iceberg.shaded.org.apache.parquet.format.DataPageHeaderV2;
import org.apache.iceberg.shaded.org.apache.parquet.format.Encoding;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionWithFooterKey;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.PageHeader;
import org.apache.iceberg.shaded.org.apache.parquet.format.PageType;
import org.apache.iceberg.shaded.org.apache.parquet.format.RowGroup;
import org.apache.iceberg.shaded.org.apache.parquet.format.SchemaElement;
import org.apache.iceberg.shaded.org.apache.parquet.format.Type;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;

/** Parquet files of one page whose tags are right and whose numbers may be anything. */
final class ForgedParquet {
  private static final byte[] KEY = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] PREFIX = {1, 2, 3};
  private static final byte[] UNIQUE = {4, 5};
  private static final byte[] FILE_AAD = {1, 2, 3, 4, 5};
  private static final byte[] MAGIC = "PARE".getBytes(StandardCharsets.US_ASCII);

  private final BlockCipher.Encryptor encryptor =
      ModuleCipherFactory.getEncryptor(AesMode.GCM, KEY);

  /** Some of its numbers are wrong, or none. */
  EncryptedFile forge(Fuzz round) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(MAGIC);
    byte[] page = encryptor.encrypt(new byte[100], aad(ModuleType.DataPage));
    Util.writePageHeader(
        header(round, page.length), out, encryptor, aad(ModuleType.DataPageHeader));
    out.writeBytes(page);
    ColumnChunk chunk = chunk(round, out.size() - 4);
    int footerStart = out.size();
    Util.writeFileCryptoMetaData(crypto(), out);
    SchemaElement root = new SchemaElement("m");
    RowGroup rowGroup = new RowGroup(List.of(chunk), 100, 1);
    rowGroup.setOrdinal((short) wrong(round, 0));
    FileMetaData metadata = new FileMetaData(1, List.of(root), 1, List.of(rowGroup));
    Util.writeFileMetaData(metadata, out, encryptor, AesCipher.createFooterAAD(FILE_AAD));
    out.writeBytes(Fuzz.littleEndian(out.size() - footerStart));
    out.writeBytes(MAGIC);
    return new EncryptedFile("parquet", out.toByteArray(), new Keys(KEY, PREFIX));
  }

  private static PageHeader header(Fuzz round, int length) {
    PageHeader header = new PageHeader(PageType.DATA_PAGE, 100, wrong(round, length));
    if (round.random().nextInt(4) == 0) {
      header.setType(PageType.DATA_PAGE_V2);
      header.setData_page_header_v2(
          new DataPageHeaderV2(1, 0, 1, Encoding.PLAIN, round.number(), round.number()));
    } else {
      header.setData_page_header(new DataPageHeader(1, Encoding.PLAIN, Encoding.RLE, Encoding.RLE));
    }

    return header;
  }

  private static ColumnChunk chunk(Fuzz round, int length) {
    ColumnMetaData metadata =
        new ColumnMetaData(
            Type.INT64,
            List.of(Encoding.PLAIN),
            List.of("c"),
            CompressionCodec.UNCOMPRESSED,
            1,
            length,
            wrong(round, length),
            wrong(round, 4));
    if (round.random().nextInt(20) == 0) {
      metadata.setDictionary_page_offset(round.number());
    }

    if (round.random().nextInt(20) == 0) {
      metadata.setBloom_filter_offset(wrong(round, 4 + length));
    }

    ColumnChunk chunk = new ColumnChunk(0);
    chunk.setMeta_data(metadata);
    chunk.setCrypto_metadata(
        ColumnCryptoMetaData.ENCRYPTION_WITH_FOOTER_KEY(new EncryptionWithFooterKey()));
    if (round.random().nextInt(20) == 0) {
      chunk.setColumn_index_offset(wrong(round, 4 + length));
      chunk.setColumn_index_length(round.number());
    }

    return chunk;
  }

  private static FileCryptoMetaData crypto() {
    AesGcmV1 algorithm = new AesGcmV1();
    algorithm.setAad_file_unique(UNIQUE);
    algorithm.setSupply_aad_prefix(true);
    return new FileCryptoMetaData(EncryptionAlgorithm.AES_GCM_V1(algorithm));
  }

  private static byte[] aad(ModuleType type) {
    return AesCipher.createModuleAAD(FILE_AAD, type, 0, 0, 0);
  }

  private static int wrong(Fuzz round, int right) {
    return round.random().nextInt(6) == 0 ? round.number() : right;
  }
}
