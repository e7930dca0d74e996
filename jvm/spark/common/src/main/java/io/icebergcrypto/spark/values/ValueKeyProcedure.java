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
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The procedures of value keys: {@code CALL system.create_value_key(name => ..., key_id => ...)},
 * {@code value_keys()} and {@code rotate_value_key(name => ... [, new_key_id => ...] [, new_version
 * => true])}. Each gives the versions of keys that it concerns; see {@link ValueKeyTable}.
 */
public final class ValueKeyProcedure implements Procedure {
  private static final StructType OUTPUT =
      new StructType()
          .add("name", DataTypes.StringType, false)
          .add("version", DataTypes.StringType, false)
          .add("master_key_id", DataTypes.StringType, false)
          .add("created_at", DataTypes.TimestampType, false);

  /** Which of them. */
  public enum Kind {
    CREATE_VALUE_KEY("Makes a key that encrypts values, wrapped by a master key"),
    VALUE_KEYS("Lists the keys that encrypt values"),
    ROTATE_VALUE_KEY("Has a value key wrapped anew, or adds a version that encrypts from now on");

    private final String description;

    Kind(String description) {
      this.description = description;
    }

    /** Its name in SQL. */
    public String procedureName() {
      return name().toLowerCase(Locale.ROOT);
    }

    private Parameter[] parameters() {
      return switch (this) {
        case CREATE_VALUE_KEY -> new Parameter[] {text("name"), text("key_id")};
        case VALUE_KEYS -> new Parameter[0];
        case ROTATE_VALUE_KEY ->
            new Parameter[] {
              text("name"),
              Parameter.optional("new_key_id", DataTypes.StringType),
              new Parameter("new_version", DataTypes.BooleanType, "false")
            };
      };
    }

    private static Parameter text(String name) {
      return Parameter.required(name, DataTypes.StringType);
    }
  }

  private final Kind kind;
  private final EncryptedCatalog catalog;

  /** A procedure of a catalog. */
  public ValueKeyProcedure(Kind kind, EncryptedCatalog catalog) {
    this.kind = kind;
    this.catalog = catalog;
  }

  @Override
  public String name() {
    return kind.procedureName();
  }

  @Override
  public String description() {
    return kind.description;
  }

  @Override
  public Parameter[] parameters() {
    return kind.parameters();
  }

  @Override
  public StructType outputType() {
    return OUTPUT;
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    ValueKeyTable keys = new ValueKeyTable(catalog);
    List<ValueKeyEntry> entries =
        switch (kind) {
          case VALUE_KEYS -> keys.entries();
          case CREATE_VALUE_KEY -> List.of(keys.create(given(input, 0), given(input, 1)));
          case ROTATE_VALUE_KEY -> {
            String newKeyId = input.isNullAt(1) ? null : given(input, 1);
            boolean newVersion = !input.isNullAt(2) && input.getBoolean(2);
            yield newVersion
                ? List.of(keys.addVersion(given(input, 0), newKeyId))
                : keys.rewrap(given(input, 0), newKeyId);
          }
        };
    InternalRow[] rows = entries.stream().map(ValueKeyProcedure::row).toArray(InternalRow[]::new);
    return List.<Scan>of(new Output(OUTPUT, rows)).iterator();
  }

  private String given(InternalRow input, int index) {
    if (input.isNullAt(index) || input.getUTF8String(index).toString().isBlank()) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: %s of %s is empty", parameters()[index].name(), name()),
          String.format("CALL ...system.%s(...) with a value for it.", name()));
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
