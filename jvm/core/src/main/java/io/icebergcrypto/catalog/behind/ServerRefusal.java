package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import java.util.regex.Pattern;
import org.apache.iceberg.exceptions.BadRequestException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * A REST server's answer that it does not know a request, or does not do what it asks for: nothing
 * was done. An answer that leaves open whether it was (5xx but 501, a time-out), and one about a
 * login, a permission or a conflict, are none.
 */
public final class ServerRefusal {
  // Iceberg's error names the statuses that it has no exception for
  private static final Pattern CODE = Pattern.compile("\\(code: (405|406|422), ");

  private ServerRefusal() {}

  /**
   * Whether an error is one.
   *
   * @param client the catalog or the operations that threw it
   */
  public static boolean is(RuntimeException e, Object client) {
    return client.getClass().getPackage() == RESTCatalog.class.getPackage() && is(e);
  }

  private static boolean is(RuntimeException e) {
    return e instanceof BadRequestException // 400
        || e instanceof IllegalArgumentException // 400 that says so
        || e instanceof NoSuchTableException // 404
        || e instanceof NotFoundException
        || e instanceof UnsupportedOperationException // 501, or no such endpoint
        || e.getClass() == RESTException.class && CODE.matcher(e.getMessage()).find();
  }

  /** What to say where a table would be created in a transaction. */
  public static IcebergCryptoException ofStagedCreate(RuntimeException e) {
    return new OfStagedCreate(
        "the catalog's server does not create it in a transaction (stage-create): "
            + e.getMessage(),
        "Nothing was made. CREATE TABLE first, then INSERT INTO it; in Java, create() and then"
            + " newTransaction() of the table.",
        e);
  }

  /** Whether an error is of {@link #ofStagedCreate}. */
  public static boolean isOfStagedCreate(RuntimeException e) {
    return e instanceof OfStagedCreate;
  }

  private static final class OfStagedCreate extends NotSupportedException {
    private static final long serialVersionUID = 1L;

    private OfStagedCreate(String problem, String hint, Throwable cause) {
      super(problem, hint, cause);
    }
  }

  /** What to say where the server does not take a table's keys. */
  public static IcebergCryptoException ofKeys(RuntimeException e) {
    return new NotSupportedException(
        "the catalog's server refused a commit that adds a key: " + e.getMessage(),
        "Nothing was committed. If the server does not know the update add-encryption-key of"
            + " Iceberg's REST specification, it cannot keep encrypted tables: use a version that"
            + " does, or another catalog.",
        e);
  }
}
