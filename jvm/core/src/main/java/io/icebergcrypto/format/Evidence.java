package io.icebergcrypto.format;

import java.util.Objects;
import java.util.stream.Stream;
import javax.crypto.BadPaddingException;

/**
 * What of an error proves that bytes are not those that were written. Everything else that a reader
 * meets (a later version, a library that is missing, too little memory, failing storage) is a
 * failure, which accuses nobody. docs/tamper.md has the whole table.
 */
public final class Evidence {
  private Evidence() {}

  /**
   * Whether an authentication tag did not match: {@link javax.crypto.AEADBadTagException}, or its
   * superclass, by which some providers say it. Other security exceptions are of keys, algorithms
   * and providers.
   */
  public static boolean isWrongTag(Throwable error) {
    return causes(error).anyMatch(BadPaddingException.class::isInstance);
  }

  /**
   * Whether Parquet says that of a module: its tag does not match, or the length in front of it is
   * one that no module has.
   */
  public static boolean isOfParquet(Throwable error) {
    return isWrongTag(error) || causes(error).anyMatch(Evidence::isWrongLength);
  }

  private static boolean isWrongLength(Throwable error) {
    StackTraceElement[] stack = error.getStackTrace();
    return stack.length > 0
        && stack[0].getClassName().contains("org.apache.parquet.crypto.") // relocated by Iceberg
        && error.getMessage() != null
        && error.getMessage().matches("Wrong (input length|length of encrypted metadata:) -?\\d+");
  }

  private static Stream<Throwable> causes(Throwable error) {
    return Stream.iterate(error, Objects::nonNull, Throwable::getCause);
  }
}
