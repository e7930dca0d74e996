package io.icebergcrypto.io.stream;

import java.util.function.UnaryOperator;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * A file that is going to be encrypted, with the key that Iceberg made for it: as an AES GCM
 * stream, which is written here, or by Parquet, which takes the plain output and the key.
 *
 * @param file Iceberg's
 * @param beforeParquet throws an error where Parquet must not write it
 * @param around gives a stream for what is written, in front of the one that encrypts it
 * @param guard may refuse what is written as a stream, before it is encrypted
 */
public record EncryptedOutput(
    NativeEncryptionOutputFile file,
    Runnable beforeParquet,
    UnaryOperator<PositionOutputStream> around,
    UnaryOperator<OutputFile> guard)
    implements NativeEncryptionOutputFile {
  @Override
  public NativeEncryptionKeyMetadata keyMetadata() {
    return file.keyMetadata();
  }

  @Override
  public OutputFile plainOutputFile() {
    beforeParquet.run();
    return file.plainOutputFile();
  }

  @Override
  public OutputFile encryptingOutputFile() {
    return guard.apply(
        new OutputFile() {
          @Override
          public PositionOutputStream create() {
            return encrypting(file.plainOutputFile().create());
          }

          @Override
          public PositionOutputStream createOrOverwrite() {
            return encrypting(file.plainOutputFile().createOrOverwrite());
          }

          @Override
          public String location() {
            return file.plainOutputFile().location();
          }

          @Override
          public InputFile toInputFile() {
            return file.encryptingOutputFile().toInputFile();
          }
        });
  }

  private PositionOutputStream encrypting(PositionOutputStream stored) {
    return around.apply(new EncryptingStream(stored, keyMetadata(), length -> {}));
  }
}
