package io.icebergcrypto.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's own parser reads what is written. */
class SqlNamesTest {
  /** {@code make nightly} has others. */
  private static final int SEED =
      Integer.parseInt(System.getenv().getOrDefault("ICEBERG_CRYPTO_SEED", "0"));

  private static final ParserInterface SPARK = CatalystSqlParser$.MODULE$;
  private static final String[] PIECES = {
    "a", "T", "_", "0", "-", ".", " ", "`", "``", "'", "\"", "\\", "\\n", "%", "%s", "é", "表", "😀",
    "/", "*", "files", "select", "\n", "--", ";", "$", "{}", "*/"
  };

  @Test
  void plainNamesStayAsTheyAre() {
    assertThat(SqlNames.full("lake", TableIdentifier.of("db", "t"))).isEqualTo("lake.db.t");
    assertThat(SqlNames.full("lake", TableIdentifier.of("x.y", "a`b")))
        .isEqualTo("lake.`x.y`.`a``b`");
    assertThat(SqlNames.full("my-lake", Namespace.of("a", "b"))).isEqualTo("`my-lake`.a.b");
    assertThat(SqlNames.full("lake", Namespace.empty())).isEqualTo("lake");
    assertThat(SqlNames.call("rotate_kek", "`my-lake`.db.`it's`", "rewrap => true"))
        .isEqualTo(
            "CALL `my-lake`.system.rotate_kek(table => '`my-lake`.db.`it\\'s`', rewrap => true)");
  }

  @Test
  void anyNameIsReadAsItWas() throws Exception {
    Random random = new Random(SEED);
    for (int round = 0; round < 2000; round++) {
      String catalog = name(random);
      String[] namespace =
          IntStream.range(0, random.nextInt(3)).mapToObj(i -> name(random)).toArray(String[]::new);
      String table = name(random);
      String full = SqlNames.full(catalog, namespace, table);
      List<String> parts = new ArrayList<>(List.of(namespace));
      parts.add(table);
      assertThat(parsed(SqlNames.withoutCatalog(full))).isEqualTo(parts);
      parts.add(0, catalog);
      assertThat(parsed(full)).isEqualTo(parts);
      assertThat(parsed(SqlNames.catalogOf(full))).containsExactly(catalog);
      assertThat(SPARK.parseExpression(SqlNames.literal(full)))
          .isInstanceOfSatisfying(
              Literal.class, text -> assertThat(text.value()).hasToString(full));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"select", "table", "files", "T", "_1"})
  void wordsOfSqlAreNames(String word) throws Exception {
    assertThat(parsed(SqlNames.full(word, new String[] {word}, word)))
        .containsExactly(word, word, word);
  }

  /** Statements and names of tables are made by one class. */
  @Test
  void noOtherClassMakesThem() throws IOException {
    Pattern byHand =
        Pattern.compile(
            "table(\"\\s*\\+\\s*\")? => '%"
                + "|ame(\\(\\))?\\.replaceFirst\\(\"(\\\\\\\\\\.\\.\\*|\\^\\[\\^\\.)"
                + "|fullTableName");
    Path sources = Path.of(System.getProperty("iceberg.crypto.root"), "jvm");
    try (Stream<Path> files = Files.walk(sources)) {
      List<Path> found =
          files
              .filter(file -> file.toString().matches(".*/src/main/java/.*\\.java"))
              .filter(file -> byHand.matcher(text(file)).find())
              .toList();
      assertThat(found).isEmpty();
    }
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String name(Random random) {
    StringBuilder name = new StringBuilder();
    for (int pieces = 1 + random.nextInt(6); pieces > 0; pieces--) {
      name.append(PIECES[random.nextInt(PIECES.length)]);
    }

    return name.toString();
  }

  private static List<String> parsed(String name) throws Exception {
    return CollectionConverters.asJava(SPARK.parseMultipartIdentifier(name));
  }
}
