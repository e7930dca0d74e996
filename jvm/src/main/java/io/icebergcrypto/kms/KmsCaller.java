package io.icebergcrypto.kms;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * Who asks a KMS and for which table, for those who read the KMS's log or this program's. It goes
 * along with the calls of a thread, as Iceberg's KeyManagementClient has no place for it. It is
 * told and no more: no key is bound to it, so that a table that is renamed, or used by another
 * catalog or application, stays readable.
 */
public final class KmsCaller {
  /** What all requests over HTTP say of the program; AWS adds it to the SDK's own words. */
  static final String PROGRAM = "iceberg-crypto";

  private static final Pattern APPLICATION = Pattern.compile("[A-Za-z0-9._-]{1,100}");
  private static final ThreadLocal<String> TABLE = new ThreadLocal<>();
  private static final ThreadLocal<String> APPLICATION_ID = new ThreadLocal<>();

  private KmsCaller() {}

  /**
   * The application id that a catalog's properties give.
   *
   * @return null when they give none
   * @throws InvalidConfigurationException when it cannot stand in a header
   */
  static String application(Map<String, String> properties) {
    String id = new Settings(properties).optional(KmsProperties.APPLICATION_ID);
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

  /** Runs calls of an application; null: nobody knows which. */
  static <T> T as(String applicationId, Supplier<T> calls) {
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

  /** The table that this thread's calls are for; null: none, or nobody said. */
  static String table() {
    return TABLE.get();
  }

  /** The application whose calls they are; null: nobody said. */
  static String application() {
    return APPLICATION_ID.get();
  }

  /** The value of the header User-Agent. */
  static String userAgent() {
    String id = application();
    return id == null ? PROGRAM : PROGRAM + " app/" + id;
  }
}
