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
  private volatile IOException failure; // the last one
  private volatile boolean overcome; // the storage has answered since

  /** A read, or another use of the storage. */
  public interface Access<T> {
    /** Makes it. */
    T run() throws IOException;
  }

  /** Makes a read. An end that comes too early, or a wrong checksum, is of the file. */
  public <T> T watched(Access<T> access) throws IOException {
    try {
      T answer = access.run();
      this.overcome = true;
      return answer;
    } catch (EOFException | ChecksumException e) {
      throw e;
    } catch (IOException e) {
      this.failure = e;
      this.overcome = false;
      throw e;
    }
  }

  /**
   * The error of the code that made these reads. It is the storage's when the last read failed, or
   * when it was caused by one that did: a reader that tries again and succeeds has met no failure.
   *
   * @param error what the format's own reader threw
   * @param ofStorage makes one of what the storage threw
   * @param ofFile makes one when the error is not the storage's
   */
  public IcebergCryptoException typed(
      Exception error,
      Function<IOException, IcebergCryptoException> ofStorage,
      Supplier<IcebergCryptoException> ofFile) {
    IOException thrown = failure;
    boolean stands = thrown != null && (!overcome || Causes.any(error, e -> e == thrown));
    return Causes.typed(error).orElseGet(() -> stands ? ofStorage.apply(thrown) : ofFile.get());
  }
}
