package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.NoKms;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;

/** Hostile files of an encrypted table, and hostile key metadata. */
class ManagerFuzzTest {
  private final TableEncryptionManager manager =
      new TableEncryptionManager("lake.db.t", List.of(), "k1", 16, new NoKms());
  private final byte[] plain = new byte[700];
  private final byte[] stored;
  private final byte[] keyMetadata;

  ManagerFuzzTest() throws IOException {
    for (int i = 0; i < plain.length; i++) {
      plain[i] = (byte) (i * 31);
    }

    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager.encrypt(target);
    try (PositionOutputStream out = encrypted.encryptingOutputFile().create()) {
      out.write(plain);
    }

    this.stored = target.toByteArray();
    this.keyMetadata =
        encrypted.keyMetadata().copyWithLength(stored.length).buffer().array().clone();
  }

  /** Whatever is in the storage: the very plaintext, or an error of ours. */
  @Test
  void files() {
    Fuzz.run(
        2,
        round -> {
          byte[] bytes = round.mutated(stored);
          InputFile file =
              round.random().nextBoolean()
                  ? new InMemoryInputFile("s3://bucket/db/t/file", bytes)
                  : new ObjectStoreFile(bytes, round.random().nextBoolean());
          try (SeekableInputStream in = open(file, keyMetadata).newStream()) {
            assertThat(readSomehow(in, round)).isTrue();
            in.seek(0);
            assertThat(in.readAllBytes()).isEqualTo(plain);
          }

          assertThat(bytes).startsWith(stored[0], stored[1], stored[2], stored[3]);
          return true;
        });
  }

  /** Reads here and there, as readers of columns do; what it gets must be right. */
  private boolean readSomehow(SeekableInputStream in, Fuzz round) throws IOException {
    for (int i = 0; i < 4; i++) {
      int at = round.random().nextInt(plain.length);
      in.seek(at);
      if (round.random().nextBoolean()) {
        long skipped = in.skip(round.random().nextInt(100));
        at += (int) skipped;
      }

      byte[] got = in.readNBytes(round.random().nextInt(300));
      if (!Arrays.equals(
          got, Arrays.copyOfRange(plain, at, Math.min(plain.length, at + got.length)))) {
        return false;
      }
    }

    return true;
  }

  /** As stored, which is how Parquet reads: the stored bytes, as many as there must be. */
  @Test
  void storedFiles() {
    Fuzz.run(
        2,
        round -> {
          byte[] bytes = round.mutated(stored);
          NativeEncryptionInputFile file =
              open(new ObjectStoreFile(bytes, round.random().nextBoolean()), keyMetadata);
          try (SeekableInputStream in = file.encryptedInputFile().newStream()) {
            assertThat(file.encryptedInputFile().getLength()).isEqualTo(stored.length);
            assertThat(in.readAllBytes()).isEqualTo(bytes).hasSize(stored.length);
          }

          return true;
        });
  }

  /** Key metadata is itself encrypted; a writer with the keys may still have written anything. */
  @Test
  void keyMetadata() {
    Fuzz.run(
        2,
        round -> {
          byte[] hostile = round.mutated(keyMetadata);
          InputFile file = new InMemoryInputFile("s3://bucket/db/t/file", stored);
          NativeEncryptionInputFile input = open(file, hostile);
          try (SeekableInputStream in = input.newStream()) {
            assertThat(in.readAllBytes()).isEqualTo(plain);
            assertThat(input.getLength()).isEqualTo(plain.length);
          }

          return true;
        });
  }

  private NativeEncryptionInputFile open(InputFile file, byte[] metadata) {
    return manager.decrypt(EncryptedFiles.encryptedInput(file, ByteBuffer.wrap(metadata)));
  }
}
