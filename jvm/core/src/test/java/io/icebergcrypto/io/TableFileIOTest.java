package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.testing.XorKms;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.StandardEncryptionManager.FileEncryptionKeys;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.junit.jupiter.api.Test;

/** Manifest lists that cannot be opened, and why. */
class TableFileIOTest {
  private static final String LIST = "hdfs://nameservice1/db/t/metadata/snap-1.avro";

  /** A storage that cannot even make a file, as HDFS where nobody knows the name node. */
  private static final class Away extends InMemoryFileIO {
    private static final long serialVersionUID = 1L;

    private final RuntimeException failure;

    private Away(RuntimeException failure) {
      this.failure = failure;
    }

    @Override
    public InputFile newInputFile(String path) {
      throw failure;
    }
  }

  private final TableEncryptionManager writer = manager(List.of());
  private final FileEncryptionKeys keys =
      writer.registerKeyMetadata(writer.encrypt(new InMemoryOutputFile(LIST)).keyMetadata());
  private final ManifestListFile list = new KeyedFile(LIST, keys.fileKey().keyId());

  private static TableEncryptionManager manager(List<EncryptedKey> keys) {
    return new TableEncryptionManager("lake.db.t", keys, "k1", 16, new XorKms());
  }

  private FileIO io(RuntimeException failure, EncryptedKey... metadata) {
    FileIO storage = new Away(failure);
    return TableFileIO.combine(storage, storage, manager(List.of(metadata)));
  }

  @Test
  void aStorageThatFailsIsNoTampering() {
    for (RuntimeException failure :
        List.of(
            new IllegalArgumentException(new UnknownHostException("nameservice1")),
            new IllegalStateException("Connection pool shut down"))) {
      FileIO io = io(failure, keys.keyEncryptionKey(), keys.fileKey());
      assertThatThrownBy(() -> io.newInputFile(list)).isSameAs(failure);
    }
  }

  @Test
  void aKeyThatIsGoneOrExchangedIsNoFailureOfTheStorage() {
    RuntimeException failure = new IllegalStateException("not asked");
    assertTampered(
        ProblemCode.NO_KEY, io(failure, keys.keyEncryptionKey()), "is not in encryption-keys");
    assertTampered(ProblemCode.NO_KEY, io(failure, keys.fileKey()), "the KEK");
    EncryptedKey key = keys.fileKey();
    for (int length : new int[] {28, 100}) {
      EncryptedKey other =
          new BaseEncryptedKey(
              key.keyId(), ByteBuffer.allocate(length), key.encryptedById(), key.properties());
      assertTampered(
          ProblemCode.TAMPERED, io(failure, keys.keyEncryptionKey(), other), "does not decrypt");
    }
  }

  private void assertTampered(ProblemCode code, FileIO io, String words) {
    assertThatThrownBy(() -> io.newInputFile(list))
        .isInstanceOfSatisfying(TamperedException.class, e -> assertThat(e.code()).isEqualTo(code))
        .hasMessageContainingAll("lake.db.t", LIST, words, "hint:");
  }
}
