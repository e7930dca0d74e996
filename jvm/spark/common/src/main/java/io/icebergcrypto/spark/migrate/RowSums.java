package io.icebergcrypto.spark.migrate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * What rows add up to, in any order: how many there are, the sum of a 64-bit hash of each, and the
 * exclusive or of a second one.
 */
record RowSums(long rows, BigDecimal sum, long xor) {
  static final RowSums NONE = new RowSums(0, BigDecimal.ZERO, 0);

  private static final Column ROWS = functions.count(functions.lit(1));
  private static final Column SUM = functions.sum(functions.col("first").cast("decimal(38,0)"));
  private static final Column XOR = functions.expr("bit_xor(second)");
  private static final int FILES_AT_ONCE = 10_000;
  static final long SPLIT_SIZE = 128L << 20;
  static final long OPEN_COST = 4L << 20; // so that many small files are many tasks

  /** Of a table's snapshot, read with the table's current schema. */
  static RowSums of(SparkSession spark, Table table, long snapshotId) {
    RowSums sums = NONE;
    List<FileScanTask> some = new ArrayList<>();
    try (CloseableIterable<FileScanTask> files =
        table.newScan().useSnapshot(snapshotId).planFiles()) {
      for (FileScanTask file : files) {
        some.add(file);
        if (some.size() == FILES_AT_ONCE) {
          sums = sums.plus(of(spark, table, some));
          some.clear();
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot close the scan of " + table.name(), e);
    }

    return some.isEmpty() ? sums : sums.plus(of(spark, table, some));
  }

  /** Of some files together. */
  private static RowSums of(SparkSession spark, Table table, List<FileScanTask> files) {
    return RewriteTables.read(
        spark,
        table,
        List.copyOf(files),
        SPLIT_SIZE,
        OPEN_COST,
        rows -> of(hashed(rows, table).agg(ROWS, SUM, XOR).head(), 0));
  }

  /** Of some files, each by its location; those without rows are left out. */
  static Map<String, RowSums> byFile(SparkSession spark, Table table, List<FileScanTask> files) {
    Map<String, RowSums> sums = new HashMap<>();
    if (files.isEmpty()) { // which Iceberg does not stage
      return sums;
    }

    RewriteTables.read(
            spark,
            table,
            List.copyOf(files),
            SPLIT_SIZE,
            OPEN_COST,
            rows -> hashed(rows, table).groupBy("file").agg(ROWS, SUM, XOR).collectAsList())
        .forEach(row -> sums.put(row.getString(0), of(row, 1)));
    return sums;
  }

  private static Dataset<Row> hashed(Dataset<Row> rows, Table table) {
    Column[] columns = columns(table);
    Column[] seeded = new Column[columns.length + 1];
    seeded[0] = functions.lit(1);
    System.arraycopy(columns, 0, seeded, 1, columns.length);
    return rows.select(
        functions.input_file_name().as("file"),
        functions.xxhash64(columns).as("first"),
        functions.xxhash64(seeded).as("second"));
  }

  private static RowSums of(Row sums, int at) {
    return sums.getLong(at) == 0
        ? NONE
        : new RowSums(sums.getLong(at), sums.getDecimal(at + 1), sums.getLong(at + 2));
  }

  /** Spark hashes no maps and no variants: these as JSON. */
  private static Column[] columns(Table table) {
    return table.schema().columns().stream()
        .map(
            field -> {
              Column column = functions.col("`" + field.name().replace("`", "``") + "`");
              return isHashed(field.type())
                  ? column
                  : functions.to_json(functions.struct(column.as("value")));
            })
        .toArray(Column[]::new);
  }

  private static boolean isHashed(Type type) {
    return TypeUtil.find(
            new Schema(Types.NestedField.optional(1, "value", type)),
            part -> part.isMapType() || part.isVariantType())
        == null;
  }

  /** Of both together. */
  RowSums plus(RowSums other) {
    return new RowSums(rows + other.rows, sum.add(other.sum), xor ^ other.xor);
  }

  /** Whether both are of the same rows, as far as sums tell. */
  boolean isSame(RowSums other) {
    return rows == other.rows && sum.compareTo(other.sum) == 0 && xor == other.xor;
  }
}
