package io.icebergcrypto.io.stream;

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
 */
public record EncryptedOutput(NativeEncryptionOutputFile file, Runnable beforeParquet)
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
    return new OutputFile() {
      @Override
      public PositionOutputStream create() {
        return new EncryptingStream(file.plainOutputFile().create(), keyMetadata());
      }

      @Override
      public PositionOutputStream createOrOverwrite() {
        return new EncryptingStream(file.plainOutputFile().createOrOverwrite(), keyMetadata());
      }

      @Override
      public String location() {
        return file.plainOutputFile().location();
      }

      @Override
      public InputFile toInputFile() {
        return file.encryptingOutputFile().toInputFile();
      }
    };
  }
}
