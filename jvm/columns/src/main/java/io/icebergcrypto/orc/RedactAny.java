package io.icebergcrypto.orc;

import java.util.stream.IntStream;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.orc.DataMask;
import org.apache.orc.DataMaskDescription;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.mask.RedactMaskFactory;

/**
 * ORC's mask {@code redact}, for columns of any type. ORC's own fails when a writer uses it on
 * text, because nobody allocates its buffer, and on decimals of up to 18 digits, which writers keep
 * in another vector than it takes. ORC finds this one as a service.
 */
public final class RedactAny implements DataMask.Provider {
  /** What ORC's own is called. */
  static final String ORCS = "redact";

  /** A mask's name has letters, digits and underscores. */
  static final String NAME = "redact_any";

  /** Java makes one by this constructor. */
  public RedactAny() {}

  @Override
  public DataMask build(
      DataMaskDescription description, TypeDescription schema, DataMask.MaskOverrides overrides) {
    return description.getName().equals(NAME)
        ? new Factory(description.getParameters()).build(schema, overrides)
        : null;
  }

  private static final class Factory extends RedactMaskFactory {
    private Factory(String[] parameters) {
      super(parameters);
    }

    @Override
    protected DataMask buildStringMask(TypeDescription schema) {
      DataMask orcs = super.buildStringMask(schema);
      return (original, masked, start, length) -> {
        BytesColumnVector text = (BytesColumnVector) masked;
        if (start == 0 || text.bufferSize() == 0) {
          text.initBuffer(); // once in each batch: elements of lists come one by one
        }

        orcs.maskData(original, masked, start, length);
      };
    }

    @Override
    protected DataMask buildDecimalMask(TypeDescription schema) {
      DataMask orcs = super.buildDecimalMask(schema);
      return (original, masked, start, length) -> {
        if (masked instanceof Decimal64ColumnVector narrow
            && original instanceof DecimalColumnVector) {
          DecimalColumnVector wide =
              new DecimalColumnVector(start + length, narrow.precision, narrow.scale);
          orcs.maskData(original, wide, start, length);
          copy(wide, narrow, wide.isRepeating ? 0 : start, wide.isRepeating ? 1 : length);
        } else {
          orcs.maskData(original, masked, start, length);
        }
      };
    }

    private static void copy(
        DecimalColumnVector from, Decimal64ColumnVector to, int start, int length) {
      to.noNulls = from.noNulls;
      to.isRepeating = from.isRepeating;
      IntStream.range(start, start + length)
          .forEach(
              row -> {
                to.isNull[row] = isNull(from, row);
                if (!to.isNull[row]) {
                  to.set(row, from.vector[row]);
                }
              });
    }

    private static boolean isNull(ColumnVector vector, int row) {
      return !vector.noNulls && vector.isNull[row];
    }
  }
}
