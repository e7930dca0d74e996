package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.cipher.AesGcm;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.SettingsGuard;
import io.icebergcrypto.parquet.tables.ColumnChoices;
import io.icebergcrypto.parquet.tables.DeltaStatistics;
import io.icebergcrypto.parquet.tables.HudiTable;
import io.icebergcrypto.parquet.tables.KeyFiles;
import io.icebergcrypto.parquet.tables.TableFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.crypto.DecryptionKeyRetriever;
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
  /** The setting that says whether files without any key are read. */
  public static final String PLAINTEXT_READS = ParquetSettings.PLAINTEXT_READS;

  private final PropertiesDrivenCryptoFactory parquets = new PropertiesDrivenCryptoFactory();

  /** The extension of Spark SQL that checks writes before they begin. */
  private static final String CHECKS = "io.icebergcrypto.spark.parquet.ParquetWrites";

  /**
   * Reads settings.
   *
   * @throws InvalidConfigurationException when a name or a value means nothing
   */
  public static ColumnChoices choices(Configuration hadoop) {
    return new ParquetSettings(hadoop).choices();
  }

  /**
   * Settings of a write into a table, of which those that the session sets itself count where they
   * are stricter: whoever may alter the table could turn encryption off.
   *
   * @param ofTable with the options that the table has
   * @return the table's if none is laxer
   */
  public static Configuration stricter(Configuration ofTable, Configuration session) {
    List<String> strict = new ArrayList<>();
    if (isSet(session)) {
      ParquetSettings own = new ParquetSettings(session);
      if (!own.plaintextWrites()) {
        strict.add(ParquetSettings.PLAINTEXT_WRITES);
      }

      if (own.requireIntegrity()) {
        strict.add(ParquetSettings.REQUIRE_INTEGRITY);
      }
    }

    return SessionProperties.withOwn(ofTable, session, strict);
  }

  /** Whether files without any key are read. */
  public static boolean readsPlaintext(Configuration hadoop) {
    return !isSet(hadoop) || new ParquetSettings(hadoop).plaintextReads();
  }

  /** Parquet makes one for each file. */
  public ParquetCryptoFactory() {
    AesGcm.prepare();
  }

  /**
   * Checks what would be written into a folder, and that the KMS wraps with its keys, if this
   * factory is the one that is set.
   *
   * @param schema of the files
   * @throws InvalidConfigurationException when keys are named, and no factory is set
   * @throws IcebergCryptoException the error that writing a file would have
   */
  public static void check(Configuration hadoop, Path folder, MessageType schema) {
    ParquetSettings.checkFactory(hadoop, "the Parquet files in " + folder);
    if (isSet(hadoop)) {
      Configuration own = new Configuration(hadoop);
      own.unset(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME); // or there would be a file
      ParquetSettings settings = new ParquetSettings(own);
      new ParquetCryptoFactory().encrypted(settings, folder, new WriteContext(schema, Map.of()));
    }
  }

  /**
   * Checks what needs no columns, of a write that has a session's settings alone.
   *
   * @param target what is written, for errors
   * @throws InvalidConfigurationException when a property is misspelt or wrong, or keys are named,
   *     and no factory is set
   */
  public static void checkSession(Configuration hadoop, String target) {
    ParquetSettings.checkFactory(hadoop, target);
    if (isSet(hadoop)) {
      new ParquetSettings(hadoop); // checks names and values
    }
  }

  /** Whether this factory is the one that is set. */
  public static boolean isSet(Configuration hadoop) {
    return ParquetCryptoFactory.class.getName().equals(hadoop.getTrimmed(ParquetSettings.FACTORY));
  }

  /**
   * Makes the keys of a new file, wrapped by the KMS.
   *
   * @return null for a plaintext file, where the settings allow it
   * @throws PlaintextException when no key is named, and plaintext is not allowed
   * @throws InvalidConfigurationException when a property is misspelt or wrong, a column is not in
   *     the file, or there is no KMS
   * @throws NotSupportedException when the settings would leave a part of the file in plaintext, or
   *     a program writes that is not known to keep no values beside the file
   * @throws IcebergCryptoException the KMS's own typed error when a key cannot be used
   */
  @Override
  public FileEncryptionProperties getFileEncryptionProperties(
      Configuration hadoop, Path file, WriteContext context) {
    ParquetSettings settings = new ParquetSettings(hadoop);
    TableFormat.calling().ifPresent(format -> check(format, settings.choices(), file, hadoop));
    return encrypted(settings, file, context);
  }

  /** The last look at what a program keeps beside its files, in any session. */
  private static void check(
      TableFormat format, ColumnChoices chosen, Path file, Configuration hadoop) {
    if (format == TableFormat.DELTA) {
      Map<String, String> deciding = DeltaStatistics.deciding(hadoop);
      SettingsGuard.ALL.forEach(
          guard -> guard.checkStored(format.label(), deciding, DeltaStatistics::decides));
    }

    if (!chosen.namesKeys()) {
      return;
    }

    switch (format) {
      case HUDI -> HudiTable.checkWrite(file, chosen, hadoop);
      case HIVE -> KeyFiles.check(chosen, String.valueOf(file), format.label());
      case DELTA -> {
        KeyFiles.check(chosen, String.valueOf(file), format.label());
        if (file == null || FileKind.ofPath(file.toString()) != FileKind.DELTA_LOG) {
          DeltaStatistics.checkWrite(file, chosen, hadoop, CHECKS);
        }
      }
      default ->
          throw new NotSupportedException(
              String.format(
                  "%s is about to write %s, which would have column keys; their values that %s"
                      + " keeps elsewhere would be plaintext",
                  format.label(), file, format.label()),
              "Write it without "
                  + ParquetSettings.FACTORY
                  + ", or as an encrypted Iceberg table. Nothing was written.");
    }
  }

  private FileEncryptionProperties encrypted(
      ParquetSettings given, Path file, WriteContext context) {
    ParquetSettings settings = given;
    settings.checkSummaries(); // of files that are in the folder, too
    if (file != null && FileKind.ofPath(file.toString()) != FileKind.FILE) {
      settings = settings.forOther(context.getSchema());
    }

    if (!settings.namesKeys()) {
      if (settings.plaintextWrites()) {
        return null;
      }

      throw new PlaintextException(
          String.format("%s would be plaintext: no key is named for it", file),
          String.format(
              "Set %s, or %s and %s, for the session or as options of the write. To write"
                  + " plaintext, set %s=allow as an option of that write; into a table that exists,"
                  + " in a session of its own (spark.newSession()).",
              PropertiesDrivenCryptoFactory.UNIFORM_KEY_PROPERTY_NAME,
              PropertiesDrivenCryptoFactory.FOOTER_KEY_PROPERTY_NAME,
              PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME,
              ParquetSettings.PLAINTEXT_WRITES));
    }

    settings.checkKms();
    settings.checkIntegrity();
    settings.checkPages();
    if (file == null && settings.keysBeside()) {
      throw new NotSupportedException(
          "Parquet that is written into another file, as Hudi's log blocks are, has no place beside"
              + " it for wrapped keys",
          String.format(
              "Leave %s out: they are then in the file.",
              KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME));
    }

    if (settings.keysBeside()) {
      KeyFiles.checkPlace(file, settings.forParquet());
    }

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
            "This version of Parquet did not accept the column's key. " + notWritten(file));
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
   * @throws PlaintextException when the file is plaintext, and such files are not to be read
   */
  @Override
  public FileDecryptionProperties getFileDecryptionProperties(Configuration hadoop, Path file) {
    ParquetSettings settings = new ParquetSettings(hadoop);
    if (!settings.plaintextReads()) {
      refusePlaintext(hadoop, file);
    }

    DecryptionKeyRetriever keys = keys(settings, file);
    DecryptionKeyRetriever checked =
        metadata -> {
          TableFormat.checkRead(file, settings.hudiPlaintext());
          return keys.getKey(metadata);
        };
    FileDecryptionProperties.Builder own =
        FileDecryptionProperties.builder()
            .withKeyRetriever(
                new KeysOfFile(checked, file, metadata -> columns(hadoop, file, metadata)));
    return settings.plaintextReads() ? own.withPlaintextFilesAllowed().build() : own.build();
  }

  /** Keys as Parquet's key tools find them. One that does not open is asked for again. */
  static DecryptionKeyRetriever keys(ParquetSettings settings, Path file) {
    Supplier<DecryptionKeyRetriever> fresh =
        () ->
            new PropertiesDrivenCryptoFactory()
                .getFileDecryptionProperties(settings.forParquet(), file)
                .getKeyRetriever();
    DecryptionKeyRetriever found = fresh.get();
    return metadata -> {
      try {
        return found.getKey(metadata);
      } catch (RuntimeException e) {
        if (!Evidence.isOfParquet(e)) {
          throw e;
        }

        return CacheScope.leave(settings.scope(), () -> fresh.get().getKey(metadata));
      }
    };
  }

  /**
   * Does something with the keys of a session and, if that finds bytes that were changed, again
   * with the keys that the KMS returns then.
   *
   * @param hadoop has the KMS's settings
   * @throws TamperedException when it is found both times
   */
  public static <T> T checked(Configuration hadoop, Supplier<T> call) {
    try {
      return call.get();
    } catch (TamperedException e) {
      return CacheScope.leave(new ParquetSettings(hadoop).scope(), call);
    }
  }

  /** The keys of a file, for who looks at the file itself: errors name no column. */
  public DecryptionKeyRetriever keysOf(Configuration hadoop, Path file) {
    return new KeysOfFile(keys(new ParquetSettings(hadoop), file), file, metadata -> List.of());
  }

  /**
   * The columns of a file that have keys of their own under the same master key; none when they
   * cannot be told, as when the footer's key is the one that cannot be had.
   */
  private static List<String> columns(Configuration hadoop, Path file, byte[] keyMetadata) {
    try {
      FileIO io = new HadoopFileIO(hadoop);
      String location = file.toString();
      String keyId = new MaterialInFile(io, location).masterKey(keyMetadata);
      FileProtection found = new ProtectionReader(io, hadoop).read(io.newInputFile(location));
      return keyId == null || found == null || found.columns() == null
          ? List.of()
          : found.columns().stream()
              .filter(column -> keyId.equals(column.keyId()))
              .filter(column -> column.protectedBy() == FileProtection.By.COLUMN_KEY)
              .map(FileProtection.Column::name)
              .toList();
    } catch (RuntimeException e) {
      return List.of(); // the error is about the key
    }
  }

  /** Parquet refuses it, too, with an error that names nothing. */
  private static void refusePlaintext(Configuration hadoop, Path file) {
    if (isPlaintext(hadoop, file)) {
      throw new PlaintextException(
          file + " has no key: it is plaintext",
          String.format(
              "It was written by a client without keys, or put in place of an encrypted file. Find"
                  + " out who wrote it; to read it anyway, set %s=allow for this read.",
              ParquetSettings.PLAINTEXT_READS));
    }
  }

  private static boolean isPlaintext(Configuration hadoop, Path file) {
    try {
      FileIO io = new HadoopFileIO(hadoop);
      InputFile stored = io.newInputFile(file.toString());
      return FileInspector.magic(stored) == FileMagic.PAR1
          && new ProtectionReader(io, hadoop).read(stored) == null;
    } catch (RuntimeException e) {
      return false; // Parquet says what is wrong with it
    }
  }
}
