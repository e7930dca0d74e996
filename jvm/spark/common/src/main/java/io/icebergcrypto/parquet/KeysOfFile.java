package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.call.Causes;
import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.DecryptionKeyRetriever;
import org.apache.parquet.crypto.KeyAccessDeniedException;

/** The keys of one file, as Parquet's key tools find them; errors name the file. */
final class KeysOfFile implements DecryptionKeyRetriever {
  private final DecryptionKeyRetriever keys;
  private final Path file;

  KeysOfFile(DecryptionKeyRetriever keys, Path file) {
    this.keys = keys;
    this.file = file;
  }

  @Override
  public byte[] getKey(byte[] keyMetaData) {
    try {
      return keys.getKey(keyMetaData);
    } catch (KeyAccessDeniedException e) {
      throw new KeyAccessDeniedException(e.getMessage(), named(e));
    } catch (RuntimeException e) {
      throw named(e);
    }
  }

  private IcebergCryptoException named(RuntimeException error) {
    return Causes.typed(error)
        .map(cause -> cause.withHint(others()))
        .orElseGet(() -> ofMaterial(error));
  }

  private IcebergCryptoException ofMaterial(RuntimeException error) {
    if (Causes.any(error, KeysOfFile::isOfStorage)) {
      return new IcebergCryptoException(
          String.format("The key material beside %s cannot be read: %s", file, problem(error)),
          "Check that the storage is up and that its credentials allow reading it.",
          error);
    }

    return new TamperedException(
        String.format("The key material of %s does not lead to its key: %s", file, problem(error)),
        "It was damaged or forged, its file beside the Parquet file is missing, or another"
            + " program wrote it. Restore it from a backup.",
        error);
  }

  /** Jackson's errors are of Java's class, too. */
  private static boolean isOfStorage(Throwable cause) {
    return cause instanceof IOException
        && !(cause instanceof FileNotFoundException)
        && !cause.getClass().getName().contains("jackson");
  }

  private String others() {
    return String.format(
        "The key is one of %s; columns under other keys can be read: select them by name.", file);
  }

  /** Without what Parquet quotes of the key material. */
  private static String problem(RuntimeException error) {
    String message = String.valueOf(error.getMessage());
    return message.startsWith("Failed to parse") ? "it is not in JSON" : message;
  }
}
