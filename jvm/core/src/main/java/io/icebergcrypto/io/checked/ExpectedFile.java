package io.icebergcrypto.io.checked;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Ags1Layout;
import java.nio.ByteBuffer;

/**
 * A file as a table's metadata describes it, and the errors where the storage has another.
 *
 * @param table the table's full name; null: nobody knows
 * @param location where the file is
 * @param length its length in bytes as it is stored, from its key metadata or the manifest entry;
 *     null when neither gives one
 */
public record ExpectedFile(String table, String location, Long length) {
  private static final String CHANGED_HINT =
      "The file was cut off, overwritten or replaced after it was written, by accident or by"
          + " someone who can write to the storage. Restore it from a backup or an object version;"
          + " no row of it was returned that is not the table's.";

  /** Storage has fewer bytes. */
  IcebergCryptoException shorter(long stored, Throwable cause) {
    return tampered(
        ProblemCode.TRUNCATED,
        String.format("it ends after %d bytes, expected %d: it was cut off", stored, length),
        cause);
  }

  /** A read ended early, and the storage says that it has all bytes, or does not say. */
  IcebergCryptoException endedEarly(long position, String stored, Throwable cause) {
    return named(
        new IcebergCryptoException(
            String.format(
                "%s could not be read: its storage ended the read at or before byte %d of %d, but"
                    + " %s",
                location, position, length, stored),
            "That is a failure of the storage, or of what is in between, and says nothing about the"
                + " file. Read it again.",
            cause));
  }

  /** Storage has more bytes. */
  IcebergCryptoException longer(long stored) {
    return tampered(
        ProblemCode.APPENDED,
        String.format("it has %d bytes, expected %d: bytes were appended", stored, length),
        null);
  }

  /** Storage has more bytes; it did not say how many. */
  IcebergCryptoException continues() {
    return tampered(
        ProblemCode.APPENDED,
        String.format(
            "it continues after byte %d, where it should end: bytes were appended", length),
        null);
  }

  /** Storage has another length than what lists the file, which is the length of this one. */
  IcebergCryptoException notAsListed(long stored) {
    long asContent = Ags1Layout.storedLength(length);
    if (stored < length) {
      return shorter(stored, null);
    } else if (stored > asContent) {
      return longer(stored);
    }

    return changed(
        String.format(
            "it has %d bytes, expected %d, or %d if what lists it gives the length of the content",
            stored, length, asContent));
  }

  /** It ends behind a block, as a whole file may, and its content does not end there. */
  IcebergCryptoException cutBehindABlock() {
    return tampered(
        ProblemCode.TRUNCATED,
        String.format(
            "it ends after %d bytes, at the end of a block but in the middle of its content: it was"
                + " cut off",
            length),
        null);
  }

  /** An authentication tag does not match. */
  IcebergCryptoException wrongTag(Throwable cause) {
    return tampered(
        "its authentication tag does not match its key: bytes were changed, or it is another file"
            + " (of this table, of another one, or an older version)",
        cause);
  }

  /** The bytes are not in the format that the table's metadata says. */
  IcebergCryptoException malformed(String what) {
    return changed("expected an encrypted file of " + length + " bytes, but: " + what);
  }

  /** The bytes are not those that were written, as {@code what} says. */
  public IcebergCryptoException changed(String what) {
    return tampered(what, null);
  }

  /** It is encrypted in a way that this version cannot read. */
  IcebergCryptoException ofOtherVersion(String what) {
    return named(
        new NotSupportedException(
            String.format("%s cannot be read by this version: %s", location, what),
            "Another program, or a later version of Iceberg, wrote it: read the table with that"
                + " one, or update. Nothing indicates that the file was changed."));
  }

  /** It cannot be read, for a reason that says nothing about its bytes. */
  IcebergCryptoException unreadable(Throwable cause) {
    return named(
        new IcebergCryptoException(
            String.format("%s could not be read: %s", location, cause),
            "Nothing indicates that the file was changed. Read it again.",
            cause));
  }

  /**
   * What a manifest or the metadata has as this file's key metadata cannot be read. That was
   * encrypted, and its tag was checked: it is what a writer wrote.
   *
   * @param metadata stays as it is
   */
  public IcebergCryptoException unreadableKeyMetadata(ByteBuffer metadata, Throwable cause) {
    int version = metadata == null ? 0 : KeyMetadataLengths.version(metadata);
    if (version > KeyMetadataLengths.VERSION) {
      return named(
          new NotSupportedException(
              String.format(
                  "%s cannot be read: its key metadata has version %d, and this Iceberg reads"
                      + " version %d",
                  location, version, KeyMetadataLengths.VERSION),
              "A later version of Iceberg wrote it: update. Nothing indicates that the file was"
                  + " changed."));
    }

    return named(
        new IcebergCryptoException(
            String.format(
                "%s cannot be read: its key metadata cannot be read (%s)",
                location, cause.getClass().getSimpleName()), // a message may quote the bytes
            "It is as its writer wrote it: find out which program did, and read the table with that"
                + " one."));
  }

  /**
   * Nothing that is authenticated gives a length: a file that was cut off behind a block would look
   * like a whole one.
   */
  IcebergCryptoException lengthUnknown() {
    return named(
        new NotSupportedException(
            String.format(
                "%s is not read: its key metadata gives no length, so bytes could be missing at its"
                    + " end",
                location),
            "iceberg-rust wrote it, or another client that records no length; nothing indicates"
                + " that it was changed. CALL <catalog>.system.repair_table(table => ..., confirm"
                + " => true) gives the files of the current snapshot, and all manifest lists, their"
                + " lengths. To read such files as they are, set the catalog property"
                + " encryption.files-without-length=accept."));
  }

  private IcebergCryptoException tampered(String what, Throwable cause) {
    return tampered(ProblemCode.TAMPERED, what, cause);
  }

  private IcebergCryptoException tampered(ProblemCode code, String what, Throwable cause) {
    return named(
        new TamperedException(
            code,
            String.format("%s is not what was written: %s", location, what),
            CHANGED_HINT,
            cause));
  }

  private IcebergCryptoException named(IcebergCryptoException error) {
    return table == null ? error : error.inTable(table);
  }
}
