package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.Keks;
import io.icebergcrypto.format.Sha256;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/** KEKs in a table's metadata: their age, and new ones, made as Iceberg's manager makes them. */
public final class Kek {
  /** The property of a KEK's entry that says when it was made; Iceberg's name. */
  public static final String TIMESTAMP = "KEY_TIMESTAMP";

  /**
   * The property of a KEK's entry by which its bytes are recognized: {@code v1.} and 64 bits in
   * hex, derived from the KEK in the way of NIST SP 800-108r1, section 4.1 (HMAC-SHA-256 in counter
   * mode, one block). It tells nothing else of the KEK. Iceberg ignores it.
   */
  public static final String CHECK_VALUE = "KEY_CHECK_VALUE";

  /** How long a KEK encrypts and signs: Iceberg's 730 days (NIST SP 800-57). */
  public static final long LIFE_MS = Duration.ofDays(730).toMillis();

  private static final String CHECK_VALUE_V1 = "v1.";
  private static final byte[] LABEL =
      "io.icebergcrypto key check value v1".getBytes(StandardCharsets.US_ASCII);

  private Kek() {}

  /** When a KEK was made, in milliseconds since the epoch; 0 when its entry does not say. */
  public static long madeAt(EncryptedKey kek) {
    String made = kek.properties() == null ? null : kek.properties().get(TIMESTAMP);
    try {
      return made == null ? 0 : Long.parseLong(made);
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  /** Whether a KEK may encrypt and sign at a time, in milliseconds since the epoch. */
  public static boolean lives(EncryptedKey kek, long atMs) {
    return madeAt(kek) > atMs - LIFE_MS;
  }

  /** The KEKs of a table: see {@link Keks}. */
  public static List<EncryptedKey> all(TableMetadata metadata) {
    return Keks.of(metadata);
  }

  /** The KEK that was made last. */
  public static Optional<EncryptedKey> newest(TableMetadata metadata) {
    return all(metadata).stream().max(Comparator.comparingLong(Kek::madeAt));
  }

  /** Whether two entries of a key have the same bytes, wrapped by the same key. */
  public static boolean isWrappedAlike(EncryptedKey one, EncryptedKey other) {
    return Objects.equals(one.encryptedById(), other.encryptedById())
        && Objects.equals(one.encryptedKeyMetadata(), other.encryptedKeyMetadata());
  }

  /** Whether a KEK's entry says how its bytes are recognized. */
  public static boolean hasCheckValue(EncryptedKey kek) {
    String told = checkValue(kek);
    return told != null && told.startsWith(CHECK_VALUE_V1); // one of a later version tells nothing
  }

  /** Whether bytes are those of a KEK, as far as its entry shows. */
  static boolean fits(EncryptedKey kek, ByteBuffer bytes) {
    return !hasCheckValue(kek) || checkValue(kek).equals(checkValue(bytes, ""));
  }

  private static String checkValue(EncryptedKey kek) {
    return kek.properties() == null ? null : kek.properties().get(CHECK_VALUE);
  }

  /**
   * By what the bytes of a KEK, or of a value key, are recognized: see {@link #CHECK_VALUE}.
   *
   * @param key its bytes; the caller overwrites them
   * @param context the name of a value key; of a KEK empty
   */
  public static String checkValue(ByteBuffer key, String context) {
    return CHECK_VALUE_V1 + HexFormat.of().formatHex(derived(key, LABEL, context, Long.SIZE));
  }

  /**
   * Derives bytes from a KEK for another purpose than encryption, in the way of NIST SP 800-108r1,
   * section 4.1: HMAC-SHA-256 in counter mode, one block.
   *
   * @param kek its bytes; the caller overwrites them
   * @param label the purpose
   * @param context what they are for, or empty
   * @param bits how many: 256 at the most
   */
  public static byte[] derived(ByteBuffer kek, byte[] label, String context, int bits) {
    byte[] bytes = KeyCache.copyOf(kek);
    byte[] block = {0, 0, 0, 1}; // its number
    try {
      byte[] hmac =
          Sha256.hmac(
              bytes,
              block,
              label,
              new byte[1],
              context.getBytes(StandardCharsets.UTF_8),
              ByteBuffer.allocate(Integer.BYTES).putInt(bits).array());
      return Arrays.copyOf(hmac, bits / Byte.SIZE);
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /**
   * Makes a KEK, newer than those of the table, so that it is the one in use from its commit on.
   *
   * @param kms wraps it, and has to unwrap it again before it is used
   * @throws IcebergCryptoException when the KMS does not wrap it
   */
  public static EncryptedKey make(
      String tableName, TableMetadata metadata, String keyId, KeyManagementClient kms) {
    int length = EncryptionProperties.dataKeyLength(tableName, metadata.properties());
    long newest = newest(metadata).map(Kek::madeAt).orElse(0L);
    try {
      return CallContext.forTable(
          tableName, metadata.uuid(), () -> make(length, newest, keyId, kms));
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  /**
   * The same.
   *
   * @param length in bytes: 16, 24 or 32
   * @param newest when the table's newest KEK was made, in milliseconds since the epoch; 0: none
   */
  public static EncryptedKey make(int length, long newest, String keyId, KeyManagementClient kms) {
    SecureRandom random = new SecureRandom();
    byte[] id = new byte[16];
    random.nextBytes(id);
    byte[] key = new byte[length];
    random.nextBytes(key);
    try {
      return new BaseEncryptedKey(
          Base64.getEncoder().encodeToString(id),
          UnwrapsAgain.wrapped(kms, ByteBuffer.wrap(key), keyId),
          keyId,
          Map.of(
              TIMESTAMP,
              String.valueOf(after(newest)),
              CHECK_VALUE,
              checkValue(ByteBuffer.wrap(key), "")));
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }

  /** Now; or later, if another client's clock was fast when it made the newest KEK. */
  private static long after(long newest) {
    return Math.max(System.currentTimeMillis(), newest == Long.MAX_VALUE ? newest : newest + 1);
  }
}
