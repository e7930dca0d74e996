package io.icebergcrypto.kms.config;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Reads the catalog properties of a KMS client. Names have no case, as in Spark's catalog options,
 * whatever map they are in: what another case hid would be neither read nor refused. Every error
 * names the property, and none shows the value of a secret.
 */
public final class PropertyReader {
  private static final Set<String> SECRETS =
      Set.of(
          "secret", "password", "passphrase", "token", "key", "pin", "credential", "credentials");

  private final Map<String, String> properties;

  public PropertyReader(Map<String, String> properties) {
    this.properties = properties;
  }

  /**
   * A value that must be there.
   *
   * @param example told in the error's hint
   * @throws InvalidConfigurationException when it is missing or blank
   */
  public String required(String property, String example) {
    String value = value(property);
    if (value == null || value.isBlank()) {
      throw new InvalidConfigurationException(
          "Property " + property + (value == null ? " is missing" : " is empty"),
          "Set it, for example " + property + "=" + example + ".");
    }

    return value.trim();
  }

  /**
   * A value that may be missing.
   *
   * @return null when it is
   * @throws InvalidConfigurationException when it is there and blank
   */
  public String optional(String property) {
    String value = value(property);
    if (value == null) {
      return null;
    }

    if (value.isBlank()) {
      throw new InvalidConfigurationException(
          "Property " + property + " is empty", "Give it a value, or leave it out.");
    }

    return value.trim();
  }

  public String optional(String property, String defaultValue) {
    String value = optional(property);
    return value == null ? defaultValue : value;
  }

  /** {@code true} or {@code false}, and nothing else. */
  public boolean flag(String property, boolean defaultValue) {
    String value = optional(property);
    if (value == null) {
      return defaultValue;
    }

    if (value.equalsIgnoreCase("true") || value.equalsIgnoreCase("false")) {
      return Boolean.parseBoolean(value);
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is neither true nor false: '%s'", property, value),
        "Write true or false.");
  }

  /** A number of milliseconds, more than 0. */
  public long millis(String property, long defaultValue) {
    return number(
        property, defaultValue, 1, "a number of milliseconds, 1 or more", "10000 for 10 s");
  }

  /**
   * A whole number.
   *
   * @param least the smallest that is allowed
   * @param what told in the error, after "is not"
   * @param example told in the error's hint, after "such as"
   */
  public long number(String property, long defaultValue, long least, String what, String example) {
    return number(property, defaultValue, least, Long.MAX_VALUE, what, example);
  }

  /** The same, of a size that a count has. */
  public int count(String property, int defaultValue, int least, String what, String example) {
    return (int) number(property, defaultValue, least, Integer.MAX_VALUE, what, example);
  }

  private long number(
      String property, long defaultValue, long least, long most, String what, String example) {
    String value = optional(property);
    if (value == null) {
      return defaultValue;
    }

    try {
      long number = Long.parseLong(value);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException e) {
      // told below, as a number out of range is
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is not %s: '%s'", property, what, value),
        "Give one, such as " + example + ".");
  }

  /**
   * A property that Iceberg has, too, by another name.
   *
   * @return null when neither is set
   * @throws InvalidConfigurationException when both are, and differ
   */
  public String either(String ours, String icebergs) {
    String value = optional(ours);
    String same = optional(icebergs);
    if (value != null && same != null && !value.equals(same)) {
      throw contradiction(ours, icebergs);
    }

    return value == null ? same : value;
  }

  /** The error for two names of one property that say different things. */
  public InvalidConfigurationException contradiction(String ours, String icebergs) {
    return new InvalidConfigurationException(
        String.format(
            "Properties %s (%s) and %s (%s) contradict each other",
            ours, optional(ours), icebergs, optional(icebergs)),
        "They mean the same: keep one of the two; " + icebergs + " is Iceberg's own name for it.");
  }

  /**
   * The properties below a prefix (which ends with a dot), by the rest of their names, sorted. The
   * rest keeps its case.
   *
   * @throws InvalidConfigurationException when prefixes that differ in case give one of them two
   *     values
   */
  public Map<String, String> withPrefix(String prefix) {
    Map<String, String> found = new TreeMap<>();
    properties.forEach(
        (property, value) -> {
          if (isBelow(property, prefix) && property.length() > prefix.length()) {
            String name = property.substring(prefix.length());
            String other = found.put(name, value);
            if (other != null && !other.equals(value)) {
              throw twice(prefix + name);
            }
          }
        });
    return found;
  }

  /** Whether a name starts with a prefix, in any case. */
  public static boolean isBelow(String name, String prefix) {
    return name.regionMatches(true, 0, prefix, 0, prefix.length());
  }

  /** What a property is set to; null: it is not. */
  private String value(String property) {
    List<String> values =
        properties.entrySet().stream()
            .filter(one -> one.getKey().equalsIgnoreCase(property))
            .map(Map.Entry::getValue)
            .distinct()
            .toList();
    if (values.size() > 1) {
      throw twice(property);
    }

    return values.isEmpty() ? null : values.get(0);
  }

  static InvalidConfigurationException twice(String property) {
    return new InvalidConfigurationException(
        "Property " + property + " is set twice, by names that differ in case, to two values",
        "Keep one of the two.");
  }

  /**
   * Refuses a property that a class of the user's takes and whose name is that of a secret: it
   * would travel.
   *
   * @throws InvalidConfigurationException when it is; the error does not show the value
   */
  public void refuseIfNamedAsSecret(String property) {
    if (isNamedAsSecret(property)) {
      refuseSecret(
          property,
          "a property that the credentials provider takes for it (" + property + "-file, say)");
    }
  }

  /**
   * Whether a property's name says that it holds a secret: its last word does, as in {@code
   * x.client-secret} and {@code x.apiToken}, but not in {@code x.token-file}.
   */
  private static boolean isNamedAsSecret(String property) {
    String lastWord =
        property
            .substring(property.lastIndexOf('.') + 1)
            .replaceFirst("^.*(?:[-_]|(?<=[a-z])(?=[A-Z]))", "")
            .toLowerCase(Locale.ROOT);
    return SECRETS.contains(lastWord);
  }

  /**
   * Refuses a property that would hold a secret.
   *
   * @param useInstead the properties that name a variable or a file
   * @throws InvalidConfigurationException when it is set; the error does not show the value
   */
  public void refuseSecret(String property, String useInstead) {
    if (value(property) != null) {
      throw new InvalidConfigurationException(
          "Property " + property + " would show a secret to anyone who can see the session",
          "Put it into an environment variable or a file, and name that with " + useInstead + ".");
    }
  }
}
