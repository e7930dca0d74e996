package io.icebergcrypto.spark.values;

import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.values.ValueEncryption;
import io.icebergcrypto.values.ValueKeyTable;
import java.util.Arrays;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A function over a value and the name of a value key. Spark binds it while it analyzes a
 * statement, on the driver: the value keys of the catalog are read then, wrapped, and travel with
 * it.
 */
record ValueFunction(ValueOperation operation, EncryptedCatalog catalog)
    implements UnboundFunction {
  @Override
  public String name() {
    return operation.sqlName();
  }

  @Override
  public String description() {
    return String.format("%s: %s", usage(), operation.description());
  }

  private String usage() {
    return name() + (operation.takesContext() ? "(value, key [, context])" : "(value, key)");
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    int count = arguments.size();
    if (count != 2 && !(count == 3 && operation.takesContext())) {
      throw new UnsupportedOperationException("it is " + usage());
    }

    boolean names =
        Stream.of(arguments.fields()).skip(1).allMatch(field -> isText(field.dataType()));
    DataType value = arguments.fields()[0].dataType();
    if (!names || !(isText(value) || value instanceof BinaryType)) {
      throw new UnsupportedOperationException(
          String.format(
              "it is %s: value is a string or binary, all else a string. CAST another type to"
                  + " string, and back after decrypt_value",
              usage()));
    }

    ValueEncryption values = new ValueEncryption(new ValueKeyTable(catalog).load());
    DataType type = isText(value) ? DataTypes.StringType : DataTypes.BinaryType;
    return new Bound(operation, values, type, count);
  }

  static boolean isText(DataType type) {
    return type instanceof StringType || type instanceof NullType;
  }

  /**
   * Spark's generated code calls the method {@code invoke} that fits the types.
   *
   * @param type of the value, and of the result
   * @param arguments how many it has
   */
  public record Bound(
      ValueOperation operation, ValueEncryption values, DataType type, int arguments)
      implements ScalarFunction<Object> {
    /**
     * Checks a key's name while a statement is analyzed.
     *
     * @param key null: it is NULL
     * @throws KeyNotFoundException when the catalog has no such value key, or it is NULL
     */
    void require(String key) {
      if (key == null) {
        operation.refuseNullName();
      } else {
        values.require(key);
      }
    }

    /** A string without a context. */
    public UTF8String invoke(UTF8String value, UTF8String key) {
      return operation.apply(values, value, key, null);
    }

    /** A string with a context. */
    public UTF8String invoke(UTF8String value, UTF8String key, UTF8String context) {
      return operation.apply(values, value, key, context);
    }

    /** Binary without a context. */
    public byte[] invoke(byte[] value, UTF8String key) {
      return operation.apply(values, value, key, null);
    }

    /** Binary with a context. */
    public byte[] invoke(byte[] value, UTF8String key, UTF8String context) {
      return operation.apply(values, value, key, context);
    }

    @Override
    public DataType[] inputTypes() {
      DataType[] types = new DataType[arguments];
      Arrays.fill(types, DataTypes.StringType);
      types[0] = type;
      return types;
    }

    @Override
    public DataType resultType() {
      return type;
    }

    @Override
    public boolean isDeterministic() {
      return operation.isDeterministic();
    }

    @Override
    public String name() {
      return operation.sqlName();
    }

    @Override
    public String canonicalName() {
      return String.format("iceberg-crypto.%s(%s)", name(), type.simpleString());
    }

    /** In plans, without a key. */
    @Override
    public String toString() {
      return name();
    }
  }
}
