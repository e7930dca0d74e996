package io.icebergcrypto.config;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * Names of tables as text. Within the code a table is its catalog and its identifier; where people
 * read its name, or paste a statement with it into SQL, it is written here, so that Spark reads the
 * same name out of it again, whatever characters it has.
 */
public final class SqlNames {
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final Pattern FIRST = Pattern.compile("`(?:[^`]|``)*`|[^.`]+");

  private SqlNames() {}

  /** A table's full name: {@code lake.db.t} or {@code lake.db.`a.b`}. */
  public static String full(String catalog, TableIdentifier table) {
    return full(catalog, table.namespace().levels(), table.name());
  }

  /** The same of a table whose namespace is given by its levels. */
  public static String full(String catalog, String[] namespace, String table) {
    return joined(
        Stream.concat(
            Stream.concat(Stream.of(catalog), Arrays.stream(namespace)), Stream.of(table)));
  }

  /** A namespace's full name; that of a catalog for its root. */
  public static String full(String catalog, Namespace namespace) {
    return full(catalog, namespace.levels());
  }

  /** The same of a namespace that is given by its levels. */
  public static String full(String catalog, String[] namespace) {
    return joined(Stream.concat(Stream.of(catalog), Arrays.stream(namespace)));
  }

  /** A namespace's name without a catalog. */
  public static String namespace(String[] levels) {
    return joined(Arrays.stream(levels));
  }

  private static String joined(Stream<String> parts) {
    return parts.map(SqlNames::quoted).collect(Collectors.joining("."));
  }

  /** One part of a name, in back quotes where SQL needs them. */
  public static String quoted(String part) {
    return PLAIN.matcher(part).matches() ? part : "`" + part.replace("`", "``") + "`";
  }

  /** A text as SQL has it, in quotes. */
  public static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  /** The catalog in a full name, quoted as there. */
  public static String catalogOf(String fullName) {
    Matcher first = FIRST.matcher(fullName);
    return first.lookingAt() ? first.group() : fullName;
  }

  /** A full name without its catalog. */
  public static String withoutCatalog(String fullName) {
    return fullName.substring(Math.min(catalogOf(fullName).length() + 1, fullName.length()));
  }

  /**
   * The call of a procedure for a table, in the table's catalog.
   *
   * @param fullName the table's full name
   * @param more further arguments, such as {@code dry_run => true}
   */
  public static String call(String procedure, String fullName, String... more) {
    return Stream.concat(Stream.of("table => " + literal(fullName)), Arrays.stream(more))
        .collect(
            Collectors.joining(
                ", ", "CALL " + catalogOf(fullName) + ".system." + procedure + "(", ")"));
  }

  /** An argument of a procedure that is a text. */
  public static String argument(String name, String value) {
    return name + " => " + literal(value);
  }
}
