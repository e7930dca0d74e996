package io.icebergcrypto.format;

import io.icebergcrypto.TamperedException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.parquet.format.AesGcmCtrV1;
import org.apache.parquet.format.AesGcmV1;
import org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.parquet.format.FileCryptoMetaData;
import shaded.parquet.org.apache.thrift.TConfiguration;
import shaded.parquet.org.apache.thrift.TException;
import shaded.parquet.org.apache.thrift.protocol.TCompactProtocol;
import shaded.parquet.org.apache.thrift.protocol.TProtocolUtil;
import shaded.parquet.org.apache.thrift.transport.TIOStreamTransport;

/**
 * What the footer of an encrypted Parquet file says in plaintext (Parquet modular encryption,
 * section 5.2, "Encrypted footer mode").
 *
 * <p>The file ends with a {@code FileCryptoMetaData} in Thrift's compact protocol, the encrypted
 * {@code FileMetaData} (a little-endian 32-bit length, nonce, ciphertext, tag), the combined length
 * of the two as a little-endian 32-bit integer and {@code "PARE"}. None of what is read here is
 * authenticated by itself.
 *
 * @param footerLength combined length in bytes of the two structures
 * @param algorithm how the file's modules are encrypted
 * @param aadPrefixStored whether the file itself has the AAD prefix in it; Iceberg keeps it in the
 *     key metadata instead
 * @param aadFileUniqueLength length in bytes of the random file identifier, 0 if it has none
 * @param supplyAadPrefix whether a reader has to bring the AAD prefix along; true in what Iceberg
 *     writes
 * @param keyMetadataLength length in bytes of the footer key's metadata, 0 if it has none, as in
 *     what Iceberg writes
 */
