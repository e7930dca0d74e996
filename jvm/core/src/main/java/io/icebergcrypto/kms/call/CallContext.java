package io.icebergcrypto.kms.call;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * The caller of a KMS, and for which table, for the KMS's log and this program's. It belongs to a
 * thread, as Iceberg's KeyManagementClient has no parameter for it. Names are only shown: no key is
 * bound to them, so that a table that is renamed, or used by another catalog or application, stays
 * readable. A table's UUID stays: keys are bound to it where the user chose so ({@code
 * TableBinding}), and the cache in memory always takes it into account.
 */
public final class CallContext {
  /** The program's name in all requests over HTTP; AWS has it besides the SDK's own name. */
  public static final String PROGRAM = "iceberg-crypto";

  private static final Pattern APPLICATION = Pattern.compile("[A-Za-z0-9._-]{1,100}");
  private static final ThreadLocal<String> TABLE = new ThreadLocal<>();
  private static final ThreadLocal<String> TABLE_UUID = new ThreadLocal<>();
  private static final ThreadLocal<String> APPLICATION_ID = new ThreadLocal<>();

  /** In place of the UUID in a call that only tries a master key. */
  public static final String NO_TABLE = "none";

  private CallContext() {}

  /**
   * The application id that a catalog's properties give.
   *
   * @return null when they do not give one
   * @throws InvalidConfigurationException when it cannot stand in a header
   */
  public static String application(Map<String, String> properties) {
    String id = new PropertyReader(properties).optional(KmsProperties.APPLICATION_ID);
    if (id != null && !APPLICATION.matcher(id).matches()) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is not an application's id: '%s'", KmsProperties.APPLICATION_ID, id),
          "Use up to 100 letters, digits, dots, dashes and underscores.");
    }

    return id;
  }

  /** Makes an id of a name that may have other characters, such as Spark's of an application. */
  public static String applicationId(String name) {
    String id = name.replaceAll("[^A-Za-z0-9._-]", "-");
    return id.substring(0, Math.min(id.length(), 100));
  }

  /** Runs calls that are for a table. */
  public static <T> T forTable(String name, Supplier<T> calls) {
    return with(TABLE, name, calls);
  }

  /**
   * Runs calls that are for a table.
   *
   * @param uuid the table's UUID; null: not known
   */
  public static <T> T forTable(String name, String uuid, Supplier<T> calls) {
    return forTable(name, () -> boundTo(uuid, calls));
  }

  /** Runs calls for keys of the table with this UUID; null: not known. */
  public static <T> T boundTo(String uuid, Supplier<T> calls) {
    return with(TABLE_UUID, uuid, calls);
  }

  /** Runs calls of an application; null: it is not known. */
  public static <T> T as(String applicationId, Supplier<T> calls) {
    return with(APPLICATION_ID, applicationId, calls);
  }

  private static <T> T with(ThreadLocal<String> place, String value, Supplier<T> calls) {
    String before = place.get();
    place.set(value);
    try {
      return calls.get();
    } finally {
      if (before == null) {
        place.remove();
      } else {
        place.set(before);
      }
    }
  }

  /** The table that this thread's calls are for; null: none, or it is not known. */
  public static String table() {
    return TABLE.get();
  }

  /**
   * The UUID of the table whose key is wrapped or unwrapped; {@link #NO_TABLE} where a master key
   * is tried; null: it is not known.
   */
  static String tableUuid() {
    return TABLE_UUID.get();
  }

  /**
   * The UUID of the table whose key is wrapped or unwrapped.
   *
   * @param setting what asks for it, for the error
   * @throws InvalidConfigurationException when the table is not known
   */
  public static String requireTableUuid(String setting) {
    String uuid = tableUuid();
    if (uuid == null) {
      throw new InvalidConfigurationException(
          String.format("%s asks for the table's UUID, but the caller did not pass it", setting),
          "The KMS was not called. Only this project's catalogs tell a KMS client which table a key"
              + " is for: use the table through one of them.");
    }

    return uuid;
  }

  /** The application whose calls they are; null: it is not known. */
  public static String application() {
    return APPLICATION_ID.get();
  }

  /** The value of the header User-Agent. */
  public static String userAgent() {
    String id = application();
    return id == null ? PROGRAM : PROGRAM + " app/" + id;
  }
}
