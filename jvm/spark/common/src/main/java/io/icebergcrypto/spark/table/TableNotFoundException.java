package io.icebergcrypto.spark.table;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;

/**
 * There is no Iceberg table of this name, or no such namespace.
 *
 * <p>See docs/errors.md#tablenotfounderror.
 */
public class TableNotFoundException extends InvalidConfigurationException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public TableNotFoundException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
