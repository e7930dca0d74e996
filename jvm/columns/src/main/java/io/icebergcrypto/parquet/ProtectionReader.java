package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.parquet.FileProtection.By;
import io.icebergcrypto.parquet.FileProtection.Column;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesCipher;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesMode;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory;
import org.apache.iceberg.shaded.org.apache.parquet.format.ColumnChunk;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.RowGroup;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;

/**
 * Reads from Parquet files how they are protected (Parquet modular encryption, section 5). A
 * plaintext footer tells it without a key; an encrypted one tells the algorithm and its own master
 * key, and the rest with the session's KMS.
 *
 * @param hadoop has the KMS's settings below {@link KmsProperties#HADOOP_PREFIX}; without them,
 *     encrypted footers stay closed
 */
public record ProtectionReader(FileIO io, Configuration hadoop) {
  private static final int TAIL = 8;
  private static final int MAX_FOOTER = 256 << 20;

  private record Footer(boolean encrypted, byte[] bytes) {}

  /**
   * Reads a file's footer.
   *
   * @return null when the file is not a Parquet file with keys of Parquet's key tools: plaintext,
   *     or one of Iceberg's, which have no key metadata
   * @throws TamperedException when the footer's tag does not match its key
   * @throws IcebergCryptoException when the file or its key cannot be read for another reason
   */
  public FileProtection read(InputFile file) {
    return ParquetCryptoFactory.checked(hadoop, () -> look(file));
  }

  private FileProtection look(InputFile file) {
    String location = file.location();
    Footer footer = stored(file);
    if (footer == null) {
      return null;
    }

    try {
      MaterialInFile material = new MaterialInFile(io, location);
      return footer.encrypted
          ? closed(footer.bytes, location, material)
          : open(footer.bytes, material);
    } catch (IOException e) {
      throw PageCheck.notUnderstood(location, "its footer does not parse", e);
    }
  }

  /** Null: it is not a Parquet file. */
  private static Footer stored(InputFile file) {
    String location = file.location();
    try (SeekableInputStream in = file.newStream()) {
      long length = file.getLength();
      if (length < TAIL + 4) {
        return null;
      }

      byte[] tail = bytes(in, length - TAIL, TAIL);
      String magic = new String(tail, 4, 4, StandardCharsets.US_ASCII);
      if (!magic.equals("PARE") && !magic.equals("PAR1")) {
        return null;
      }

      int size = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt();
      if (size <= 0 || size > length - TAIL - 4 || size > MAX_FOOTER) {
        throw PageCheck.notUnderstood(
            location, "its last bytes give a footer of " + size + " bytes", null);
      }

      return new Footer(magic.equals("PARE"), bytes(in, length - TAIL - size, size));
    } catch (IOException | UncheckedIOException e) {
      throw PageCheck.notRead(location, e);
    }
  }

  private static byte[] bytes(SeekableInputStream in, long position, int count) throws IOException {
    byte[] bytes = new byte[count];
    in.seek(position);
    IOUtil.readFully(in, bytes, 0, count);
    return bytes;
  }

  private static FileProtection open(byte[] footer, MaterialInFile material) throws IOException {
    FileMetaData metadata = Util.readFileMetaData(new ByteArrayInputStream(footer));
    if (!metadata.isSetEncryption_algorithm()) {
      return null;
    }

    String footerKey =
        metadata.isSetFooter_signing_key_metadata()
            ? material.masterKey(metadata.getFooter_signing_key_metadata())
            : null;
    return new FileProtection(
        name(metadata.getEncryption_algorithm()),
        false,
        footerKey,
        columns(metadata, footerKey, material),
        null);
  }

