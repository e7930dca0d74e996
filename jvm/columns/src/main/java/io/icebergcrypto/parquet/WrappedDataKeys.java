package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.KmsProperties;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;

/**
 * Data keys for files of other formats, wrapped as Parquet's key tools wrap those of Parquet files:
 * key material of type PKMT1, in JSON. Each data key is wrapped by a key encryption key, which the
 * KMS wraps with a master key. Parquet keeps key encryption keys for the cache's time to live, so
 * that the KMS is asked once for each master key, and not for each file and column.
 */
public final class WrappedDataKeys {
  private static final Path NO_FILE = new Path("/");

  private final Configuration kms;

  /**
   * Data keys under the master keys of one KMS.
   *
   * @param hadoop has the KMS's settings below {@link KmsProperties#HADOOP_PREFIX}; nothing else of
   *     it counts
   */
  public WrappedDataKeys(Configuration hadoop) {
    this.kms = new Configuration(false);
    hadoop
        .getPropsWithPrefix(KmsProperties.HADOOP_PREFIX)
        .forEach(
            (name, value) -> {
              if (name.startsWith("encryption.") || KmsProperties.isOfKms(name)) {
                kms.set(KmsProperties.HADOOP_PREFIX + name, value);
              }
            });
  }

  /**
   * A new data key.
   *
   * @param key the key itself
   * @param wrapped the key material, for the file
   */
  public record DataKey(byte[] key, byte[] wrapped) {}

  /** A hash of the settings: those with the same one share keys. */
  public String scope() {
    return CacheScope.of(kms.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX));
  }

  /**
   * Has a master key wrap and unwrap a trial key.
   *
   * @throws IcebergCryptoException the KMS's own typed error when the master key cannot be used
   */
  public void check(String masterKeyId) {
    Map<String, String> properties = kms.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX);
    ParquetKmsClient.check(
        AllowedKeyIds.parse(properties.get(EncryptionProperties.ALLOWED_KEY_IDS)), masterKeyId);
    KmsClients.shared(properties).check(masterKeyId);
  }

  /**
   * Makes a random key.
   *
   * @param bits its length: 128, 192 or 256; that of its key encryption key is the same
   * @throws IcebergCryptoException the KMS's own typed error when the master key cannot be used
   */
  public DataKey create(String masterKeyId, int bits) {
    Configuration own = new Configuration(kms);
    own.set(
        PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME,
        ParquetKmsClient.escaped(masterKeyId));
    own.setInt(KeyToolkit.DATA_KEY_LENGTH_PROPERTY_NAME, bits);
    own.setInt(KeyToolkit.KEK_LENGTH_PROPERTY_NAME, bits);
    try {
      FileEncryptionProperties made =
          new PropertiesDrivenCryptoFactory()
              .getFileEncryptionProperties(
                  new ParquetSettings(own).forParquet(), NO_FILE, /* fileWriteContext= */ null);
      return new DataKey(made.getFooterKey(), made.getFooterKeyMetadata());
    } catch (ParquetCryptoRuntimeException e) {
      throw typed(masterKeyId, e);
    }
  }

  /**
   * Unwraps a key.
   *
   * @param wrapped what {@link #create} gave, from a file
   * @throws TamperedException when it is not, or is under another master key
   * @throws IcebergCryptoException the KMS's own typed error when the master key cannot be used
   */
  public byte[] open(String masterKeyId, byte[] wrapped) {
    String told = new MaterialInFile(null, null).masterKey(wrapped);
    if (!masterKeyId.equals(told)) {
      throw damaged(
          masterKeyId, told == null ? "it cannot be read" : "it is under '" + told + "'", null);
    }

    try {
      return ParquetCryptoFactory.keys(new ParquetSettings(kms), NO_FILE).getKey(wrapped);
    } catch (RuntimeException e) {
      throw typed(masterKeyId, e);
    }
  }

  private static IcebergCryptoException typed(String masterKeyId, RuntimeException error) {
    return Causes.typed(error)
        .orElseGet(() -> damaged(masterKeyId, "it does not lead to a key", error));
  }

  private static IcebergCryptoException damaged(String masterKeyId, String what, Exception cause) {
    String problem =
        String.format("A key said to be wrapped by key '%s' is not valid: %s", masterKeyId, what);
    String hint =
        "The file's key material was damaged or forged, or another program wrote it: read the file"
            + " with that one, or restore it from a backup.";
    return Evidence.isOfParquet(cause)
        ? new TamperedException(problem, hint, cause)
        : new IcebergCryptoException(problem, hint, cause);
  }
}
