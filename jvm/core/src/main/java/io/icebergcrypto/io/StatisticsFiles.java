package io.icebergcrypto.io;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.io.checked.ExpectedFile;
import io.icebergcrypto.io.stream.EncryptingStream;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Encrypts and decrypts statistics files, which Iceberg opens by path alone: each is one AES GCM
 * stream, regardless of its content. The Iceberg specification keeps the key metadata of such a
 * file in its entry of the table metadata, which Iceberg 1.12 neither reads nor writes. So it is
 * kept where that of manifest lists is: in {@code encryption-keys}, encrypted with a KEK, with the
 * path as a property of the entry. Other readers ignore it.
 */
record StatisticsFiles(TableEncryptionManager manager) {
  // Iceberg's names: <snapshot id>-<UUID>.stats, partition-stats-<snapshot id>-<UUID>.parquet
  private static final Pattern NAME =
      Pattern.compile("(.*/)?([^/]+\\.stats|partition-stats-[^/]+)");

  /** Whether a file is a statistics file, by its name. */
  static boolean isNamed(String path) {
    return NAME.matcher(path).matches();
  }

  /** The refusal on executors, where there is no manager, and so no key. */
  static IcebergCryptoException onDriverOnly(String tableName, String path) {
    return new NotSupportedException(
            String.format("statistics file %s is opened on an executor", path),
            "Encrypted statistics are written and read on the driver only.")
        .inTable(tableName);
  }

  /** The refusal to write a statistics file. */
  static IcebergCryptoException refused(String tableName, String path) {
    return new NotSupportedException(
            String.format("statistics file %s would hold column values in plaintext", path),
            "Set the catalog property encryption.statistics=encrypt, which encrypts them: clients"
                + " without this catalog then plan without them. For compute_table_stats, name"
                + " `columns`: their numbers of distinct values (ndv) stay plaintext in the"
                + " metadata (docs/statistics.md).")
        .inTable(tableName);
  }

  /**
   * A new statistics file. Its key is known to the manager once it is closed, and is committed with
   * the file.
   *
   * @param stored the file in the table's storage
   */
  OutputFile encrypted(OutputFile stored) {
    return new Encrypted(manager, stored);
  }

  /**
   * A statistics file, decrypted.
   *
   * @param path its path in the table's metadata
   * @param stored the file in the table's storage
   * @return null when the table has no key for it
   */
  InputFile decrypted(String path, InputFile stored) {
    EncryptedKey key = manager.statisticsKey(path);
    return key == null ? null : new Decrypted(manager, stored, key.keyId());
  }

  private record Encrypted(TableEncryptionManager manager, OutputFile stored)
      implements OutputFile {
    @Override
    public PositionOutputStream create() {
      return encrypting(stored::create);
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return encrypting(stored::createOrOverwrite);
    }

    private PositionOutputStream encrypting(Supplier<PositionOutputStream> open) {
      NativeEncryptionKeyMetadata key = manager.encryptKeepingKey(stored).keyMetadata();
      return new EncryptingStream(
          open.get(),
          key,
          length -> manager.registerStatistics(location(), key.copyWithLength(length)));
    }

    @Override
    public String location() {
      return stored.location();
    }

    /** The file as stored: after writing, its size is asked for, and that is the stored one. */
    @Override
    public InputFile toInputFile() {
      return stored.toInputFile();
    }
  }

  /**
   * Not a {@link org.apache.iceberg.encryption.NativeEncryptionInputFile}: Parquet would look for
   * its own encryption, which the file does not have.
   */
  private record Decrypted(TableEncryptionManager manager, InputFile under, String keyId)
      implements ForwardingInputFile {
    @Override
    public long getLength() {
      return decrypted().getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      return decrypted().newStream();
    }

    private InputFile decrypted() {
      ByteBuffer keyMetadata;
      try {
        keyMetadata = manager.decryptKeyMetadata(new KeyedFile(location(), keyId));
      } catch (IcebergCryptoException e) {
        throw e;
      } catch (RuntimeException e) {
        ExpectedFile file = new ExpectedFile(manager.tableName(), location(), null);
        throw Evidence.isWrongTag(e)
            ? file.changed("its key in encryption-keys does not decrypt with its KEK")
            : file.unreadableKeyMetadata(null, e);
      }

      return manager.decrypt(EncryptedFiles.encryptedInput(under, keyMetadata));
    }
  }
}
