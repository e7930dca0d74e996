package io.icebergcrypto.io;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.checked.ExpectedFile;
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
    ByteBuffer keyMetadata;
    try {
      JsonObject json =
          Json.object(new String(sealed, streamLength, length, StandardCharsets.UTF_8));
      keyMetadata =
          manager.unsealed(
              trusted(manager, KeyEntries.key(json.getAsJsonObject("kek")), file),
              KeyEntries.key(json.getAsJsonObject("key")),
              location);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw Evidence.isWrongTag(e)
          ? file.changed("its key does not decrypt with its KEK")
          : file.unreadableKeyMetadata(null, e);
    }

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

  /**
   * The KEK as the table has it. One that has left the table since is the file's own, which anybody
   * can write who can write to the storage: it has to be under the table's master key.
   */
  private static EncryptedKey trusted(
      TableEncryptionManager manager, EncryptedKey kek, ExpectedFile file) {
    EncryptedKey own = manager.key(kek.keyId());
    if (own == null && !manager.tableKeyId().equals(kek.encryptedById())) {
      throw file.changed("its KEK is not the table's, nor under the table's master key");
    }

    return own == null ? kek : own;
  }

  /** The location, behind its length: no location's begins with another's. */
  private static byte[] prefix(String location) {
    byte[] name = location.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Integer.BYTES + name.length).putInt(name.length).put(name).array();
  }
}
