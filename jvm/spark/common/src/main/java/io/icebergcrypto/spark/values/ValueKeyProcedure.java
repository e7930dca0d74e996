package io.icebergcrypto.spark.values;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.values.ValueKeyEntry;
import io.icebergcrypto.values.ValueKeyTable;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The procedures of value keys: {@code CALL system.create_value_key(name => ..., key_id => ...)},
 * {@code value_keys()}, {@code rotate_value_key(name => ... [, new_key_id => ...] [, new_version =>
 * true])} and {@code drop_value_key(name => ..., version => ..., allow_loss => true)}. Each gives
 * the versions of keys that it concerns; see {@link ValueKeyTable}.
 */
public final class ValueKeyProcedure implements Procedure {
  /** Makes a key. */
  public static final String CREATE = "create_value_key";

  /** Lists the keys. */
  public static final String LIST = "value_keys";

  /** Has a key wrapped anew, or adds a version. */
  public static final String ROTATE = "rotate_value_key";

  /** Drops a version. */
  public static final String DROP = "drop_value_key";

  private static final StructType OUTPUT =
      new StructType()
          .add("name", DataTypes.StringType, false)
          .add("version", DataTypes.StringType, false)
          .add("master_key_id", DataTypes.StringType, false)
          .add("created_at", DataTypes.TimestampType, false);

  private final String name;
  private final String description;
  private final EncryptedCatalog catalog;
  private final Parameter[] parameters;

  private ValueKeyProcedure(
      String name, String description, EncryptedCatalog catalog, Parameter... parameters) {
    this.name = name;
    this.description = description;
    this.catalog = catalog;
    this.parameters = parameters;
  }

  /** {@code create_value_key}. */
  public static Procedure create(TableCatalog spark, EncryptedCatalog catalog) {
    return new ValueKeyProcedure(
        CREATE,
        "Makes a key that encrypts values, wrapped by a master key",
        catalog,
        Parameter.required("name", DataTypes.StringType),
        Parameter.required("key_id", DataTypes.StringType));
  }

  /** {@code value_keys}. */
  public static Procedure list(TableCatalog spark, EncryptedCatalog catalog) {
    return new ValueKeyProcedure(LIST, "Lists the keys that encrypt values", catalog);
  }

  /** {@code rotate_value_key}. */
  public static Procedure rotate(TableCatalog spark, EncryptedCatalog catalog) {
    return new ValueKeyProcedure(
        ROTATE,
        "Has a value key wrapped anew, or adds a version that encrypts from now on",
        catalog,
        Parameter.required("name", DataTypes.StringType),
        Parameter.optional("new_key_id", DataTypes.StringType),
        new Parameter("new_version", DataTypes.BooleanType, "false"));
  }

  /** {@code drop_value_key}, which gives the versions that are left. */
  public static Procedure drop(TableCatalog spark, EncryptedCatalog catalog) {
    return new ValueKeyProcedure(
        DROP,
        "Drops an older version of a value key: nobody can decrypt what it encrypted",
        catalog,
        Parameter.required("name", DataTypes.StringType),
        Parameter.required("version", DataTypes.StringType),
        new Parameter("allow_loss", DataTypes.BooleanType, "false"));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return description;
  }

  @Override
  public Parameter[] parameters() {
    return parameters.clone();
  }

  @Override
  public StructType outputType() {
    return OUTPUT;
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    InternalRow[] rows =
        run(new ValueKeyTable(catalog), input).stream()
            .map(ValueKeyProcedure::row)
            .toArray(InternalRow[]::new);
    return List.<Scan>of(new Output(OUTPUT, rows)).iterator();
  }

  private List<ValueKeyEntry> run(ValueKeyTable keys, InternalRow input) {
    if (name.equals(LIST)) {
      return keys.entries();
    }

    if (name.equals(CREATE)) {
      return List.of(keys.create(given(input, 0), given(input, 1)));
    }

    String key = given(input, 0);
    if (name.equals(DROP)) {
      return keys.drop(key, given(input, 1), isSet(input, 2));
    }

    String newKeyId = input.isNullAt(1) ? null : given(input, 1);
    return isSet(input, 2) ? List.of(keys.addVersion(key, newKeyId)) : keys.rewrap(key, newKeyId);
  }

  private static boolean isSet(InternalRow input, int index) {
    return !input.isNullAt(index) && input.getBoolean(index);
  }

  private String given(InternalRow input, int index) {
    if (input.isNullAt(index) || input.getUTF8String(index).toString().isBlank()) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: %s of %s is empty", parameters[index].name(), name),
          String.format("CALL ...system.%s(...) with a value for it.", name));
    }

    return input.getUTF8String(index).toString();
  }

  private static InternalRow row(ValueKeyEntry key) {
    return new GenericInternalRow(
        new Object[] {
          UTF8String.fromString(key.name()),
          UTF8String.fromString(key.version()),
          UTF8String.fromString(key.masterKeyId()),
          ChronoUnit.MICROS.between(Instant.EPOCH, key.createdAt())
        });
  }

  private record Output(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
