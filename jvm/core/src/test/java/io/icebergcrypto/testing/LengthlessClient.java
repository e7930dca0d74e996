package io.icebergcrypto.testing;

import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
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
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
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
    return Stub.but(ManifestFile.class, written, Map.of("length", arguments -> content));
  }

  private static final class Operations implements ForwardingOperations {
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
    public TableOperations below() {
      return raw;
    }

    @Override
    public FileIO io() {
      return EncryptingFileIO.combine(raw.io(), manager());
    }

    @Override
    public EncryptionManager encryption() {
      return manager();
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
      NativeEncryptionKeyMetadata noLength = withoutLength(file.keyMetadata());
      return Stub.but(
          NativeEncryptionOutputFile.class, file, Map.of("keyMetadata", arguments -> noLength));
    }

    private static NativeEncryptionKeyMetadata withoutLength(NativeEncryptionKeyMetadata written) {
      return Stub.but(
          NativeEncryptionKeyMetadata.class,
          written,
          Map.of(
              "copyWithLength",
              arguments -> withoutLength(written),
              "copy",
              arguments -> withoutLength(written)));
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
}
