package io.icebergcrypto.spark.copy;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A file of a table as a row, which is what is shuffled and cached: where it is listed, and no key.
 */
final class CopyRow {
  static final StructType SCHEMA =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("is_rewritten", DataTypes.BooleanType, false)
          .add("list", DataTypes.IntegerType, false) // the place of the manifest list above it
          .add("manifest", DataTypes.StringType) // the manifest above it
          .add("length", DataTypes.LongType, false)
          .add("problem", DataTypes.StringType); // one of CopyProblem

  private CopyRow() {}

  static Row of(
      String path,
      boolean isRewritten,
      int list,
      String manifest,
      long length,
      CopyProblem problem) {
    return RowFactory.create(
        path, isRewritten, list, manifest, length, problem == null ? null : problem.name());
  }

  static String path(Row row) {
    return row.getString(0);
  }

  static int list(Row row) {
    return row.getInt(2);
  }

  static String manifest(Row row) {
    return row.getString(3);
  }

  static CopyProblem problem(Row row) {
    return CopyProblem.valueOf(row.getString(5));
  }
}
