package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.io.checked.ExpectedFile;
import io.icebergcrypto.io.checked.KeyMetadataLengths;
import io.icebergcrypto.io.cipher.AesGcm;
import io.icebergcrypto.kms.KeystoreKmsClient;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.parquet.crypto.DecryptionKeyRetriever;

/** What key metadata says of one file. Secret: it has the file's key. */
public final class FileKey {
  /** Reads key metadata, which asks no KMS: this one has no keystore. */
  private static final StandardEncryptionManager READER =
      new StandardEncryptionManager(List.of(), "none", 16, new KeystoreKmsClient());

  private final byte[] key;
  private final byte[] aadPrefix;
  private final Long length;
  private final DecryptionKeyRetriever parts;

  private FileKey(byte[] key, byte[] aadPrefix, Long length, DecryptionKeyRetriever parts) {
    AesGcm.prepare();
    this.key = key;
    this.aadPrefix = aadPrefix;
    this.length = length;
    this.parts = parts;
  }

  /**
   * The keys of a Parquet file that tells itself where they are, as those of Parquet's key tools
   * do.
   *
   * @param hadoop has the KMS's settings
   */
  public static FileKey inParquet(InputFile file, Configuration hadoop) {
    return new FileKey(
        null, null, null, new ParquetCryptoFactory().keysOf(hadoop, new Path(file.location())));
  }

  /**
   * Reads key metadata.
   *
   * @param file whose it is
   * @param metadata Iceberg's standard key metadata, not encrypted; stays as it is
   * @throws IcebergCryptoException when it is not valid, or of a later version
   */
  public static FileKey of(InputFile file, ByteBuffer metadata) {
    try {
      if (!KeyMetadataLengths.fit(metadata)) {
        throw new IllegalArgumentException("A length in it points past its end");
      }

      NativeEncryptionKeyMetadata read =
          READER.decrypt(EncryptedFiles.encryptedInput(file, metadata.duplicate())).keyMetadata();
      byte[] key = ByteBuffers.toByteArray(read.encryptionKey());
      if (key.length != 16 && key.length != 24 && key.length != 32) {
        throw new IllegalArgumentException("A key of " + key.length + " bytes");
      }

      return new FileKey(key, ByteBuffers.toByteArray(read.aadPrefix()), read.fileLength(), null);
    } catch (RuntimeException e) {
      throw new ExpectedFile(null, "it", null).unreadableKeyMetadata(metadata, e);
    }
  }

  /** The file's length in bytes as stored; null when the key metadata gives none. */
  public Long length() {
    return length;
  }

  /** An AES GCM stream, decrypted while it is read; its length is that of the storage. */
  public InputFile decrypted(InputFile stored) {
    return new AesGcmInputFile(stored, key, aadPrefix, stored.getLength());
  }

  /**
   * The key of a Parquet file's footer.
   *
   * @param keyMetadata that of the file; null: it has none
   */
  byte[] ofFooter(byte[] keyMetadata) {
    return parts == null ? key : parts.getKey(keyMetadata);
  }

  /** Null if it has none. */
  byte[] aadPrefix() {
    return aadPrefix;
  }

  /** Finds the keys of the footer and of columns. Null: the file has one key. */
  DecryptionKeyRetriever parts() {
    return parts;
  }

  @Override
  public String toString() {
    return "the key of a file";
  }
}
