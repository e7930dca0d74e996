package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.kms.call.Causes;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.crypto.DecryptionPropertiesFactory;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.schema.MessageType;

/**
 * Parquet's own factory of keys ({@code parquet.crypto.factory.class}), {@link
 * PropertiesDrivenCryptoFactory}, with checks in front of it: where that one would write plaintext,
 * or leave a column without its key, this one refuses before the file has a byte. Files are as
 * Parquet's own makes them, and either reads what the other wrote.
 */
public final class ParquetCryptoFactory
    implements EncryptionPropertiesFactory, DecryptionPropertiesFactory {
  private final PropertiesDrivenCryptoFactory parquets = new PropertiesDrivenCryptoFactory();

  /** Parquet makes one for each file. */
  public ParquetCryptoFactory() {}

  /**
   * Checks what would be written into a folder, and that the KMS wraps with its keys, if this
   * factory is the one that is set.
   *
   * @param schema of the files
   * @throws IcebergCryptoException the error that writing a file would have
   */
  public static void check(Configuration hadoop, Path folder, MessageType schema) {
    String factory =
        hadoop.getTrimmed(EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME);
    if (ParquetCryptoFactory.class.getName().equals(factory)) {
      Configuration own = new Configuration(hadoop);
      own.unset(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME); // or there would be a file
      new ParquetCryptoFactory()
          .getFileEncryptionProperties(own, folder, new WriteContext(schema, Map.of()));
    }
  }

  /**
   * Makes the keys of a new file, wrapped by the KMS.
   *
   * @return null for a plaintext file, where the settings allow it
   * @throws PlaintextException when no key is named, and plaintext is not allowed
   * @throws InvalidConfigurationException when a property is misspelt or wrong, or a column is not
   *     in the file
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  @Override
  public FileEncryptionProperties getFileEncryptionProperties(
      Configuration hadoop, Path file, WriteContext context) {
    ParquetSettings settings = new ParquetSettings(hadoop);
    if (!settings.namesKeys()) {
      if (settings.plaintextWrites()) {
        return null;
      }

      throw new PlaintextException(
          String.format("%s would be plaintext: no key is named for it", file),
          String.format(
              "Set %s, or %s and %s, for the session or as options of the write. To write"
                  + " plaintext, set %s=allow as an option of that write.",
              PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME,
              PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME,
              PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME,
              ParquetSettings.PLAINTEXT_WRITES));
    }

    settings.checkIntegrity();
    MessageType schema = context.getSchema();
    ColumnKeys columns = settings.columnsIn(schema);
    FileEncryptionProperties made = make(settings, columns, file, context);
    if (settings.complete() && !plaintextColumns(made, schema).isEmpty()) {
      // before 1.14, Parquet does not know that property
      made = make(settings, settings.allColumnsIn(schema), file, context);
    }

    check(made, columns, settings.complete(), schema, file);
    return made;
  }

  private FileEncryptionProperties make(
      ParquetSettings settings, ColumnKeys columns, Path file, WriteContext context) {
    try {
      return parquets.getFileEncryptionProperties(settings.forParquet(columns), file, context);
    } catch (ParquetCryptoRuntimeException e) {
      throw typed(e, file);
    }
  }

  private static IcebergCryptoException typed(ParquetCryptoRuntimeException error, Path file) {
    return Causes.typed(error)
        .map(cause -> cause.withHint(notWritten(file)))
        .orElseGet(
            () ->
                new InvalidConfigurationException(
                    "The keys of a Parquet file do not fit: " + error.getMessage(),
                    "See docs/parquet-columns.md for the properties. " + notWritten(file),
                    error));
  }

  private static String notWritten(Path file) {
    return "Nothing was written to " + file + ".";
  }

  /** What was asked for is what was made: the last look before data is written. */
  private static void check(
      FileEncryptionProperties made,
      ColumnKeys columns,
      boolean complete,
      MessageType schema,
      Path file) {
    List<String[]> plaintext = made == null ? schema.getPaths() : plaintextColumns(made, schema);
    for (String[] path : plaintext) {
      if (complete || columns.has(path)) {
        throw new PlaintextException(
            String.format("Column '%s' of %s would be plaintext", String.join(".", path), file),
            "This version of Parquet did not take the column's key. " + notWritten(file));
      }
    }
  }

  private static List<String[]> plaintextColumns(
      FileEncryptionProperties made, MessageType schema) {
    return schema.getColumns().stream()
        .map(ColumnDescriptor::getPath)
        .filter(path -> !made.getColumnProperties(ColumnPath.get(path)).isEncrypted())
        .toList();
  }

  /**
   * Finds the keys of a file when they are needed: a column whose key may not be used hinders
   * nobody who does not read it.
   *
   * @throws InvalidConfigurationException when a property is misspelt or wrong
   */
  @Override
  public FileDecryptionProperties getFileDecryptionProperties(Configuration hadoop, Path file) {
    ParquetSettings settings = new ParquetSettings(hadoop);
    FileDecryptionProperties parquets =
        this.parquets.getFileDecryptionProperties(settings.forParquet(), file);
    FileDecryptionProperties.Builder own =
        FileDecryptionProperties.builder()
            .withKeyRetriever(new KeysOfFile(parquets.getKeyRetriever(), file));
    return settings.plaintextReads() ? own.withPlaintextFilesAllowed().build() : own.build();
  }
}
