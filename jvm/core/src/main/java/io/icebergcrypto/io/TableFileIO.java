package io.icebergcrypto.io;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.metadata.Listing;
import io.icebergcrypto.metadata.forwarding.ForwardingFileIO;
import java.nio.ByteBuffer;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.io.DelegateFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * An encrypted table's FileIO. Iceberg's decrypts all files but manifest lists: their keys are in
 * the metadata's {@code encryption-keys}, which the table's manager learns while others read, so it
 * decrypts them under its lock. Where a key was removed or exchanged, Iceberg throws a
 * NullPointerException or a bare "GCM tag check failed"; here the error says what is wrong.
 *
 * <p>Where Spark uses Kryo, the annotation leaves this class to Java's serialization: Kryo does not
 * know {@code writeReplace}. Without Kryo on the class path the JVM ignores it.
 */
@DefaultSerializer(TableFileIO.AsJava.class)
public class TableFileIO implements ForwardingFileIO {
  private static final long serialVersionUID = 1L;

  private final EncryptingFileIO io;

  private TableFileIO(EncryptingFileIO io) {
    this.io = io;
  }

  @Override
  public FileIO under() {
    return io;
  }

  /** The FileIO of a table, which refuses plaintext files as far as its catalog's settings say. */
  public static FileIO guarded(
      FileIO storage, TableEncryptionManager manager, CatalogSettings settings) {
    PlaintextGuard guard =
        new PlaintextGuard(
            manager.tableName(),
            storage,
            settings.plaintextFiles(),
            settings.filesWithoutLength(),
            settings.statistics(),
            new StatisticsFiles(manager));
    return combine(storage, guard, manager);
  }

  /** The FileIO of a table for an audit, which reads what the table's own refuses. */
  public static FileIO unguarded(FileIO storage, TableEncryptionManager manager) {
    PlaintextGuard open =
        new PlaintextGuard(
            manager.tableName(), storage, true, true, StatisticsPolicy.PLAINTEXT, null);
    return combine(storage, open, manager);
  }

  /**
   * Makes the FileIO of a table.
   *
   * @param storage returns stored bytes, and lists and deletes whole folders and many files at once
   * @param guarded the storage for single files, which may refuse plaintext files
   */
  static FileIO combine(FileIO storage, FileIO guarded, TableEncryptionManager manager) {
    EncryptingFileIO io = EncryptingFileIO.combine(guarded, manager);
    if (storage instanceof SupportsPrefixOperations prefixes) {
      return storage instanceof SupportsBulkOperations bulk
          ? new WithDelegate(io, prefixes, bulk)
          : new WithPrefix(io, prefixes);
    }

    return storage instanceof SupportsBulkOperations bulk
        ? new WithBulk(io, bulk)
        : new TableFileIO(io);
  }

  /** The storage below a FileIO of Iceberg's that decrypts; any other FileIO is its own. */
  public static FileIO storageBelow(FileIO io) {
    return io instanceof EncryptingFileIO
        ? EncryptingFileIO.combine(io, PlaintextEncryptionManager.instance())
        : io;
  }

  /**
   * The storage below one of these that lists whole folders: of the class that the catalog has.
   *
   * @return the FileIO itself when it is not one of these
   */
  public static FileIO listed(FileIO io) {
    return io instanceof WithPrefix tableIO ? tableIO.prefixes : io;
  }

  /**
   * Opens a manifest list.
   *
   * @throws TamperedException when the metadata has no key for it, or a wrong one
   */
  @Override
  public InputFile newInputFile(ManifestListFile list) {
    if (list.encryptionKeyID() == null) {
      return io.newInputFile(list);
    }

    ByteBuffer keyMetadata = keyMetadata(list);
    return io.newDecryptingInputFile(list.location(), keyMetadata); // what fails is the storage
  }

  /**
   * The plaintext key metadata of a manifest list, or of a statistics file, whose entry in the
   * metadata is alike. It is a secret.
   *
   * @throws TamperedException when the metadata has no key for it, or a wrong one
   */
  public ByteBuffer keyMetadata(ManifestListFile list) {
    try {
      return manager().decryptKeyMetadata(list);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw unreadable(list, e);
    }
  }

