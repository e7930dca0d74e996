package io.icebergcrypto.spark.metadata;

import io.icebergcrypto.spark.call.ScalaLists;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.DataFile;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * The column in which metadata tables have data keys: {@code key_metadata}, at the top level or in
 * {@code data_file}. Columns of a user's table with the same name are deeper, in {@code partition},
 * {@code readable_metrics} or {@code row}.
 */
final class KeyColumn {
  private static final String NAME = DataFile.KEY_METADATA.name();
  private static final String ENTRY_FILE = "data_file";

  private KeyColumn() {}

  /** Whether a metadata table's schema, or a part of it, has the column. */
  static boolean in(StructType schema) {
    return !removeFrom(schema).equals(schema);
  }

  /** The schema without the column, and without a struct that has no other. */
  static StructType removeFrom(StructType schema) {
    StructType without = new StructType();
    for (StructField field : schema.fields()) {
      if (isEntryFile(field)) {
        StructType file = without(field);
        if (file.length() > 0) {
          without = without.add(with(field, file));
        }
      } else if (!isKey(field)) {
        without = without.add(field);
      }
    }

    return without;
  }

  /**
   * The schema of what {@link #addNulls} makes.
   *
   * @param required what Spark wants
   * @param read what Iceberg's scan gives: the same without the column, perhaps with others
   */
  static StructType addTo(StructType required, StructType read) {
    StructType with = new StructType();
    for (StructField field : required.fields()) {
      with = with.add(isKey(field) || isEntryFile(field) ? field : read.apply(field.name()));
    }

    return with;
  }

  /**
   * Expressions on rows of Iceberg's scan that give what Spark wants, nulls in place of the column.
   */
  static List<Expression> addNulls(StructType required, StructType read) {
    List<Expression> expressions = new ArrayList<>();
    for (StructField field : required.fields()) {
      expressions.add(
          isKey(field)
              ? nullKey()
              : isEntryFile(field) ? entryFile(field, read) : column(read, field.name()));
    }

    return expressions;
  }

  private static Expression entryFile(StructField field, StructType read) {
    List<Expression> namesAndValues = new ArrayList<>();
    for (StructField part : ((StructType) field.dataType()).fields()) {
      namesAndValues.add(new Literal(UTF8String.fromString(part.name()), DataTypes.StringType));
      if (isKey(part)) {
        namesAndValues.add(nullKey());
      } else {
        StructType file = (StructType) read.apply(ENTRY_FILE).dataType();
        namesAndValues.add(
            new GetStructField(
                column(read, ENTRY_FILE), file.fieldIndex(part.name()), Option.apply(part.name())));
      }
    }

    return new CreateNamedStruct(ScalaLists.of(namesAndValues));
  }

  private static Expression column(StructType read, String name) {
    StructField field = read.apply(name);
    return new BoundReference(read.fieldIndex(name), field.dataType(), field.nullable());
  }

  private static Expression nullKey() {
    return new Literal(null, DataTypes.BinaryType);
  }

  private static StructType without(StructField struct) {
    StructType without = new StructType();
    for (StructField part : ((StructType) struct.dataType()).fields()) {
      without = isKey(part) ? without : without.add(part);
    }

    return without;
  }

  private static StructField with(StructField field, StructType type) {
    return new StructField(field.name(), type, field.nullable(), field.metadata());
  }

  private static boolean isKey(StructField field) {
    return field.name().equals(NAME) && field.dataType() instanceof BinaryType;
  }

  private static boolean isEntryFile(StructField field) {
    return field.name().equals(ENTRY_FILE) && field.dataType() instanceof StructType;
  }
}
