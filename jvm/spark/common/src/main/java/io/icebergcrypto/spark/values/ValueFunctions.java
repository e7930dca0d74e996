package io.icebergcrypto.spark.values;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** The functions that a catalog of this project has beside Iceberg's, in the same namespaces. */
public final class ValueFunctions {
  private ValueFunctions() {}

  /** A function of this project; null: it has none of this name. */
  public static UnboundFunction loadOrNull(String name, EncryptedCatalog catalog) {
    String lower = name.toLowerCase(Locale.ROOT);
    return lower.equals(MaskFunction.NAME)
        ? new MaskFunction()
        : Arrays.stream(ValueOperation.values())
            .filter(operation -> operation.sqlName().equals(lower))
            .findFirst()
            .map(operation -> new ValueFunction(operation, catalog))
            .orElse(null);
  }

  /** Iceberg's functions and those of this project. */
  public static Identifier[] with(Identifier[] iceberg, String[] namespace) {
    Stream<String> ours =
        Stream.concat(
            Arrays.stream(ValueOperation.values()).map(ValueOperation::sqlName),
            Stream.of(MaskFunction.NAME));
    return Stream.concat(Arrays.stream(iceberg), ours.map(name -> Identifier.of(namespace, name)))
        .toArray(Identifier[]::new);
  }
}
