package io.icebergcrypto.io;

import com.google.gson.JsonObject;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.checked.ExpectedFile;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.KeyEntries;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * The bytes of a file that no metadata leads to, and so nothing has its key: an AES GCM stream,
 * then the entries of its KEK and of its key as JSON, as {@code encryption-keys} would have them,
 * and the length of the JSON in four bytes. The stream begins with the file's location, so that
 * nobody can put such a file in another's place.
 */
final class SealedContent {
  private static final int MOST_JSON = 1 << 16;
  private static final int MOST_NAME = 300; // more than any KMS's key ids have

  private SealedContent() {}

  /** Encrypts content for a location, with a KEK of the table. */
  static byte[] seal(TableEncryptionManager manager, String location, byte[] content)
      throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile(location);
    NativeEncryptionOutputFile file = manager.encrypt(target);
    try (PositionOutputStream out = file.encryptingOutputFile().create()) {
      out.write(prefix(location));
      out.write(content);
    }

    byte[] stream = target.toByteArray();
    TableEncryptionManager.SealedKey sealed =
        manager.sealed(file.keyMetadata().copyWithLength(stream.length));
    Map<String, Object> entries =
        Map.of("kek", KeyEntries.json(sealed.kek()), "key", KeyEntries.json(sealed.key()));
    byte[] json = Json.of(entries).getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(stream.length + json.length + Integer.BYTES)
        .put(stream)
        .put(json)
        .putInt(json.length)
        .array();
  }

  /**
   * Decrypts what was sealed for a location.
   *
   * @throws IcebergCryptoException the KMS's, or when it is not what was written
   */
  static byte[] open(TableEncryptionManager manager, String location, byte[] sealed) {
    ExpectedFile file = new ExpectedFile(manager.tableName(), location, (long) sealed.length);
    int end = sealed.length - Integer.BYTES;
    int length = end < 0 ? -1 : ByteBuffer.wrap(sealed).getInt(end);
    if (length < 0 || length > Math.min(end, MOST_JSON)) {
      throw file.changed("it does not end with its keys");
    }

    int streamLength = end - length;
    ByteBuffer keyMetadata = keyMetadata(manager, file, sealed, streamLength, length);
    byte[] stream = Arrays.copyOf(sealed, streamLength);
    InMemoryInputFile input = new InMemoryInputFile(location, stream);
    try (InputStream in =
        manager.decrypt(EncryptedFiles.encryptedInput(input, keyMetadata)).newStream()) {
      byte[] prefix = prefix(location);
      if (!Arrays.equals(in.readNBytes(prefix.length), prefix)) {
        throw file.changed("it was written for another place");
      }

      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + location, e);
    }
  }

  private static ByteBuffer keyMetadata(
      TableEncryptionManager manager, ExpectedFile file, byte[] sealed, int from, int length) {
    EncryptedKey kek;
    EncryptedKey key;
    try {
      JsonObject json = Json.object(new String(sealed, from, length, StandardCharsets.UTF_8));
      kek = KeyEntries.key(json.getAsJsonObject("kek"));
      key = KeyEntries.key(json.getAsJsonObject("key"));
    } catch (RuntimeException e) {
      throw file.unreadableKeyMetadata(null, e);
    }

    EncryptedKey own = manager.key(kek.keyId());
    boolean isKnown = own != null && Kek.isWrappedAlike(own, kek);
    TableEncryptionManager newest = isKnown ? manager : manager.newest();
    return keyMetadata(newest, file, kek, key);
  }

  private static ByteBuffer keyMetadata(
      TableEncryptionManager manager, ExpectedFile file, EncryptedKey kek, EncryptedKey key) {
    EncryptedKey own = manager.key(kek.keyId());
    try {
      return manager.unsealed(
          own == null ? trusted(manager, kek, file) : own, key, file.location());
    } catch (BadWrappedKeyException e) {
      throw own == null ? ofFormerKey(manager, kek, file, e) : e;
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw Evidence.isWrongTag(e)
          ? file.changed("its key does not decrypt with its KEK")
          : file.unreadableKeyMetadata(null, e);
    }
  }

  /**
   * A KEK that has left the table since, or never was the table's. It is the file's own, which
   * anyone with write access to the storage can write: it has to be under the table's master key.
   */
  private static EncryptedKey trusted(
      TableEncryptionManager manager, EncryptedKey kek, ExpectedFile file) {
    if (!manager.tableKeyId().equals(kek.encryptedById())) {
      throw ofFormerKey(manager, kek, file, null);
    }

    return kek;
  }

  /**
   * Rotations can be the reason as well as tampering: nothing shows which. The names are the file's
   * own, so no call is suggested with them: a forger would name a key of their own, and
   * rotate_master_key would wrap the table's KEKs for them.
   */
  private static IcebergCryptoException ofFormerKey(
      TableEncryptionManager manager, EncryptedKey kek, ExpectedFile file, Throwable cause) {
    boolean other = !manager.tableKeyId().equals(kek.encryptedById());
    return new NotSupportedException(
            String.format(
                "staged manifest %s is not read: the table no longer has its KEK %s, which was"
                    + " wrapped by master key '%s', as the file says, and %s",
                file.location(),
                shown(kek.keyId()),
                shown(kek.encryptedById()),
                other
                    ? "the table's is '" + manager.tableKeyId() + "'"
                    : "the KMS does not unwrap it"),
            String.format(
                "Keep the job's state and all files. If your own records or the KMS's audit log"
                    + " show that %s, keys were rotated while a Flink job had files to commit:"
                    + " docs/rotation.md, \"Jobs of Flink\", has the steps. Otherwise the file is"
                    + " forged: %s, and find out who can write to the storage.",
                other
                    ? "this was the table's master key"
                    : "the table had another version of this key then, or another KMS",
                other ? "do not use that key" : "enable no version and change no KMS for it"),
            cause)
        .inTable(manager.tableName());
  }

  /** A name that anyone may have written, without what would make a sentence of it. */
  private static String shown(String name) {
    String plain = String.valueOf(name).replaceAll("[^\\p{L}\\p{N}._:/@=+~-]", "?");
    return plain.length() > MOST_NAME ? plain.substring(0, MOST_NAME) + "..." : plain;
  }

  /** The location, behind its length: no location's begins with another's. */
  private static byte[] prefix(String location) {
    byte[] name = location.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Integer.BYTES + name.length).putInt(name.length).put(name).array();
  }
}
