package io.icebergcrypto.testing;

import io.icebergcrypto.format.Ags1Layout;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedInputFile;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.io.OutputFile;

/**
 * A client that writes encrypted tables as iceberg-rust does: its key metadata gives no length, and
 * its manifest lists give the length of a manifest's content.
 */
public final class LengthlessClient {
  private final Table table;

  /**
   * Takes a table.
   *
   * @param stock the table as the catalog behind has it
   * @param kms the KMS client of the table's catalog
   */
  public LengthlessClient(Table stock, KeyManagementClient kms) {
    TableOperations raw = ((BaseTable) stock).operations();
    this.table = new BaseTable(new Operations(raw, kms), stock.name());
  }

  /** The table, to write data files with. */
  public Table table() {
    return table;
  }

  /** Writes and commits one data file with these ids. */
  public void append(long... ids) {
    DataFile file = TestLake.write(table, ids);
    table.newAppend().appendManifest(manifest(file)).commit();
  }

  private ManifestFile manifest(DataFile file) {
    String path = table.location() + "/metadata/" + UUID.randomUUID() + "-m0.avro";
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(
            3, table.spec(), table.encryption().encrypt(table.io().newOutputFile(path)), null);
    try (writer) {
      writer.add(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    ManifestFile written = writer.toManifestFile();
    long content = Ags1Layout.ofLength(written.length(), path).plaintextLength();
    return (ManifestFile)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {ManifestFile.class},
            (proxy, method, args) -> {
              try {
                return method.getName().equals("length") ? content : method.invoke(written, args);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static final class Operations implements TableOperations {
    private final TableOperations raw;
    private final KeyManagementClient kms;
    private TableMetadata seen;
    private Manager manager;

    private Operations(TableOperations raw, KeyManagementClient kms) {
      this.raw = raw;
      this.kms = kms;
    }

    private Manager manager() {
      TableMetadata current = raw.current();
      if (current != seen) {
        this.seen = current;
        this.manager = new Manager(current, kms, raw.io());
      }

      return manager;
    }

    @Override
    public TableMetadata current() {
      return raw.current();
    }

    @Override
    public TableMetadata refresh() {
      return raw.refresh();
    }

    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      raw.commit(base, metadata);
    }

    @Override
    public FileIO io() {
      return EncryptingFileIO.combine(raw.io(), manager());
    }

    @Override
    public EncryptionManager encryption() {
      return manager();
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return raw.metadataFileLocation(fileName);
    }

    @Override
    public LocationProvider locationProvider() {
      return raw.locationProvider();
    }
  }

  private static final class Manager extends StandardEncryptionManager {
    private final transient FileIO storage;

    private Manager(TableMetadata metadata, KeyManagementClient kms, FileIO storage) {
      super(metadata.encryptionKeys(), metadata.properties().get("encryption.key-id"), 16, kms);
      this.storage = storage;
    }

    @Override
    public NativeEncryptionOutputFile encrypt(OutputFile plain) {
      NativeEncryptionOutputFile file = super.encrypt(plain);
      return new NativeEncryptionOutputFile() {
        @Override
        public NativeEncryptionKeyMetadata keyMetadata() {
          return new NoLength(file.keyMetadata());
        }

        @Override
        public OutputFile encryptingOutputFile() {
          return file.encryptingOutputFile();
        }

        @Override
        public OutputFile plainOutputFile() {
          return file.plainOutputFile();
        }

        @Override
        public String location() {
          return file.location();
        }

        @Override
        public org.apache.iceberg.io.PositionOutputStream create() {
          return file.create();
        }

        @Override
        public org.apache.iceberg.io.PositionOutputStream createOrOverwrite() {
          return file.createOrOverwrite();
        }

        @Override
        public InputFile toInputFile() {
          return file.toInputFile();
        }
      };
    }

    /** With the length that the storage gives. */
    @Override
    public NativeEncryptionInputFile decrypt(EncryptedInputFile encrypted) {
      NativeEncryptionKeyMetadata metadata = super.decrypt(encrypted).keyMetadata();
      InputFile stored = storage.newInputFile(encrypted.encryptedInputFile().location());
      return super.decrypt(
          EncryptedFiles.encryptedInput(
              stored, metadata.copyWithLength(stored.getLength()).buffer()));
    }
  }

  private record NoLength(NativeEncryptionKeyMetadata written)
      implements NativeEncryptionKeyMetadata {
    @Override
    public ByteBuffer encryptionKey() {
      return written.encryptionKey();
    }

    @Override
    public ByteBuffer aadPrefix() {
      return written.aadPrefix();
    }

    @Override
    public NativeEncryptionKeyMetadata copyWithLength(long length) {
      return this;
    }

    @Override
    public ByteBuffer buffer() {
      return written.buffer();
    }

    @Override
    public EncryptionKeyMetadata copy() {
      return this;
    }
  }
}
