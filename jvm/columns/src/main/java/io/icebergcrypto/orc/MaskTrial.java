package io.icebergcrypto.orc;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.DataMask;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.RowBatchVersion;
import org.apache.orc.impl.TypeUtils;

/**
 * Applies a mask to some values, in the vectors that ORC's writer gives it. Some masks fail on some
 * types, and would do so when files are being written; some return what they are given.
 */
final class MaskTrial {
  /** Two values of each kind: a mask may put one of them in place of another. */
  private static final List<String> TEXTS =
      List.of("K", "Q", "k", "q", "4", "7", "\u6f22", "\u5b57");

  private static final List<String> KINDS =
      List.of("capital letters", "small letters", "digits", "letters of other scripts");
  private static final int ROWS = TEXTS.size();
  private static final int FIRST_NUMBER = 40; // two digits, also of the last; a tinyint
  private static final int STEP = 7;

  private MaskTrial() {}

  /**
   * Tries.
   *
   * @return what the mask leaves as it is; null: nothing
   * @throws RuntimeException anything the mask throws
   */
  static String run(DataMask mask, TypeDescription type) {
    ColumnVector original = TypeUtils.createColumn(type, RowBatchVersion.ORIGINAL, ROWS);
    ColumnVector masked = TypeUtils.createColumn(type, RowBatchVersion.USE_DECIMAL64, ROWS);
    fill(original, type);
    mask.maskData(original, masked, 0, ROWS);
    return left(original, masked);
  }

  /** Gives it values that are not null. */
  private static void fill(ColumnVector vector, TypeDescription type) {
    boolean isFlag = type.getCategory() == TypeDescription.Category.BOOLEAN;
    if (vector instanceof StructColumnVector || vector instanceof MultiValuedColumnVector) {
      if (vector instanceof MultiValuedColumnVector many) {
        many.childCount = ROWS;
        IntStream.range(0, ROWS).forEach(row -> many.offsets[row] = row);
        Arrays.fill(many.lengths, 0, ROWS, 1);
      }

      List<ColumnVector> children = children(vector);
      for (int i = 0; i < children.size(); i++) {
        fill(children.get(i), type.getChildren().get(i));
      }
    }

    for (int row = 0; row < ROWS; row++) {
      int number = isFlag ? row % 2 : FIRST_NUMBER + STEP * row;
      if (vector instanceof BytesColumnVector text) {
        byte[] bytes = TEXTS.get(row).getBytes(StandardCharsets.UTF_8);
        text.setRef(row, bytes, 0, bytes.length);
      } else if (vector instanceof LongColumnVector numbers) {
        numbers.vector[row] = number;
      } else if (vector instanceof DoubleColumnVector numbers) {
        numbers.vector[row] = number;
      } else if (vector instanceof DecimalColumnVector decimals) {
        decimals.set(row, HiveDecimal.create(row + 1L, decimals.scale)); // fits any precision
      } else if (vector instanceof TimestampColumnVector times) {
        times.time[row] = 1000L * 86_399 * number;
        times.nanos[row] = 1_000_000;
      }
    }
  }

  private static List<ColumnVector> children(ColumnVector vector) {
    if (vector instanceof StructColumnVector struct) {
      return List.of(struct.fields);
    } else if (vector instanceof ListColumnVector list) {
      return List.of(list.child);
    }

    return vector instanceof MapColumnVector map ? List.of(map.keys, map.values) : List.of();
  }

  private static String left(ColumnVector original, ColumnVector masked) {
    List<ColumnVector> before = children(original);
    List<ColumnVector> after = children(masked);
    for (int i = 0; i < before.size(); i++) {
      String left = isNull(masked, 0) ? null : left(before.get(i), after.get(i));
      if (left != null) {
        return left;
      }
    }

    IntPredicate same =
        row -> !isNull(masked, row) && text(original, row).equals(text(masked, row));
    if (!before.isEmpty()) {
      return null;
    } else if (!(original instanceof BytesColumnVector)) {
      return IntStream.range(0, ROWS).allMatch(same) ? "all values" : null;
    }

    List<String> left = new ArrayList<>();
    for (int kind = 0; kind < KINDS.size(); kind++) {
      if (same.test(2 * kind) && same.test(2 * kind + 1)) {
        left.add(KINDS.get(kind));
      }
    }

    return left.isEmpty() ? null : String.join(", ", left);
  }

  private static boolean isNull(ColumnVector vector, int row) {
    return !vector.noNulls && vector.isNull[vector.isRepeating ? 0 : row];
  }

  /** A value that is not null. */
  private static String text(ColumnVector vector, int row) {
    StringBuilder text = new StringBuilder();
    vector.stringifyValue(text, row);
    if (vector instanceof Decimal64ColumnVector narrow) { // which shows it without its scale
      HiveDecimalWritable decimal = new HiveDecimalWritable();
      decimal.deserialize64(Long.parseLong(text.toString()), narrow.scale);
      return decimal.toString();
    }

    return text.toString();
  }
}
