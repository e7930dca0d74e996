package io.icebergcrypto.io.checked;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.io.stream.FileMetrics;
import io.icebergcrypto.metadata.UnwrappedKek;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.function.Function;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedInputFile;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * An encrypted file that must be what was written. It is read in one of two ways: as an AES GCM
 * stream (Avro, Puffin, manifests, manifest lists), or as stored, by Parquet, which decrypts with
 * the keys of {@link #keyMetadata()}. Which one only shows when it is opened.
 */
public final class AuthenticatedInputFile
    implements ForwardingInputFile, NativeEncryptionInputFile {
  private final String table;
  private final StoredInput stored;
  private final EncryptedInputFile encrypted;
  private final Function<EncryptedInputFile, NativeEncryptionInputFile> decryption;
  private final OpenParquetFile openFile;
  private NativeEncryptionKeyMetadata lazyKeyMetadata = null;
  private ExpectedFile lazyFile = null;
  private Ags1Layout lazyLayout = null;
  private boolean ofAnyLength = false; // only the storage says where it ends

  public AuthenticatedInputFile(
      String table,
      StoredInput stored,
      EncryptionKeyMetadata keyMetadata,
      Function<EncryptedInputFile, NativeEncryptionInputFile> decryption,
      OpenParquetFile openFile) {
    this.table = table;
    this.stored = stored;
    this.encrypted = EncryptedFiles.encryptedInput(stored.file(), keyMetadata);
    this.decryption = decryption;
    this.openFile = openFile;
  }

  @Override
  public InputFile under() {
    return stored.file();
  }

  /** The file as stored. Parquet asks for it, and opens it right away. */
  @Override
  public InputFile encryptedInputFile() {
    Long length = keyMetadata().fileLength();
    // when the key metadata has no length, the manifest entry's will do: Parquet's own checks
    // remain
    ExpectedFile file =
        length != null ? file() : new ExpectedFile(table, location(), stored.file().getLength());
    openFile.opened(table, location());
    FileMetrics.parquetOpened(file.length());
    return LengthCheckedInputFile.forParquet(stored, file);
  }

  @Override
  public NativeEncryptionKeyMetadata keyMetadata() {
    if (lazyKeyMetadata == null) {
      try {
        checkLengths(encrypted.keyMetadata());
        NativeEncryptionKeyMetadata metadata = decryption.apply(encrypted).keyMetadata();
        checkKey(metadata.encryptionKey());
        this.lazyKeyMetadata = metadata;
      } catch (RuntimeException e) {
        throw new ExpectedFile(table, location(), null)
            .unreadableKeyMetadata(encrypted.keyMetadata().buffer(), e);
      }
    }

    return lazyKeyMetadata;
  }

  private static void checkLengths(EncryptionKeyMetadata metadata) {
    if (!(metadata instanceof NativeEncryptionKeyMetadata)
        && metadata.buffer() != null
        && !KeyMetadataLengths.fit(metadata.buffer())) {
      throw new IllegalArgumentException("A length in it points past its end");
    }
  }

  private static void checkKey(ByteBuffer key) {
    if (!UnwrappedKek.LENGTHS.contains(key.remaining())) {
      throw new IllegalArgumentException("A key of " + key.remaining() + " bytes");
    }
  }

  @Override
  public long getLength() {
    return layout().plaintextLength();
  }

  @Override
  public SeekableInputStream newStream() {
    Ags1Layout layout = layout();
    if (ofAnyLength && layout.endsWithFullBlock()) { // which need not be the last that was written
      checkEnd(layout.plaintextLength());
    }

    return decrypted(layout);
  }

  private SeekableInputStream decrypted(Ags1Layout layout) {
    InputFile whole = new LengthCheckedInputFile(stored, file(), false);
    return new AuthenticatedStream(whole.newStream(), layout, keyMetadata(), file());
  }

  private void checkEnd(long length) {
    try (SeekableInputStream in = decrypted(lazyLayout)) {
      if (!AvroEnd.isWhole(in, length)) {
        throw file().cutBehindABlock();
      }

      this.ofAnyLength = false; // once is enough
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + location(), e);
    }
  }

  @Override
  public String toString() {
    return location();
  }

  private ExpectedFile file() {
    if (lazyFile == null) {
      this.lazyFile = new ExpectedFile(table, location(), length());
    }

    return lazyFile;
  }

  private Long length() {
    Long length = keyMetadata().fileLength();
    if (length == null) {
      length = ListedLength.of(stored, new ExpectedFile(table, location(), null));
    }

    this.ofAnyLength = length == null && stored.anyLength();
    return ofAnyLength ? (Long) stored.length().getAsLong() : length;
  }

  private Ags1Layout layout() {
    if (lazyLayout == null) {
      if (file().length() == null) {
        throw file().lengthUnknown();
      }

      try {
        this.lazyLayout = Ags1Layout.ofLength(file().length(), location());
      } catch (TamperedException e) {
        throw e.inTable(table);
      }
    }

    return lazyLayout;
  }
}
