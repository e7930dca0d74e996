package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.io.checked.AuthenticatedStream;
import io.icebergcrypto.io.checked.ExpectedFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files that iceberg-rust wrote; tests/vectors/README.md says where they are from. */
class VectorsTest {
  @Test
  void manifestListOfIcebergRust() throws Exception {
    byte[] file = TestFiles.vector("iceberg-rust-manifest-list.avro");

    FileInspection inspection = FileInspector.inspect(TestFiles.input(file));

    assertThat(inspection.magic()).isEqualTo(FileMagic.AGS1);
    assertThat(inspection.ags1()).isEqualTo(new Ags1Layout(Ags1Layout.ICEBERG_BLOCK_SIZE, 1, 1532));
    byte[] key = HexFormat.of().parseHex("5bb3b37709a50a8ea8b7165034f77a77");
    byte[] aadPrefix = HexFormat.of().parseHex("f726dcbf98e79dcedf353a0904104294");
    AesGcmInputFile decrypting = decrypting(file, key, aadPrefix);
    assertThat(readOurselves(file, key, aadPrefix)).isEqualTo(readAll(decrypting));
    assertThat(FileInspector.magic(decrypting)).isEqualTo(FileMagic.AVRO);
    assertThat(MessageDigest.getInstance("SHA-256").digest(readAll(decrypting)))
        .asHexString()
        .isEqualToIgnoringCase("0e5275412c60ba163e9510f2c3faad8411f9472bfe429de9827255ae7539cfab");
  }

  @ParameterizedTest
  @CsvSource({"16, 0", "16, 1", "24, 0", "24, 1", "32, 0", "32, 1"})
  void streamsOfIcebergRust(int keyLength, int plaintextLength) throws IOException {
    byte[] file = TestFiles.vector("made_rust/k" + keyLength + "_" + plaintextLength + ".ags1");

    FileInspection inspection = FileInspector.inspect(TestFiles.input(file));

    assertThat(inspection.magic()).isEqualTo(FileMagic.AGS1);
    assertThat(inspection.ags1())
        .isEqualTo(new Ags1Layout(Ags1Layout.ICEBERG_BLOCK_SIZE, 1, plaintextLength));
    byte[] key = new byte[keyLength];
    for (int i = 0; i < keyLength; i++) {
      key[i] = (byte) i;
    }
    byte[] expected = TestFiles.plaintext(plaintextLength);
    assertThat(readAll(decrypting(file, key, TestFiles.AAD_PREFIX))).isEqualTo(expected);
    assertThat(readOurselves(file, key, TestFiles.AAD_PREFIX)).isEqualTo(expected);
  }

  private static AesGcmInputFile decrypting(byte[] file, byte[] key, byte[] aadPrefix) {
    return new AesGcmInputFile(TestFiles.input(file), key, aadPrefix, (long) file.length);
  }

  private record KeyMetadata(ByteBuffer encryptionKey, ByteBuffer aadPrefix)
      implements NativeEncryptionKeyMetadata {
    @Override
    public ByteBuffer buffer() {
      throw new UnsupportedOperationException();
    }

    @Override
    public EncryptionKeyMetadata copy() {
      throw new UnsupportedOperationException();
    }
  }

  private static byte[] readOurselves(byte[] file, byte[] key, byte[] aadPrefix)
      throws IOException {
    KeyMetadata metadata = new KeyMetadata(ByteBuffer.wrap(key), ByteBuffer.wrap(aadPrefix));
    InputFile stored = TestFiles.input(file);
    Ags1Layout layout = Ags1Layout.ofLength(file.length, stored.location());
    ExpectedFile expected = new ExpectedFile(null, stored.location(), (long) file.length);
    try (AuthenticatedStream in =
        new AuthenticatedStream(stored.newStream(), layout, metadata, expected)) {
      return in.readAllBytes();
    }
  }

  private static byte[] readAll(AesGcmInputFile file) throws IOException {
    try (SeekableInputStream in = file.newStream()) {
      return in.readAllBytes();
    }
  }
}