public record PareFooter(
    int footerLength,
    Algorithm algorithm,
    boolean aadPrefixStored,
    int aadFileUniqueLength,
    boolean supplyAadPrefix,
    int keyMetadataLength) {

  /** The encryption algorithms of Parquet (section 4.2). */
  public enum Algorithm {
    /** Every module is encrypted with AES-GCM: nothing can be changed unnoticed. */
    AES_GCM_V1,
    /** Pages are encrypted with AES-CTR, which does not authenticate them; the rest with GCM. */
    AES_GCM_CTR_V1
  }

  /** Bytes at the end of the file behind the footer: its length and the magic. */
  static final int TAIL_LENGTH = 8;

  /** How many bytes of a footer are parsed, at most. */
  public static final int MAX_PARSED_LENGTH = 4096;

  private static final int MAGIC_LENGTH = 4;
  private static final byte[] MAGIC = "PARE".getBytes(StandardCharsets.US_ASCII);

  /** Length, nonce and tag around the encrypted FileMetaData. */
  private static final int MODULE_OVERHEAD = 4 + 12 + 16;

  private static final int MAX_NESTING = 16;

  static {
    // Thrift skips unknown fields by recursion. The setting is of the copy in this project's jar.
    TProtocolUtil.setMaxSkipDepth(MAX_NESTING);
  }

  /**
   * Reads the footer's length from the end of a file.
   *
   * @param tail the file's last {@value #TAIL_LENGTH} bytes
   * @param fileLength the file's length in bytes
   * @param path the file's location, for the error
   * @return the length in bytes of the footer, which ends where the tail starts
   * @throws TamperedException if the tail is not an encrypted Parquet file's, or the footer does
   *     not fit into the file
   */
  static int parseLength(byte[] tail, long fileLength, String path) {
    long most = fileLength - MAGIC_LENGTH - TAIL_LENGTH;
    if (tail.length != TAIL_LENGTH || most <= MODULE_OVERHEAD) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "expected more than %d bytes", MAGIC_LENGTH + TAIL_LENGTH + MODULE_OVERHEAD));
    }
    if (!Arrays.equals(tail, 4, TAIL_LENGTH, MAGIC, 0, MAGIC_LENGTH)) {
      throw tampered(path, fileLength, "it starts with PARE, expected it to end with PARE too");
    }
    int length = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (length <= MODULE_OVERHEAD || length > most) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "its last bytes give a footer of %d bytes, expected %d to %d",
              Integer.toUnsignedLong(length), MODULE_OVERHEAD + 1, most));
    }
    return length;
  }

  /**
   * Parses the footer's plaintext part.
   *
   * @param footer the footer's first {@value #MAX_PARSED_LENGTH} bytes, or all of a shorter one
   * @param footerLength the footer's whole length in bytes, from {@link #parseLength}
   * @param fileLength the file's length in bytes, for the error
   * @param path the file's location, for the error
   * @throws TamperedException if the bytes are no {@code FileCryptoMetaData} followed by an
   *     encrypted module that fills the rest of the footer, or if the former takes more than
   *     {@value #MAX_PARSED_LENGTH} bytes
   */
  static PareFooter parse(byte[] footer, int footerLength, long fileLength, String path) {
    int parsed = Math.min(footer.length, MAX_PARSED_LENGTH);
    ByteArrayInputStream bytes = new ByteArrayInputStream(footer, 0, parsed);
    FileCryptoMetaData crypto;
    try {
      crypto = read(bytes);
    } catch (TException | RuntimeException e) { // Thrift's generated code throws both
      throw tampered(
          path,
          fileLength,
          String.format(
              "its footer of %d bytes does not parse as file crypto metadata", footerLength),
          e);
    }

    int rest = bytes.available();
    checkModule(ByteBuffer.wrap(footer, parsed - rest, rest), footerLength, fileLength, path);
    byte[] keyMetadata = crypto.getKey_metadata();
    EncryptionAlgorithm algorithm = crypto.getEncryption_algorithm();
    if (algorithm.isSetAES_GCM_V1()) {
      AesGcmV1 gcm = algorithm.getAES_GCM_V1();
      return new PareFooter(
          footerLength,
          Algorithm.AES_GCM_V1,
          gcm.isSetAad_prefix(),
          length(gcm.getAad_file_unique()),
          gcm.isSupply_aad_prefix(),
          length(keyMetadata));
    } else if (algorithm.isSetAES_GCM_CTR_V1()) {
      AesGcmCtrV1 ctr = algorithm.getAES_GCM_CTR_V1();
      return new PareFooter(
          footerLength,
          Algorithm.AES_GCM_CTR_V1,
          ctr.isSetAad_prefix(),
          length(ctr.getAad_file_unique()),
          ctr.isSupply_aad_prefix(),
          length(keyMetadata));
    }

    throw tampered(path, fileLength, "its footer names no known encryption algorithm");
  }

  /**
   * Whether a footer says that all modules are encrypted with AES_GCM_V1, in the one form that
   * Parquet's writers give it. A field that is there twice, or a union of two, is not: readers
   * differ in which of them counts.
   *
   * @param footer its first {@value #MAX_PARSED_LENGTH} bytes, or all of a shorter one
   */
  public static boolean isGcm(byte[] footer) {
    ByteArrayInputStream bytes = new ByteArrayInputStream(footer);
    ByteArrayOutputStream again = new ByteArrayOutputStream();
    try {
      FileCryptoMetaData crypto = read(bytes);
      crypto.write(new TCompactProtocol(new TIOStreamTransport(again)));
      int length = footer.length - bytes.available();
      return crypto.getEncryption_algorithm().isSetAES_GCM_V1()
          && Arrays.equals(again.toByteArray(), 0, again.size(), footer, 0, length);
    } catch (TException | RuntimeException e) { // Thrift's generated code throws both
      return false;
    }
  }

  private static FileCryptoMetaData read(ByteArrayInputStream bytes) throws TException {
    // Parquet's own Util lets Thrift allocate up to 100 MiB for a length that the bytes claim
    int most = bytes.available();
    TConfiguration limits = new TConfiguration(most, most, MAX_NESTING);
    FileCryptoMetaData crypto = new FileCryptoMetaData();
    crypto.read(new TCompactProtocol(new TIOStreamTransport(limits, bytes), most, most));
    return crypto;
  }

  /** The encrypted FileMetaData has to fill the footer to its last byte. */
  private static void checkModule(ByteBuffer rest, int footerLength, long fileLength, String path) {
    int start = rest.position();
    long expected = (long) footerLength - start - 4;
    if (expected < MODULE_OVERHEAD - 4 || rest.remaining() < 4) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "after the first %d bytes of its footer of %d bytes there is no room for the"
                  + " encrypted file metadata",
              start, footerLength));
    }

    int found = rest.order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (found != expected) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "the encrypted file metadata in its footer gives its length as %d bytes, expected %d",
              Integer.toUnsignedLong(found), expected));
    }
  }

  private static int length(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }

  private static TamperedException tampered(String path, long fileLength, String what) {
    return tampered(path, fileLength, what, null);
  }

  private static TamperedException tampered(
      String path, long fileLength, String what, Exception cause) {
    return new TamperedException(
        String.format(
            "Not a whole encrypted Parquet file: %s, %d bytes long: %s", path, fileLength, what),
        FileInspector.DAMAGED_HINT,
        cause);
  }
}
