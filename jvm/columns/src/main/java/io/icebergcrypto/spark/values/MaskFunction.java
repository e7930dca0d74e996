package io.icebergcrypto.spark.values;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Four stars in place of a string, and its last characters if that is asked for: the length does
 * not show. A string that is not at least twice as long as what is to be shown is not shown at all.
 */
final class MaskFunction implements UnboundFunction {
  static final String NAME = "mask";

  private static final UTF8String STARS = UTF8String.fromString("****");

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "mask(value [, show_last]): four stars, and the last characters of value";
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    int count = arguments.size();
    boolean fits =
        (count == 1 || count == 2)
            && ValueFunction.isText(arguments.fields()[0].dataType())
            && (count == 1 || arguments.fields()[1].dataType() instanceof IntegerType);
    if (!fits) {
      throw new UnsupportedOperationException(
          "it is mask(value [, show_last]): value is a string, show_last an int");
    }

    return new Bound(count);
  }

  /**
   * Spark's generated code calls the method {@code invoke} that fits the types.
   *
   * @param arguments how many it has
   */
  public record Bound(int arguments) implements ScalarFunction<UTF8String> {
    /** Shows nothing. */
    public UTF8String invoke(UTF8String value) {
      return value == null ? null : STARS;
    }

    /** Shows the last characters. */
    public UTF8String invoke(UTF8String value, int showLast) {
      if (value == null) {
        return null;
      }

      int length = value.numChars();
      return showLast <= 0 || length / 2 < showLast
          ? STARS
          : UTF8String.concat(STARS, value.substring(length - showLast, length));
    }

    @Override
    public DataType[] inputTypes() {
      return Arrays.copyOf(new DataType[] {DataTypes.StringType, DataTypes.IntegerType}, arguments);
    }

    @Override
    public DataType resultType() {
      return DataTypes.StringType;
    }

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String canonicalName() {
      return "iceberg-crypto.mask";
    }

    @Override
    public String toString() {
      return NAME;
    }
  }
}
