package io.icebergcrypto.kms.call;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What the errors of a KMS mean: rows of a pattern, an exception type, and the texts for the user.
 * The first row whose pattern is found in what the KMS told counts. {@code {name}} in a text stands
 * for a value of the call; {@code {1}} for the pattern's first group.
 */
public final class ErrorTable {
  /** The constructor of an exception of ours. */
  @FunctionalInterface
  public interface Type {
    IcebergCryptoException with(String problem, String hint, Throwable cause);
  }

  private record Row(Pattern told, Type type, String problem, String hint) {}

  private static final Pattern PLACE = Pattern.compile("\\{([\\w-]+)}");

  private static final ErrorTable RETOLD =
      new ErrorTable()
          .row("^KmsUnavailable", KmsUnavailableException::new, "{problem}", "{hint}")
          .row("^LoginFailed", LoginFailedException::new, "{problem}", "{hint}")
          .row("^AccessDenied", AccessDeniedException::new, "{problem}", "{hint}")
          .row("^InvalidConfig", InvalidConfigurationException::new, "{problem}", "{hint}")
          .row("", IcebergCryptoException::new, "{problem}", "{hint}");

  private final List<Row> rows = new ArrayList<>();

  /**
   * Adds a row.
   *
   * @param told a regular expression
   */
  public ErrorTable row(String told, Type type, String problem, String hint) {
    rows.add(new Row(Pattern.compile(told, Pattern.DOTALL), type, problem, hint));
    return this;
  }

  /**
   * The error for what a KMS told.
   *
   * @param told its code, and whatever else the patterns look for
   * @param values what the places in the texts stand for
   * @param cause null when it may quote a secret
   * @throws IllegalStateException when no row fits; a table ends with one that always does
   */
  public IcebergCryptoException error(String told, Map<String, ?> values, Throwable cause) {
    for (Row row : rows) {
      Matcher found = row.told().matcher(told);
      if (found.find()) {
        return row.type()
            .with(fill(row.problem(), values, found), fill(row.hint(), values, found), cause);
      }
    }

    throw new IllegalStateException("no row for an error of the KMS");
  }

  /**
   * The same error with another problem, for one from a layer that does not know the key.
   *
   * @param problem what is wrong, with the error's own problem in it
   */
  public static IcebergCryptoException retold(IcebergCryptoException error, String problem) {
    return RETOLD.error(
        error.getClass().getSimpleName(), Map.of("problem", problem, "hint", error.hint()), error);
  }

  private static String fill(String text, Map<String, ?> values, Matcher found) {
    return PLACE
        .matcher(text)
        .replaceAll(
            place -> {
              String name = place.group(1);
              Object value =
                  Character.isDigit(name.charAt(0))
                      ? found.group(Integer.parseInt(name))
                      : values.get(name);
              return Matcher.quoteReplacement(value == null ? place.group() : value.toString());
            })
        .strip();
  }
}
