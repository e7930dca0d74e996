package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import java.io.EOFException;
import java.io.IOException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.hadoop.fs.ChecksumException;

/**
 * Reads of a file, of which what the storage threw is kept: a format's own errors about what the
 * file says are of the same classes.
 */
public final class WatchedReads {
  private volatile IOException failure;

  /** A read, or another use of the storage. */
  public interface Access<T> {
    /** Makes it. */
    T run() throws IOException;
  }

  /** Makes a read. An end that comes too early, or a wrong checksum, is of the file. */
  public <T> T watched(Access<T> access) throws IOException {
    try {
      return access.run();
    } catch (EOFException | ChecksumException e) {
      throw e;
    } catch (IOException e) {
      this.failure = e;
      throw e;
    }
  }

  /**
   * The error of somebody who made these reads.
   *
   * @param error what the format's own reader threw
   * @param ofStorage makes one of what the storage threw
   * @param ofFile makes one when it threw nothing
   */
  public IcebergCryptoException typed(
      Exception error,
      Function<IOException, IcebergCryptoException> ofStorage,
      Supplier<IcebergCryptoException> ofFile) {
    IOException thrown = failure;
    return Causes.typed(error)
        .orElseGet(() -> thrown == null ? ofFile.get() : ofStorage.apply(thrown));
  }
}
