package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import java.io.EOFException;
import java.util.Arrays;
import java.util.zip.ZipException;
import org.apache.iceberg.exceptions.RuntimeIOException;
import org.apache.iceberg.util.Tasks;

/**
 * Tells metadata that cannot be parsed (of a newer Iceberg, not whole, another file) from failing
 * storage. None of that shows that anyone changed a file.
 */
final class UnreadableMetadata {
  private static final String OF_JSON =
      "A read that ended early looks the same as a file that was cut off: load the table again. If"
          + " that does not help, compare the file with a backup or an object version of the same"
          + " name, and restore that one. An older metadata file lacks the commits since.";

  private static final String OF_TABLE =
      "It is complete JSON. A newer Iceberg, or a program that does not follow Iceberg's"
          + " specification, may have written it: update Iceberg, or find out which program did. If"
          + " it is another file, restore the one of this name from a backup or an object version."
          + " An older metadata file lacks the commits since.";

  private static final String OF_SERVER =
      "Load the table again. If that does not help, look at what the server sends, and at any proxy"
          + " in between: the server may be newer than this Iceberg, or not follow Iceberg's REST"
          + " specification; then update Iceberg, or use another version of the server.";

  private UnreadableMetadata() {}

  /**
   * The typed error for what a catalog behind failed with.
   *
   * @return null when the reason is another one, such as storage that fails
   */
  static IcebergCryptoException in(RuntimeException e) {
    if (e instanceof Tasks.UnrecoverableException
        && e.getCause() instanceof IcebergCryptoException typed) {
      return typed;
    }

    boolean unreadable = e instanceof RuntimeIOException ? isNoJson(e.getCause()) : isFromParser(e);
    if (!unreadable) {
      return null;
    }

    return passed(e, "org.apache.iceberg.rest.responses.LoadTableResponseParser")
        ? of("the catalog's server gave no table metadata", OF_SERVER, e)
        : of("its metadata file", e);
  }

  /**
   * The error for one file.
   *
   * @param e of a parser: of JSON, or of table metadata in whole JSON
   */
  static IcebergCryptoException of(String file, RuntimeException e) {
    return of(file + " is not table metadata", isFromParser(e) ? OF_TABLE : OF_JSON, e);
  }

  private static IcebergCryptoException of(String problem, String hint, RuntimeException e) {
    return isOfNewerFormat(e)
        ? new NotSupportedException(
            "a newer Iceberg wrote its metadata: " + e.getMessage(),
            "Update Iceberg and iceberg-crypto. Do not register an older metadata file: the commits"
                + " since would be lost.",
            e)
        : new IcebergCryptoException(
            String.format("its metadata cannot be read, %s: %s", problem, e.getMessage()), hint, e);
  }

  /** Iceberg compares the format version before all else. */
  static boolean isOfNewerFormat(RuntimeException e) {
    return e instanceof IllegalArgumentException
        && e.getMessage() != null
        && (e.getMessage().startsWith("Cannot read unsupported version ")
            || e.getMessage().startsWith("Unsupported format version")); // of a view
  }

  /** Jackson's exceptions, which Iceberg's runtime relocates, and gzip's. */
  private static boolean isNoJson(Throwable cause) {
    if (cause instanceof ZipException) {
      return true;
    }

    if (cause
        instanceof EOFException) { // a stream of the storage ended early, or the gzip data did
      StackTraceElement[] stack = cause.getStackTrace();
      return stack.length > 0 && stack[0].getClassName().startsWith("java.util.zip.");
    }

    for (Class<?> type = cause == null ? null : cause.getClass();
        type != null;
        type = type.getSuperclass()) {
      if (type.getName().endsWith(".JsonProcessingException")) {
        return true;
      }
    }

    return false;
  }

  /** JSON that is not metadata: an IllegalArgumentException, a NullPointerException and others. */
  private static boolean isFromParser(RuntimeException e) {
    return passed(e, "org.apache.iceberg.TableMetadataParser");
  }

  /** Whether a parser's method fromJson threw it. */
  private static boolean passed(RuntimeException e, String parser) {
    return Arrays.stream(e.getStackTrace())
        .anyMatch(
            frame ->
                frame.getClassName().equals(parser) && frame.getMethodName().equals("fromJson"));
  }
}
