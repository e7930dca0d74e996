package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.format.FileInspection;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.FileCheck;
import io.icebergcrypto.spark.verify.FileResult;
import io.icebergcrypto.spark.verify.deep.FileKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.InputFile;

/**
 * A look at one file with its key: every tag is checked and, for forensics, an AES GCM stream is
 * decrypted into a new file.
 */
public final class KeyedInspection {
  private static final FileAttribute<?> OWNER_ONLY =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
  private static final String HINT =
      "The file was cut off, overwritten or replaced after it was written, or it is not the file"
          + " that this key is for. Restore it from a backup or an object version.";

  private static final int KEY_METADATA_VERSION = 1;

  private final KnownFile file;
  private final InputFile stored;
  private final boolean lengthIsKnown;

  private KeyedInspection(KnownFile file, InputFile stored, boolean lengthIsKnown) {
    this.file = file;
    this.stored = stored;
    this.lengthIsKnown = lengthIsKnown;
  }

  /**
   * Takes the key that a table has for a file.
   *
   * @throws InvalidConfigurationException when no snapshot of the table reaches the file
   */
  public static KeyedInspection ofTable(
      EncryptedCatalog catalog, TableIdentifier identifier, String path) {
    BaseTable plain = catalog.context().unchecked(identifier);
    BaseTable table = EncryptedTable.forAudit((BaseTable) catalog.loadTable(identifier), List.of());
    KnownFile file = FileSearch.find(table, path);
    return new KeyedInspection(file, plain.io().newInputFile(file.path()), true);
  }

  /**
   * Takes a key from elsewhere. Nobody can tell then whether the file has its whole length.
   *
   * @param hexKey the DEK
   * @param hexAadPrefix the AAD prefix
   */
  public static KeyedInspection withKey(InputFile stored, String hexKey, String hexAadPrefix) {
    ByteBuffer keyMetadata =
        keyMetadata(bytes(hexKey, "The DEK", 16, 24, 32), bytes(hexAadPrefix, "The AAD prefix"));
    String format = FileInspector.magic(stored) == FileMagic.PARE ? "parquet" : "avro";
    KnownFile file =
        new KnownFile(FileKind.DATA, stored.location(), format, stored.getLength(), keyMetadata);
    return new KeyedInspection(file, stored, false);
  }

  /**
   * Iceberg's standard key metadata (Iceberg specification, version 1) without a length: its class
   * is not public. The version, then Avro: the DEK, a union of null and the AAD prefix, a union of
   * null and the file's length.
   */
  private static ByteBuffer keyMetadata(byte[] key, byte[] aadPrefix) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.write(KEY_METADATA_VERSION);
    BinaryEncoder avro = EncoderFactory.get().directBinaryEncoder(bytes, null);
    try {
      avro.writeBytes(key);
      avro.writeIndex(1);
      avro.writeBytes(aadPrefix);
      avro.writeIndex(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return ByteBuffer.wrap(bytes.toByteArray());
  }

  private static byte[] bytes(String hex, String what, int... lengths) {
    try {
      byte[] bytes = HexFormat.of().parseHex(hex.trim());
      for (int length : lengths) {
        if (bytes.length == length) {
          return bytes;
        }
      }

      if (lengths.length == 0) {
        return bytes;
      }
    } catch (IllegalArgumentException e) {
      // without the cause, which quotes the key
    }

    throw new InvalidConfigurationException(
        what + " is not in hex" + (lengths.length == 0 ? "" : ", or not of 16, 24 or 32 bytes"),
        "Give two hexadecimal digits for each byte, and nothing else.");
  }

  /**
   * Checks the file.
   *
   * @param decryptTo a new local file for the plaintext of an AES GCM stream; null: none is written
   * @return what {@link FileInspection#toMap} has; {@code tags_checked}, {@code length_checked} and
   *     {@code decrypted_to}
   * @throws TamperedException when the file is not what was written
   * @throws PlaintextException when it is plaintext, or encrypted only in part
   * @throws NotSupportedException when it is Parquet, and to be decrypted
   * @throws IcebergCryptoException when it could not be checked
   */
  public Map<String, Object> check(String decryptTo) {
    FileInspection inspection = FileInspector.inspect(stored);
    FileResult checked =
        new FileCheck(Depth.DEEP)
            .check(file.kind(), file.format(), stored, file.length(), file.keyMetadata());
    boolean noLength = checked.code() == ProblemCode.NO_LENGTH; // and nothing else
    if (checked.problem() != null && !noLength) {
      throw error(stored.location(), file.kind(), checked.problem());
    }

    if (decryptTo != null) {
      decrypt(inspection, Path.of(decryptTo));
    }

    Map<String, Object> found = inspection.toMap();
    found.put("tags_checked", true);
    found.put("length_checked", lengthIsKnown && !noLength);
    found.put("decrypted_to", decryptTo);
    return found;
  }

  /** Only codes of bytes that differ from those written accuse. */
  static IcebergCryptoException error(String location, FileKind kind, FileProblem problem) {
    String hint = FileProblem.hint(problem.code(), kind);
    return switch (problem.code()) {
      case PLAINTEXT ->
          new PlaintextException(String.format("%s: %s", location, problem.words()), hint);
      case TRUNCATED, APPENDED, WRONG_FORMAT, TAMPERED ->
          new TamperedException(
              String.format("%s is not what was written: %s", location, problem.words()), HINT);
      default ->
          new IcebergCryptoException(
              String.format("%s could not be checked: %s", location, problem.words()), hint);
    };
  }

  private void decrypt(FileInspection inspection, Path target) {
    if (inspection.magic() != FileMagic.AGS1) {
      throw new NotSupportedException(
          String.format(
              "%s is encrypted Parquet, which is not decrypted into a file", stored.location()),
          "Its rows are read through its table: SELECT * FROM <table> WHERE _file = '<the file>'.");
    }

    InputFile plaintext = FileKey.of(stored, file.keyMetadata()).decrypted(stored);
    OutputStream created = create(target);
    try (OutputStream out = created;
        InputStream in = plaintext.newStream()) {
      in.transferTo(out);
    } catch (IOException | RuntimeException e) {
      delete(target, e);
      throw e instanceof IcebergCryptoException known ? known : notWritten(target, e);
    }
  }

  private static OutputStream create(Path target) {
    Set<StandardOpenOption> options =
        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try {
      return Channels.newOutputStream(Files.newByteChannel(target, options, OWNER_ONLY));
    } catch (FileAlreadyExistsException e) {
      throw new InvalidConfigurationException(
          String.format("%s exists, and is not overwritten", target), "Name another file.", e);
    } catch (IOException e) {
      throw notWritten(target, e);
    }
  }

  private static IcebergCryptoException notWritten(Path target, Exception cause) {
    return new InvalidConfigurationException(
        String.format("%s could not be written: %s", target, cause),
        "Name a file in a folder that is there, writable, and has room.",
        cause);
  }

  /** A part of the plaintext would be taken for the whole. */
  private static void delete(Path target, Exception reason) {
    try {
      Files.deleteIfExists(target);
    } catch (IOException e) {
      reason.addSuppressed(e);
    }
  }
}
