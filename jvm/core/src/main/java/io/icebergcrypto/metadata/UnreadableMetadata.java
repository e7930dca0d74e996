package io.icebergcrypto.metadata;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import java.io.EOFException;
import java.util.Arrays;
import java.util.zip.ZipException;
import org.apache.iceberg.exceptions.RuntimeIOException;
import org.apache.iceberg.util.Tasks;

/**
 * Tells metadata files that cannot be parsed (cut off, empty, another file) from failing storage.
 */
final class UnreadableMetadata {
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
        ? ofAnswer(e)
        : of("its metadata file", e);
  }

  /** The error for one file. */
  static TamperedException of(String file, RuntimeException e) {
    return new TamperedException(
        String.format(
            "its metadata cannot be read, %s is no table metadata: %s", file, e.getMessage()),
        "The file was cut off or changed after it was committed; no retry helps. Restore it from a"
            + " backup or an object version, or register the table's last good metadata file.",
        e);
  }

  /** The error for what a REST server sent. */
  private static TamperedException ofAnswer(RuntimeException e) {
    return new TamperedException(
        "the catalog's server answered with what is no table metadata: " + e.getMessage(),
        "Look at what the server sends, and at the table's last metadata file if it has one: either"
            + " that was changed, or the server does not keep to Iceberg's REST specification; then"
            + " use a version of it that does, or another catalog.",
        e);
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
