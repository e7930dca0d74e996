package io.icebergcrypto.orc;

import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.orc.DataMask;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.RowBatchVersion;
import org.apache.orc.impl.TypeUtils;

/**
 * Applies a mask to one value, in the vectors that ORC's writer gives it. Some masks fail on some
 * types, and would do so when files are being written.
 */
final class MaskTrial {
  private MaskTrial() {}

  /**
   * Tries.
   *
   * @throws RuntimeException whatever the mask throws
   */
  static void run(DataMask mask, TypeDescription type) {
    ColumnVector original = TypeUtils.createColumn(type, RowBatchVersion.ORIGINAL, 1);
    ColumnVector masked = TypeUtils.createColumn(type, RowBatchVersion.USE_DECIMAL64, 1);
    fill(original);
    mask.maskData(original, masked, 0, 1);
  }

  /** Gives it one value that is not null; numbers are 0. */
  private static void fill(ColumnVector vector) {
    if (vector instanceof BytesColumnVector text) {
      text.setRef(0, new byte[] {'x'}, 0, 1);
    } else if (vector instanceof StructColumnVector struct) {
      for (ColumnVector field : struct.fields) {
        fill(field);
      }
    } else if (vector instanceof MultiValuedColumnVector many) {
      many.lengths[0] = 1;
      many.childCount = 1;
      if (many instanceof ListColumnVector list) {
        fill(list.child);
      } else if (many instanceof MapColumnVector map) {
        fill(map.keys);
        fill(map.values);
      }
    }
  }
}
