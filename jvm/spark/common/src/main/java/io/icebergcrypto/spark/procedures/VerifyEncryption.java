package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.Finding;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.CatalogTables;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Progress;
import io.icebergcrypto.spark.verify.scan.TableLoader;
import io.icebergcrypto.spark.verify.scan.TableNames;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL system.verify_encryption(...)}: what {@code verify_table} of Python does, for a
 * table, a namespace or the whole catalog. Rows, for each table: one of kind {@code table} that
 * says whether it is all right, one for each kind and format of files, and one for each problem
 * (the first 1000), in which {@code problem} is not null. A view, and a table that {@code
 * except_tables} names, has one of kind {@code view} or {@code left out} alone. With {@code report
 * => true} the first of them has the report as JSON.
 */
final class VerifyEncryption extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "verify_encryption";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("kind", DataTypes.StringType, false)
          .add("magic", DataTypes.StringType)
          .add("encrypted", DataTypes.BooleanType)
          .add("files", DataTypes.LongType, false)
          .add("bytes", DataTypes.LongType, false)
          .add("problem", DataTypes.StringType)
          .add("code", DataTypes.StringType)
          .add("unchecked", DataTypes.BooleanType, false)
          .add("path", DataTypes.StringType)
          .add("hint", DataTypes.StringType)
          .add("report", DataTypes.StringType);

  private static final int REPORT = 9; // its place among the parameters
  private static final int EXCEPT_TABLES = 10;

  private static final Problem NONE = new Problem(null, null, null, null, false, null);

  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  VerifyEncryption(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  @Override
  public String description() {
    return "Checks that the files of tables are encrypted";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {
      optionalText("table"),
      optionalText("namespace"),
      optional("deep", DataTypes.BooleanType),
      optional("all_snapshots", DataTypes.BooleanType),
      optionalText("depth"),
      optional("sample", DataTypes.DoubleType),
      optional("seed", DataTypes.LongType),
      optional("strays", DataTypes.BooleanType),
      optionalText("resume"),
      optional("report", DataTypes.BooleanType),
      optionalTexts("except_tables")
    };
  }

  private static Parameter optional(String name, DataType type) {
    return Parameter.optional(name, type);
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    if (!input.isNullAt(0)) {
      if (!input.isNullAt(1)) {
        throw new InvalidConfigurationException(
            "Both a table and a namespace are given", "Give one of them, or none for all tables.");
      }

      if (!texts(input, EXCEPT_TABLES).isEmpty()) {
        throw new InvalidConfigurationException(
            "Both a table and except_tables are given",
            "except_tables leaves out tables of a namespace or a catalog.");
      }

      return super.call(input);
    }

    SparkSession spark = SparkSession.active();
    VerifyOptions options = options(input);
    String[] namespace =
        input.isNullAt(1)
            ? new String[0]
            : TableNames.parts(spark, given(input, 1)).toArray(String[]::new);
    CatalogTables.Selected tables =
        CatalogTables.without(
            spark,
            catalog,
            CatalogTables.of(spark, catalog, encrypted, namespace),
            texts(input, EXCEPT_TABLES));
    List<Object[]> rows = new ArrayList<>();
    for (CatalogTables.LeftOut left : tables.leftOut()) {
      rows.add(new Line(left.table(), "left out", null, left.encrypted(), 0, 0, NONE, null).row());
    }

    for (CatalogTables.Listed listed : tables.listed()) {
      if (listed.view()) {
        rows.add(new Line(listed.name(), "view", null, null, 0, 0, NONE, null).row());
      } else if (listed.failure() != null) {
        rows.add(unchecked(listed.name(), listed.failure(), listed.hint()));
      } else {
        rows.addAll(
            verifiedOrUnchecked(
                listed.name(), options.forTable(listed.name()), isTrue(input, REPORT)));
      }
    }

    return scan(rows);
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    return verified(SqlNames.full(catalog.name(), table), options(input), isTrue(input, REPORT));
  }

  private static VerifyOptions options(InternalRow input) {
    boolean deep = isTrue(input, 2);
    String depth = input.isNullAt(4) ? null : input.getUTF8String(4).toString();
    if (deep && depth != null && Depth.of(depth) != Depth.DEEP) {
      throw new InvalidConfigurationException(
          String.format("deep => true, and depth => '%s'", depth), "Leave one of them out.");
    }

    return new VerifyOptions(
        deep ? Depth.DEEP : depth == null ? Depth.MAGIC : Depth.of(depth),
        isTrue(input, 3),
        input.isNullAt(5) ? 1.0 : input.getDouble(5),
        input.isNullAt(6) ? 0L : input.getLong(6),
        isTrue(input, 7),
        input.isNullAt(8) ? null : input.getUTF8String(8).toString());
  }

  private static boolean isTrue(InternalRow input, int index) {
    return !input.isNullAt(index) && input.getBoolean(index);
  }

  /** A table that cannot be checked does not stop the rest. */
  private List<Object[]> verifiedOrUnchecked(String table, VerifyOptions options, boolean report) {
    try {
      return verified(table, options, report);
    } catch (CancelledException e) {
      throw e;
    } catch (IcebergCryptoException e) {
      boolean isDropped =
          TableLoader.isAbsent(e)
              && !CatalogTables.lists(SparkSession.active(), catalog, encrypted, table);
      return isDropped ? List.of() : List.<Object[]>of(unchecked(table, e.problem(), e.hint()));
    } catch (RuntimeException e) { // of the catalog behind, or of Spark
      CancelledException.rethrow(e);
      return List.<Object[]>of(unchecked(table, e.toString(), null));
    }
  }

  private static List<Object[]> verified(String table, VerifyOptions options, boolean report) {
    SparkSession spark = SparkSession.active();
    try (VerifyResult result =
        TableVerifier.verify(spark, table, options, new Progress(spark.sparkContext()))) {
      List<Object[]> rows = new ArrayList<>();
      Finding left = result.plaintextLeft();
      Problem whole =
          new Problem(
              "table",
              null,
              result.ok() ? null : result.summary(),
              left == null ? null : left.problem() + ". " + left.hint(),
              false,
              null);
      rows.add(
          new Line(
                  table,
                  "table",
                  null,
                  result.ok(),
                  result.fileCount(),
                  result.byteCount(),
                  whole,
                  report ? result.json() : null)
              .row());
      for (Tally.Count count : result.counts()) {
        rows.add(
            new Line(
                    table,
                    count.kind(),
                    count.magic(),
                    count.encrypted(),
                    count.files(),
                    count.bytes(),
                    NONE,
                    null)
                .row());
      }

      for (Problem problem : result.problems()) {
        rows.add(new Line(table, problem.kind(), null, null, 1, 0, problem, null).row());
      }

      return rows;
    }
  }

  private static Object[] unchecked(String table, String words, String hint) {
    String code = ProblemCode.UNREADABLE.label();
    Problem problem = new Problem("table", null, words, hint, true, code);
    return new Line(table, "table", null, false, 0, 0, problem, null).row();
  }

  /** A row of {@link #OUTPUT}; null is what a column does not say. */
  private record Line(
      String table,
      String kind,
      String magic,
      Boolean encrypted,
      long files,
      long bytes,
      Problem problem,
      String report) {
    Object[] row() {
      return new Object[] {
        UTF8String.fromString(table),
        UTF8String.fromString(kind),
        UTF8String.fromString(magic),
        encrypted,
        files,
        bytes,
        UTF8String.fromString(problem.problem()),
        UTF8String.fromString(problem.code()),
        problem.unchecked(),
        UTF8String.fromString(problem.path()),
        UTF8String.fromString(problem.hint()),
        UTF8String.fromString(report)
      };
    }
  }
}
