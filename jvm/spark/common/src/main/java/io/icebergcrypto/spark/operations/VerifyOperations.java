package io.icebergcrypto.spark.operations;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.Finding;
import io.icebergcrypto.catalog.OurCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.spark.inspect.TablesExamined;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.FolderVerifier;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.CatalogTables;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.TableLoader;
import io.icebergcrypto.spark.verify.scan.TableNames;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** Verification, and which tables there are. */
final class VerifyOperations {
  private static final Problem NONE = new Problem(null, null, null, null, false, null);

  /**
   * What verify_table of Python does, for a table, a namespace or the whole catalog. Rows, for each
   * table: one of kind {@code table} that says whether it is all right, one for each kind and
   * format of files, and one for each problem (the first 1000), in which {@code problem} is not
   * null. A view, and a table that {@code except_tables} names, has one of kind {@code view} or
   * {@code left out} alone. With {@code report => true} the first of them has the report as JSON.
   */
  static final Operation VERIFY =
      Operation.procedure(
          "verify_encryption",
          "Checks that the files of tables are encrypted",
          "table STRING, namespace STRING, deep BOOLEAN, all_snapshots BOOLEAN, depth STRING,"
              + " sample DOUBLE, seed BIGINT, strays BOOLEAN, resume STRING, report BOOLEAN,"
              + " except_tables ARRAY<STRING>",
          "table STRING NOT NULL, kind STRING NOT NULL, magic STRING, encrypted BOOLEAN, files"
              + " BIGINT NOT NULL, bytes BIGINT NOT NULL, problem STRING, code STRING, unchecked"
              + " BOOLEAN NOT NULL, path STRING, hint STRING, report STRING",
          VerifyOperations::verify);

  static final List<Operation> ALL =
      List.of(
          VERIFY,
          Operation.call(
              "verify_folder",
              "uri STRING NOT NULL, deep BOOLEAN",
              call -> {
                try (VerifyResult result =
                    FolderVerifier.verify(
                        call.spark(), call.text("uri"), call.flag("deep"), call.progress())) {
                  return Answer.value(result.toMap());
                }
              }),
          Operation.call(
              "list_tables",
              "name STRING NOT NULL",
              call -> Answer.value(selected(call, List.of()).listed())),
          Operation.call(
              "select_tables",
              "name STRING NOT NULL, except_tables ARRAY<STRING>",
              call -> Answer.value(selected(call, call.texts("except_tables")))),
          Operation.call("is_listed", "name STRING NOT NULL", VerifyOperations::isListed),
          Operation.call(
                  "examine_tables",
                  "names ARRAY<STRING> NOT NULL",
                  call -> Answer.value(TablesExamined.of(call.spark(), call.texts("names"))))
              .onDriver());

  private VerifyOperations() {}

  /** Tables of a catalog or a namespace, with or without {@code .*} after its name. */
  private static CatalogTables.Selected selected(Call call, List<String> exceptTables) {
    List<String> parts = TableNames.parts(call.spark(), call.text("name"));
    TableCatalog catalog = CatalogTables.catalog(call.spark(), parts.get(0));
    String[] namespace = parts.subList(1, parts.size()).toArray(String[]::new);
    return selected(call, catalog, namespace, exceptTables);
  }

  private static CatalogTables.Selected selected(
      Call call, TableCatalog catalog, String[] namespace, List<String> exceptTables) {
    List<CatalogTables.Listed> listed =
        CatalogTables.of(call.spark(), catalog, OurCatalog.encryptedOrNull(catalog), namespace);
    return CatalogTables.without(call.spark(), catalog, listed, exceptTables);
  }

  private static Answer isListed(Call call) {
    String name = call.text("name");
    TableCatalog catalog =
        CatalogTables.catalog(call.spark(), TableNames.parts(call.spark(), name).get(0));
    return Answer.value(
        CatalogTables.lists(call.spark(), catalog, OurCatalog.encryptedOrNull(catalog), name));
  }

  /** The options of a verification, by the names of its parameters. */
  static VerifyOptions options(Call call) {
    String depth = call.text("depth");
    boolean deep = call.flag("deep");
    if (deep && depth != null && Depth.of(depth) != Depth.DEEP) {
      throw new InvalidConfigurationException(
          String.format("deep => true, and depth => '%s'", depth), "Leave one of them out.");
    }

    return new VerifyOptions(
        deep ? Depth.DEEP : depth == null ? Depth.MAGIC : Depth.of(depth),
        call.flag("all_snapshots"),
        call.share("sample", 1.0),
        call.number("seed", 0),
        call.flag("strays"),
        call.text("resume"));
  }