  private RuntimeException unreadable(ManifestListFile list, RuntimeException e) {
    if (knows(list) && !Evidence.isWrongTag(e)) {
      return e; // the KMS client's
    }

    return new TamperedException(
            knows(list) ? ProblemCode.TAMPERED : ProblemCode.NO_KEY,
            String.format("manifest list %s cannot be read: %s", list.location(), problem(list)),
            "Load the table again: its metadata may be older than the snapshot. If that does not"
                + " help, encryption-keys was edited or replaced, in the storage, by the catalog's"
                + " server or by another client: restore that metadata file from a backup or an"
                + " object version. No row was returned.",
            e)
        .inTable(manager().tableName());
  }

  private boolean knows(ManifestListFile list) {
    EncryptedKey key = key(list.encryptionKeyID());
    return key != null && key(key.encryptedById()) != null;
  }

  private String problem(ManifestListFile list) {
    EncryptedKey key = key(list.encryptionKeyID());
    if (key == null) {
      return String.format("its key %s is not in encryption-keys", list.encryptionKeyID());
    }

    return key(key.encryptedById()) == null
        ? String.format(
            "the KEK %s of its key %s is not in encryption-keys", key.encryptedById(), key.keyId())
        : String.format(
            "its key %s in encryption-keys does not decrypt with KEK %s: one of them was changed",
            key.keyId(), key.encryptedById());
  }

  private EncryptedKey key(String id) {
    return manager().key(id);
  }

  /** Iceberg's FileIO has it: in a field here it would travel to executors a second time. */
  private TableEncryptionManager manager() {
    return (TableEncryptionManager) io.encryptionManager();
  }

  @Override
  public InputFile newInputFile(String path) {
    return io.newInputFile(path);
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return io.newInputFile(path, length);
  }

  @Override
  public InputFile newInputFile(DataFile file) {
    return io.newInputFile(file);
  }

  @Override
  public InputFile newInputFile(DeleteFile file) {
    return io.newInputFile(file);
  }

  @Override
  public InputFile newInputFile(ManifestFile manifest) {
    InputFile file = io.newInputFile(manifest);
    return manifest.keyMetadata() == null && StagedManifests.isNamed(manifest.path())
        ? StagedManifests.decrypted(manager(), file)
        : file;
  }

  @Override
  public OutputFile newOutputFile(String path) {
    OutputFile file = io.newOutputFile(path);
    return StagedManifests.isNamed(path)
        ? StagedManifests.encrypted(manager().newest(), file)
        : file;
  }

  /**
   * Java's serialization for Kryo. One serializer for all classes, and so one stream for all
   * objects of a graph: the manager, which a table has itself and in its FileIO, travels once.
   */
  public static final class AsJava extends Serializer<Object> {
    private static final JavaSerializer ONE = new JavaSerializer();

    @Override
    public void write(Kryo kryo, Output output, Object object) {
      ONE.write(kryo, output, object);
    }

    @Override
    public Object read(Kryo kryo, Input input, Class<Object> type) {
      return ONE.read(kryo, input, type);
    }
  }

  @DefaultSerializer(TableFileIO.AsJava.class)
  private static class WithPrefix extends TableFileIO implements SupportsPrefixOperations {
    private static final long serialVersionUID = 1L;

    private final SupportsPrefixOperations prefixes;

    private WithPrefix(EncryptingFileIO io, SupportsPrefixOperations prefixes) {
      super(io);
      this.prefixes = prefixes;
    }

    @Override
    public Iterable<FileInfo> listPrefix(String prefix) {
      return Listing.ofLocations(prefixes, prefix);
    }

    @Override
    public void deletePrefix(String prefix) {
      prefixes.deletePrefix(prefix);
    }
  }

  @DefaultSerializer(TableFileIO.AsJava.class)
  private static final class WithDelegate extends WithPrefix implements DelegateFileIO {
    private static final long serialVersionUID = 1L;

    private final SupportsBulkOperations bulk; // the same object, of a user's class perhaps

    private WithDelegate(
        EncryptingFileIO io, SupportsPrefixOperations prefixes, SupportsBulkOperations bulk) {
      super(io, prefixes);
      this.bulk = bulk;
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      bulk.deleteFiles(paths);
    }
  }

  @DefaultSerializer(TableFileIO.AsJava.class)
  private static final class WithBulk extends TableFileIO implements SupportsBulkOperations {
    private static final long serialVersionUID = 1L;

    private final SupportsBulkOperations bulk;

    private WithBulk(EncryptingFileIO io, SupportsBulkOperations bulk) {
      super(io);
      this.bulk = bulk;
    }

    @Override
    public void deleteFiles(Iterable<String> paths) {
      bulk.deleteFiles(paths);
    }
  }
}
