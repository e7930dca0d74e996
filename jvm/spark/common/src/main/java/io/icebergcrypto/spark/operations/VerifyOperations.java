package io.icebergcrypto.spark.operations;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.EarlierReport;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.spark.inspect.TablesExamined;
import io.icebergcrypto.spark.table.CatalogTables;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.table.Renames;
import io.icebergcrypto.spark.table.TableNames;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.FolderVerifier;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** Verification, and which tables there are. */
final class VerifyOperations {
  private static final Problem NONE = new Problem(null, null, null, null, false, null);

  /** How many of the files that an earlier report vouches for are checked again by default. */
  private static final double RECHECK = 0.01;

  /** The parameters that {@link #options} reads. */
  private static final String OPTIONS =
      "structure BOOLEAN, deep BOOLEAN, all_snapshots BOOLEAN, sample DOUBLE, seed BIGINT, strays"
          + " BOOLEAN, resume STRING, since STRING, since_key_id STRING, recheck DOUBLE";

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
          "table STRING, namespace STRING, "
              + OPTIONS
              + ", report BOOLEAN, except_tables ARRAY<STRING>, threads BIGINT",
          "table STRING NOT NULL, kind STRING NOT NULL, magic STRING, encrypted BOOLEAN, files"
              + " BIGINT NOT NULL, bytes BIGINT NOT NULL, problem STRING, code STRING, unchecked"
              + " BOOLEAN NOT NULL, path STRING, hint STRING, report STRING",
          VerifyOperations::verify);

  static final List<Operation> ALL =
      List.of(
          VERIFY,
          Operation.call(
              "verify_catalog",
              "name STRING NOT NULL, " + OPTIONS + ", except_tables ARRAY<STRING>, threads BIGINT",
              VerifyOperations::verifyCatalog),
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
              "list_tables", "name STRING NOT NULL", call -> Answer.value(call.tables().listed())),
          Operation.call(
              "select_tables",
              "name STRING NOT NULL, except_tables ARRAY<STRING>",
              call -> Answer.value(selected(call, call.tables()))),
          Operation.call(
                  "examine_tables",
                  "names ARRAY<STRING> NOT NULL",
                  call ->
                      Answer.value(
                          TablesExamined.of(call.spark(), call.texts("names"), call.progress())))
              .onDriver());

  private VerifyOperations() {}

  private static CatalogTables.Selected selected(Call call, CatalogTables tables) {
    return tables.without(tables.listed(), call.texts("except_tables"));
  }

  /**
   * The options of a verification, by the names of its parameters.
   *
   * @param home the catalog whose KMS checks the signature of an earlier report
   */
  static VerifyOptions options(Call call, Supplier<EncryptedCatalog> home) {
    return new VerifyOptions(
        Depth.of(call.flag("structure"), call.flag("deep")),
        call.flag("all_snapshots"),
        call.share("sample", 1.0),
        call.number("seed", 0),
        call.flag("strays"),
        call.text("resume"),
        sinceOrNull(call, home));
  }

  private static EarlierReport sinceOrNull(Call call, Supplier<EncryptedCatalog> home) {
    String document = call.text("since");
    String keyId = call.text("since_key_id");
    double recheck = call.share("recheck", RECHECK);
    if (document == null) {
      if (keyId != null || recheck != RECHECK) {
        throw new InvalidConfigurationException(
            (keyId == null ? "recheck" : "since_key_id") + " is given without since",
            "Give the signed report on which this verification rests.");
      }

      return null;
    }

    CatalogContext context = home.get().context();
    return EarlierReport.of(document, keyId, recheck, context.allowedKeyIds(), context.kms());
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

    VerifyOptions options = options(call, call::catalog);
    TableCatalog catalog = call.target().plugin();
    if (call.table() != null) {
      return verified(
              call.spark(),
              SqlNames.full(catalog.name(), call.table()),
              options,
              call.flag("report"),
              new ReportRoom(),
              call.progress(),
              Function.identity())
          .found();
    }

    List<String> parts = namespace == null ? List.of() : TableNames.parts(call.spark(), namespace);
    CatalogTables tables = new CatalogTables(call.spark(), catalog, parts);
    CatalogTables.Selected selected = selected(call, tables);
    EachTable<Verified<List<Map<String, Object>>>> found =
        each(call, tables, selected, options, call.flag("report"), Answer::rows);
    List<Map<String, Object>> rows = new ArrayList<>();
    selected
        .leftOut()
        .forEach(
            left ->
                rows.add(row(left.table(), "left out", null, left.encrypted(), 0, 0, NONE, null)));
    found.views().forEach(view -> rows.add(row(view, "view", null, null, 0, 0, NONE, null)));
    found.done().values().forEach(one -> rows.addAll(one.found()));
    unchecked(found).forEach(left -> rows.add(unchecked(left)));
    return new Answer(rows, rows);
  }

  private static Answer verifyCatalog(Call call) {
    CatalogTables tables = call.tables();
    VerifyOptions options = options(call, () -> Target.catalog(call.spark(), tables.catalogName()));
    CatalogTables.Selected selected = selected(call, tables);
    EachTable<Verified<Object>> found =
        each(call, tables, selected, options, false, answer -> answer.value());
    Map<String, Object> value = new LinkedHashMap<>();
    value.put("reports", found.done().values().stream().map(Verified::found).toList());
    value.put("not_checked", unchecked(found));
    value.put("views", found.views());
    value.put("left_out", selected.leftOut());
    return Answer.value(value);
  }

  /**
   * Verifies each table.
   *
   * @param kept what is kept of the answer about one
   */
  private static <T> EachTable<Verified<T>> each(
      Call call,
      CatalogTables tables,
      CatalogTables.Selected selected,
      VerifyOptions options,
      boolean withReport,
      Function<Answer, T> kept) {
    ReportRoom room = new ReportRoom();
    CachingKmsClient kms = tables.kmsOrNull();
    long retries = kms == null ? 0 : kms.metrics().retries();
    Predicate<Verified<T>> isCutOff =
        one -> one.cutOff() && kms != null && kms.metrics().retries() > retries;
    SparkSession spark = call.spark();
    int threads = call.threads();
    Function<List<Listed>, EachTable<Verified<T>>> pass =
        listed -> {
          boolean isOne = threads == 1 || listed.size() == 1;
          Supplier<Progress> told =
              isOne ? call::progress : () -> new Progress(spark.sparkContext());
          Function<String, Verified<T>> one =
              table ->
                  verified(
                      spark, table, options.forTable(table), withReport, room, told.get(), kept);
          return EachTable.of(tables, listed, isOne ? 1 : threads, call.progress(), one, isCutOff);
        };
    return new Renames<>(tables, threads, call.progress(), pass, Verified::uuid).followed(selected);
  }

  /** A table that cannot be checked does not stop the rest; one that was dropped is left out. */
  private static List<EachTable.Left> unchecked(EachTable<?> found) {
    return Stream.of(ManyTables.left(found), found.notEncrypted()).flatMap(List::stream).toList();
  }

  /**
   * What was found of a table.
   *
   * @param cutOff whether all but its metadata could not be read
   */
  private record Verified<T>(T found, String uuid, boolean cutOff) {}

  private static <T> Verified<T> verified(
      SparkSession spark,
      String table,
      VerifyOptions options,
      boolean withReport,
      ReportRoom room,
      Progress progress,
      Function<Answer, T> kept) {
    try (VerifyResult result = TableVerifier.verify(spark, table, options, progress)) {
      Problem whole =
          new Problem(
              "table", null, result.ok() ? null : result.summary(), hint(result), false, null);
      Map<String, Object> value = result.toMap();
      room.cut(value);
      String report = withReport ? Json.of(value) : null;
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

      for (Object one : (List<?>) value.get("problems")) {
        Problem problem = (Problem) one;
        rows.add(row(table, problem.kind(), null, null, 1, 0, problem, null));
      }

      String uuid = (String) value.get("table_uuid");
      return new Verified<>(kept.apply(new Answer(value, rows)), uuid, result.isCutOff());
    }
  }

  /** What is to be known of a table beside its problems. */
  private static String hint(VerifyResult result) {
    Finding left = result.plaintextLeft();
    String hint =
        Stream.of(left == null ? null : left.problem() + ". " + left.hint(), result.notRead())
            .filter(Objects::nonNull)
            .collect(Collectors.joining(" "));
    return hint.isEmpty() ? null : hint;
  }

  private static Map<String, Object> unchecked(EachTable.Left left) {
    String code = ProblemCode.UNREADABLE.label();
    String hint = left.hint().isEmpty() ? null : left.hint();
    Problem problem = new Problem("table", null, left.problem(), hint, true, code);
    return row(left.table(), "table", null, false, 0, 0, problem, null);
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