  private FileProtection closed(byte[] footer, String location, MaterialInFile material)
      throws IOException {
    ByteArrayInputStream in = new ByteArrayInputStream(footer);
    FileCryptoMetaData crypto = Util.readFileCryptoMetaData(in);
    if (!crypto.isSetKey_metadata()) {
      return null;
    }

    String algorithm = name(crypto.getEncryption_algorithm());
    String footerKey = material.masterKey(crypto.getKey_metadata());
    if (!KmsClients.isConfigured(KmsClients.ofKms(properties()))) {
      String unknown = "its footer is encrypted, and this session has no KMS for Parquet files";
      return new FileProtection(algorithm, true, footerKey, null, unknown);
    }

    byte[] key;
    try {
      key =
          new ParquetCryptoFactory()
              .keysOf(hadoop, new Path(location))
              .getKey(crypto.getKey_metadata());
    } catch (RuntimeException e) {
      return new FileProtection(algorithm, true, footerKey, null, problem(e));
    }

    byte[] aad = AesCipher.createFooterAAD(fileAad(crypto.getEncryption_algorithm(), location));
    try {
      FileMetaData metadata =
          Util.readFileMetaData(in, ModuleCipherFactory.getDecryptor(AesMode.GCM, key), aad);
      return new FileProtection(
          algorithm, true, footerKey, columns(metadata, footerKey, material), null);
    } catch (RuntimeException e) {
      throw PageCheck.changed(location, e);
    }
  }

  private Map<String, String> properties() {
    return hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX);
  }

  private static String problem(RuntimeException error) {
    return Causes.typed(error).map(IcebergCryptoException::problem).orElseGet(error::toString);
  }

  private static String name(EncryptionAlgorithm algorithm) {
    return algorithm.isSetAES_GCM_V1() ? "AES_GCM_V1" : "AES_GCM_CTR_V1";
  }

  /** Parquet's key tools store no AAD prefix elsewhere. */
  private static byte[] fileAad(EncryptionAlgorithm algorithm, String location) {
    boolean gcm = algorithm.isSetAES_GCM_V1();
    byte[] prefix =
        gcm
            ? algorithm.getAES_GCM_V1().getAad_prefix()
            : algorithm.getAES_GCM_CTR_V1().getAad_prefix();
    byte[] unique =
        gcm
            ? algorithm.getAES_GCM_V1().getAad_file_unique()
            : algorithm.getAES_GCM_CTR_V1().getAad_file_unique();
    if (unique == null) {
      throw PageCheck.notUnderstood(location, "it has no identifier", null);
    }

    return prefix == null
        ? unique
        : ByteBuffer.allocate(prefix.length + unique.length).put(prefix).put(unique).array();
  }

  /** The weakest of what a column has in the row groups. */
  private static List<Column> columns(
      FileMetaData metadata, String footerKey, MaterialInFile material) {
    Map<String, Column> found = new LinkedHashMap<>();
    for (RowGroup group : metadata.getRow_groups()) {
      for (ColumnChunk chunk : group.getColumns()) {
        Column column = column(chunk, footerKey, material);
        found.merge(
            column.name(),
            column,
            (a, b) -> a.protectedBy().compareTo(b.protectedBy()) < 0 ? b : a);
      }
    }

    return new ArrayList<>(found.values());
  }

  private static Column column(ColumnChunk chunk, String footerKey, MaterialInFile material) {
    if (chunk.isSetCrypto_metadata()
        && chunk.getCrypto_metadata().isSetENCRYPTION_WITH_COLUMN_KEY()) {
      var crypto = chunk.getCrypto_metadata().getENCRYPTION_WITH_COLUMN_KEY();
      String keyId =
          crypto.isSetKey_metadata() ? material.masterKey(crypto.getKey_metadata()) : null;
      return new Column(String.join(".", crypto.getPath_in_schema()), By.COLUMN_KEY, keyId, null);
    }

    String name = String.join(".", chunk.getMeta_data().getPath_in_schema());
    return chunk.isSetCrypto_metadata()
        ? new Column(name, By.FOOTER_KEY, footerKey, null)
        : new Column(name, By.NOTHING, null, null);
  }
}