  private static Answer verify(Call call) {
    String namespace = call.text("namespace");
    if (call.table() != null && namespace != null) {
      throw new InvalidConfigurationException(
          "Both a table and a namespace are given", "Give one of them, or none for all tables.");
    }

    List<String> exceptTables = call.texts("except_tables");
    if (call.table() != null && !exceptTables.isEmpty()) {
      throw new InvalidConfigurationException(
          "Both a table and except_tables are given",
          "except_tables leaves out tables of a namespace or a catalog.");
    }

    VerifyOptions options = options(call);
    TableCatalog catalog = call.target().plugin();
    if (call.table() != null) {
      return verified(call, SqlNames.full(catalog.name(), call.table()), options);
    }

    String[] parts =
        namespace == null
            ? new String[0]
            : TableNames.parts(call.spark(), namespace).toArray(String[]::new);
    CatalogTables.Selected tables = selected(call, catalog, parts, exceptTables);
    List<Map<String, Object>> rows = new ArrayList<>();
    for (CatalogTables.LeftOut left : tables.leftOut()) {
      rows.add(row(left.table(), "left out", null, left.encrypted(), 0, 0, NONE, null));
    }

    for (CatalogTables.Listed listed : tables.listed()) {
      if (listed.view()) {
        rows.add(row(listed.name(), "view", null, null, 0, 0, NONE, null));
      } else if (listed.failure() != null) {
        rows.add(unchecked(listed.name(), listed.failure(), listed.hint()));
      } else {
        rows.addAll(verifiedOrUnchecked(call, listed.name(), options.forTable(listed.name())));
      }
    }

    return new Answer(rows, rows);
  }

  /** A table that cannot be checked does not stop the rest. */
  private static List<Map<String, Object>> verifiedOrUnchecked(
      Call call, String table, VerifyOptions options) {
    try {
      return verified(call, table, options).rows();
    } catch (CancelledException e) {
      throw e;
    } catch (IcebergCryptoException e) {
      boolean isDropped =
          TableLoader.isAbsent(e)
              && !CatalogTables.lists(call.spark(), call.target().plugin(), call.catalog(), table);
      return isDropped ? List.of() : List.of(unchecked(table, e.problem(), e.hint()));
    } catch (RuntimeException e) { // of the catalog behind, or of Spark
      CancelledException.rethrow(e);
      return List.of(unchecked(table, e.toString(), null));
    }
  }

  private static Answer verified(Call call, String table, VerifyOptions options) {
    try (VerifyResult result =
        TableVerifier.verify(call.spark(), table, options, call.progress())) {
      Finding left = result.plaintextLeft();
      Problem whole =
          new Problem(
              "table",
              null,
              result.ok() ? null : result.summary(),
              left == null ? null : left.problem() + ". " + left.hint(),
              false,
              null);
      Map<String, Object> value = result.toMap();
      String report = call.flag("report") ? Json.of(value) : null;
      List<Map<String, Object>> rows = new ArrayList<>();
      rows.add(
          row(
              table,
              "table",
              null,
              result.ok(),
              result.fileCount(),
              result.byteCount(),
              whole,
              report));
      for (Tally.Count count : result.counts()) {
        rows.add(
            row(
                table,
                count.kind(),
                count.magic(),
                count.encrypted(),
                count.files(),
                count.bytes(),
                NONE,
                null));
      }

      for (Problem problem : result.problems()) {
        rows.add(row(table, problem.kind(), null, null, 1, 0, problem, null));
      }

      return new Answer(value, rows);
    }
  }

  private static Map<String, Object> unchecked(String table, String words, String hint) {
    String code = ProblemCode.UNREADABLE.label();
    Problem problem = new Problem("table", null, words, hint, true, code);
    return row(table, "table", null, false, 0, 0, problem, null);
  }

  /** Null is what a column does not say. */
  private static Map<String, Object> row(
      String table,
      String kind,
      String magic,
      Boolean encrypted,
      long files,
      long bytes,
      Problem problem,
      String report) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("table", table);
    row.put("kind", kind);
    row.put("magic", magic);
    row.put("encrypted", encrypted);
    row.put("files", files);
    row.put("bytes", bytes);
    row.put("problem", problem.problem());
    row.put("code", problem.code());
    row.put("unchecked", problem.unchecked());
    row.put("path", problem.path());
    row.put("hint", problem.hint());
    row.put("report", report);
    return row;
  }
}
