package io.icebergcrypto.format;

import io.icebergcrypto.TamperedException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

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
 * @param aadFileUniqueLength length in bytes of the random file identifier, 0 if there is none
 * @param supplyAadPrefix whether a reader has to bring the AAD prefix along; true in what Iceberg
 *     writes
 * @param keyMetadataLength length in bytes of the footer key's metadata, 0 if there is none, as in
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
  public static final int TAIL_LENGTH = 8;

  /** How many bytes of a footer {@link #parse} needs, at most. */
  public static final int MAX_PARSED_LENGTH = 4096;

  private static final int MAGIC_LENGTH = 4;
  private static final byte[] MAGIC = "PARE".getBytes(StandardCharsets.US_ASCII);

  /** Length, nonce and tag around the encrypted FileMetaData. */
  private static final int MODULE_OVERHEAD = 4 + 12 + 16;

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
  public static int parseLength(byte[] tail, long fileLength, String path) {
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
  public static PareFooter parse(byte[] footer, int footerLength, long fileLength, String path) {
    return new FileCryptoMetaData(footer, footerLength, fileLength, path).read();
  }

  private static TamperedException tampered(String path, long fileLength, String what) {
    return new TamperedException(
        String.format(
            "Not a whole encrypted Parquet file: %s, %d bytes long: %s", path, fileLength, what),
        FileInspector.DAMAGED_HINT);
  }

  /** The Thrift structure of that name, read field by field. */
  private static final class FileCryptoMetaData {
    private final byte[] footer;
    private final int footerLength;
    private final long fileLength;
    private final String path;
    private final ThriftCompactReader thrift;

    // Null while the field has not come. A field that comes twice is refused: two readers could
    // each take another one of them.
    private Algorithm algorithm;
    private Integer keyMetadata;
    private Integer aadPrefix;
    private Integer aadFileUnique;
    private Boolean supplyAadPrefix;

    FileCryptoMetaData(byte[] footer, int footerLength, long fileLength, String path) {
      this.footer =
          footer.length > MAX_PARSED_LENGTH ? Arrays.copyOf(footer, MAX_PARSED_LENGTH) : footer;
      this.footerLength = footerLength;
      this.fileLength = fileLength;
      this.path = path;
      this.thrift = new ThriftCompactReader(this.footer, this::malformed);
    }

    PareFooter read() {
      thrift.readStruct(this::readField);
      if (algorithm == null) {
        throw malformed("it names no encryption algorithm");
      }
      checkModule(thrift.position());
      return new PareFooter(
          footerLength,
          algorithm,
          aadPrefix != null,
          aadFileUnique == null ? 0 : aadFileUnique,
          supplyAadPrefix != null && supplyAadPrefix,
          keyMetadata == null ? 0 : keyMetadata);
    }

    private void readField(int id, int type) {
      switch (id) {
        case 1 -> {
          expect("encryption_algorithm", type == ThriftCompactReader.STRUCT);
          thrift.readStruct(this::readAlgorithm);
          if (algorithm == null) {
            throw malformed("it names no encryption algorithm");
          }
        }
        case 2 -> keyMetadata = readBinary("key_metadata", type, keyMetadata);
        default -> thrift.skip(type);
      }
    }

    private void readAlgorithm(int id, int type) {
      if (id != 1 && id != 2) {
        throw malformed(
            "encryption algorithm number "
                + id
                + ", expected 1 (AES_GCM_V1) or 2 (AES_GCM_CTR_V1)");
      }
      expect("the encryption algorithm", type == ThriftCompactReader.STRUCT);
      once("the encryption algorithm", algorithm);
      algorithm = id == 1 ? Algorithm.AES_GCM_V1 : Algorithm.AES_GCM_CTR_V1;
      thrift.readStruct(this::readSetting);
    }

    private void readSetting(int id, int type) {
      switch (id) {
        case 1 -> aadPrefix = readBinary("aad_prefix", type, aadPrefix);
        case 2 -> aadFileUnique = readBinary("aad_file_unique", type, aadFileUnique);
        case 3 -> {
          boolean isTrue = type == ThriftCompactReader.TRUE;
          expect("supply_aad_prefix", isTrue || type == ThriftCompactReader.FALSE);
          once("supply_aad_prefix", supplyAadPrefix);
          supplyAadPrefix = isTrue;
        }
        default -> thrift.skip(type);
      }
    }

    private int readBinary(String field, int type, Integer before) {
      expect(field, type == ThriftCompactReader.BINARY);
      once(field, before);
      return thrift.skipBinary();
    }

    /** The encrypted FileMetaData has to fill the footer to its last byte. */
    private void checkModule(int start) {
      long expected = (long) footerLength - start - 4;
      if (expected < MODULE_OVERHEAD - 4 || footer.length - start < 4) {
        throw malformed(
            "behind its " + start + " bytes there is no room for the encrypted file metadata");
      }
      long found =
          Integer.toUnsignedLong(
              ByteBuffer.wrap(footer, start, 4).order(ByteOrder.LITTLE_ENDIAN).getInt());
      if (found != expected) {
        throw malformed(
            String.format(
                "the encrypted file metadata gives its length as %d bytes, expected %d",
                found, expected));
      }
    }

    private void expect(String field, boolean rightType) {
      if (!rightType) {
        throw malformed(field + " has the wrong type");
      }
    }

    private void once(String field, Object before) {
      if (before != null) {
        throw malformed(field + " is there twice");
      }
    }

    private TamperedException malformed(String what) {
      return tampered(
          path,
          fileLength,
          String.format(
              "its footer of %d bytes does not parse as file crypto metadata: %s",
              footerLength, what));
    }
  }
}
