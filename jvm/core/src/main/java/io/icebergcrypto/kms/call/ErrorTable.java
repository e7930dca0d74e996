package io.icebergcrypto.kms.call;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What the errors of a KMS mean: rows of three lines, with an empty line in between.
 *
 * <pre>
 * KeyNotFound &lt;- ^404\b
 * {kms} has no key '{key}'
 * Check encryption.key-id.
 * </pre>
 *
 * The first is the exception's type and a regular expression for what the KMS told; the others are
 * the problem and the hint. The first row that fits counts, and the last one fits always. {@code
 * {name}} stands for a value of the call, {@code {1}} for the expression's first group.
 */
public final class ErrorTable {
  /** The constructor of an exception of ours. */
  @FunctionalInterface
  private interface Type {
    IcebergCryptoException with(String problem, String hint, Throwable cause);
  }

  private record Row(Pattern told, Type type, String problem, String hint) {}

  private static final Map<String, Type> TYPES =
      Map.of(
          "AccessDenied", AccessDeniedException::new,
          "BadWrappedKey", BadWrappedKeyException::new,
          "IcebergCrypto", IcebergCryptoException::new,
          "InvalidConfiguration", InvalidConfigurationException::new,
          "KeyDisabled", KeyDisabledException::new,
          "KeyNotFound", KeyNotFoundException::new,
          "KmsUnavailable", KmsUnavailableException::new,
          "LoginFailed", LoginFailedException::new,
          "NotSupported", NotSupportedException::new);

  private static final Pattern PLACE = Pattern.compile("\\{([\\w-]+)}");

  private final List<Row> rows;

  private ErrorTable(List<Row> rows) {
    this.rows = rows;
  }

  /** Reads the rows. */
  public static ErrorTable of(String text) {
    return new ErrorTable(Stream.of(text.strip().split("\n\n")).map(ErrorTable::row).toList());
  }

  private static Row row(String text) {
    String[] lines = text.split("\n");
    String[] rule = lines[0].split(" <- ?", 2);
    return new Row(
        Pattern.compile(rule[1], Pattern.DOTALL),
        Objects.requireNonNull(TYPES.get(rule[0]), rule[0]),
        lines[1],
        lines[2]);
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
    String type = error.getClass().getSimpleName().replaceFirst("Exception$", "");
    return TYPES.getOrDefault(type, IcebergCryptoException::new).with(problem, error.hint(), error);
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
