package io.icebergcrypto.metadata;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The bytes of a KEK, checked before anyone uses or keeps them. A KMS, or what stands in front of
 * it, may answer wrong once: what is encrypted with such bytes could never be read, and what is
 * decrypted with them would look tampered with.
 */
public final class UnwrappedKek {
  /** The lengths of AES keys in bytes. */
  public static final Set<Integer> LENGTHS = Set.of(16, 24, 32);

  private static final Logger LOG = LoggerFactory.getLogger(UnwrappedKek.class);

  private UnwrappedKek() {}

  private enum Fit {
    YES,
    /** Nothing tells; or it does not decrypt what it should: it is wrong, or that was changed. */
    UNCLEAR,
    NO
  }

  /**
   * Unwraps a KEK. What does not fit its {@linkplain Kek#CHECK_VALUE check value}, or for want of
   * one does not decrypt a key that it encrypts, is asked for again, past every cache; so is what
   * nothing tells of.
   *
   * @param kek its entry, with the id of its master key
   * @param entries keys of its table, of which it may encrypt some
   * @throws BadWrappedKeyException when the KMS returns another key both times
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's own typed error
   */
  public static ByteBuffer of(
      EncryptedKey kek, Collection<EncryptedKey> entries, KeyManagementClient kms) {
    ByteBuffer first = kms.unwrapKey(kek.encryptedKeyMetadata(), kek.encryptedById());
    Fit fits = fit(kek, entries, first);
    if (fits == Fit.YES) {
      return first;
    }

    ByteBuffer second = UnwrapsAgain.by(kms, kek.encryptedKeyMetadata(), kek.encryptedById());
    boolean same = Objects.equals(first, second);
    if (!same && fit(kek, entries, second) == Fit.YES) {
      LOG.warn(
          "{} gave wrong bytes for KEK {}, and the right ones when asked again", kms, kek.keyId());
      return second;
    }

    if (same && fits == Fit.UNCLEAR) {
      return second; // who decrypts with it finds out what was changed
    }

    throw BadWrappedKeyException.ofAnswer(
        String.format(
            "KEK %s, which master key '%s' wrapped, cannot be used: %s returned %s",
            kek.keyId(),
            kek.encryptedById(),
            kms,
            same ? problem(kek, second) + ", twice" : "two different keys, neither of them right"),
        "Nothing was read or written with it. Check that the catalog's KMS is the one that wrapped"
            + " it, and the KMS itself: once that gives the right key, the table is readable. If"
            + " the KMS is right, encryption-keys was edited: restore that metadata file from a"
            + " backup or an object version.");
  }

  /** What tells that bytes are not those of a KEK; null when nothing does. */
  public static String problem(EncryptedKey kek, ByteBuffer bytes) {
    if (bytes == null || !LENGTHS.contains(bytes.remaining())) {
      return String.format(
          "%d bytes, which is not an AES key", bytes == null ? 0 : bytes.remaining());
    }

    return Kek.fits(kek, bytes) ? null : "a key that does not fit the KEK's check value";
  }

  private static Fit fit(EncryptedKey kek, Collection<EncryptedKey> entries, ByteBuffer bytes) {
    if (problem(kek, bytes) != null) {
      return Fit.NO;
    }

    return Kek.hasCheckValue(kek) || decryptsOne(kek, entries, bytes) ? Fit.YES : Fit.UNCLEAR;
  }

  /** Whether it decrypts a key that it encrypts. */
  private static boolean decryptsOne(
      EncryptedKey kek, Collection<EncryptedKey> entries, ByteBuffer bytes) {
    EncryptedKey encrypted =
        entries.stream()
            .filter(key -> kek.keyId().equals(key.encryptedById()))
            .filter(key -> key.encryptedKeyMetadata() != null)
            .findFirst()
            .orElse(null);
    if (encrypted == null) {
      return false;
    }

    StandardEncryptionManager manager =
        new StandardEncryptionManager(
            List.of(kek, encrypted), kek.encryptedById(), 16, new Answer(bytes));
    try {
      new KeyedFile("", encrypted.keyId()).decryptKeyMetadata(manager);
      return true;
    } catch (RuntimeException e) { // Iceberg's own, of any type
      return !Evidence.isWrongTag(e); // what it cannot decrypt for other reasons tells nothing
    }
  }

  /** A KMS that has one key. */
  private record Answer(ByteBuffer key) implements KeyManagementClient {
    @Override
    public ByteBuffer wrapKey(ByteBuffer bytes, String wrappingKeyId) {
      throw new UnsupportedOperationException("It wraps nothing");
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      return key.duplicate();
    }

    @Override
    public void initialize(Map<String, String> properties) {
      // it has its key
    }
  }
}
