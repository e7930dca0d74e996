package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.DecryptionKeyRetriever;
import org.apache.parquet.crypto.KeyAccessDeniedException;

/**
 * The keys of one file, as Parquet's key tools find them; errors name the file, and the columns
 * that the key is for.
 *
 * @param columns finds the columns with the master key of key metadata; asked after an error
 */
record KeysOfFile(DecryptionKeyRetriever keys, Path file, Function<byte[], List<String>> columns)
    implements DecryptionKeyRetriever {
  @Override
  public byte[] getKey(byte[] keyMetaData) {
    try {
      return keys.getKey(keyMetaData);
    } catch (KeyAccessDeniedException e) {
      throw new KeyAccessDeniedException(e.getMessage(), named(e, keyMetaData));
    } catch (RuntimeException e) {
      throw named(e, keyMetaData);
    }
  }

  private IcebergCryptoException named(RuntimeException error, byte[] keyMetaData) {
    return Causes.typed(error)
        .map(cause -> named(cause, columns.apply(keyMetaData)))
        .orElseGet(() -> ofMaterial(error));
  }

  private IcebergCryptoException ofMaterial(RuntimeException error) {
    if (Causes.any(error, KeysOfFile::isOfStorage)) {
      return new IcebergCryptoException(
          String.format("The key material beside %s cannot be read: %s", file, problem(error)),
          "Check that the storage is up and that its credentials allow reading it.",
          error);
    }

    return new IcebergCryptoException(
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

  private IcebergCryptoException named(IcebergCryptoException cause, List<String> found) {
    if (found.isEmpty()) {
      return cause.withHint(
          String.format(
              "The key is one of %s; columns under other keys can be read: select them by name.",
              file));
    }

    return cause
        .inFile(
            String.format(
                "%s '%s' of %s",
                found.size() == 1 ? "Column" : "Columns", String.join("', '", found), file))
        .withHint("Columns under other keys can be read: select them by name.");
  }

  /** Without what Parquet quotes of the key material. */
  private static String problem(RuntimeException error) {
    String message = String.valueOf(error.getMessage());
    return message.startsWith("Failed to parse") ? "it is not in JSON" : message;
  }
}
