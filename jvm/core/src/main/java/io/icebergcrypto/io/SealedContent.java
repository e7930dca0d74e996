package io.icebergcrypto.io;

import com.google.gson.JsonObject;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.SqlNames;
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
    EncryptedKey own = null;
    EncryptedKey kek = null;
    try {
      JsonObject json = Json.object(new String(sealed, from, length, StandardCharsets.UTF_8));
      kek = KeyEntries.key(json.getAsJsonObject("kek"));
      own = manager.key(kek.keyId());
      return manager.unsealed(
          own == null ? trusted(manager, kek, file) : own,
          KeyEntries.key(json.getAsJsonObject("key")),
          file.location());
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
   * anybody can write who can write to the storage: it has to be under the table's master key.
   */
  private static EncryptedKey trusted(
      TableEncryptionManager manager, EncryptedKey kek, ExpectedFile file) {
    if (!manager.tableKeyId().equals(kek.encryptedById())) {
      throw ofFormerKey(manager, kek, file, null);
    }

    return kek;
  }

  /** Rotations can be the reason as well as somebody's work: nothing tells. */
  private static IcebergCryptoException ofFormerKey(
      TableEncryptionManager manager, EncryptedKey kek, ExpectedFile file, Throwable cause) {
    String wrapper = kek.encryptedById();
    boolean other = !manager.tableKeyId().equals(wrapper);
    return new NotSupportedException(
            String.format(
                "staged manifest %s is not read: the table no longer has its KEK %s, which was"
                    + " wrapped by master key '%s', and %s",
                file.location(),
                kek.keyId(),
                wrapper,
                other
                    ? "the table's is '" + manager.tableKeyId() + "'"
                    : "the KMS does not unwrap it"),
            String.format(
                "Keys were rotated while a job of Flink had files to commit (docs/rotation.md,"
                    + " \"Jobs of Flink\"). Keep the job's state and all files: its rows are in"
                    + " them. %s, let the job commit, and rotate again. If that never was the"
                    + " table's key, somebody who can write to the storage put this file there:"
                    + " find out who.",
                other
                    ? String.format(
                        "If '%s' was the table's master key before, go back to it for that time:"
                            + " %s",
                        wrapper,
                        SqlNames.call(
                            "rotate_master_key",
                            manager.tableName(),
                            SqlNames.argument("new_key_id", wrapper)))
                    : String.format(
                        "Enable the version of '%s' that the KMS had then, or give the job's"
                            + " catalog the KMS that the table had then",
                        wrapper)),
            cause)
        .inTable(manager.tableName());
  }

  /** The location, behind its length: no location's begins with another's. */
  private static byte[] prefix(String location) {
    byte[] name = location.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Integer.BYTES + name.length).putInt(name.length).put(name).array();
  }
}
