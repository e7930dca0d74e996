package io.icebergcrypto.spark.values;

import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** The functions that a catalog of this project has beside Iceberg's, in the same namespaces. */
public final class ValueFunctions {
  private ValueFunctions() {}

  /** How a catalog finds a function of Iceberg's. */
  public interface Loader {
    /** As {@code FunctionCatalog.loadFunction}. */
    UnboundFunction load(Identifier ident) throws NoSuchFunctionException;
  }

  /**
   * Loads a function of this project, or one of Iceberg's.
   *
   * @param isNamespace whether its namespace is one that has functions
   * @param iceberg finds the others
   */
  public static UnboundFunction load(
      Identifier ident, boolean isNamespace, EncryptedCatalog catalog, Loader iceberg)
      throws NoSuchFunctionException {
    UnboundFunction ours = isNamespace ? ownOrNull(ident.name(), catalog) : null;
    return ours != null ? ours : iceberg.load(ident);
  }

  private static UnboundFunction ownOrNull(String name, EncryptedCatalog catalog) {
    String lower = name.toLowerCase(Locale.ROOT);
    return lower.equals(MaskFunction.NAME)
        ? new MaskFunction()
        : Arrays.stream(ValueOperation.values())
            .filter(operation -> operation.sqlName().equals(lower))
            .findFirst()
            .map(operation -> new ValueFunction(operation, catalog))
            .orElse(null);
  }

  /** Iceberg's functions and, in a namespace that has functions, those of this project. */
  public static Identifier[] list(Identifier[] iceberg, boolean isNamespace, String[] namespace) {
    if (!isNamespace) {
      return iceberg;
    }

    Stream<String> ours =
        Stream.concat(
            Arrays.stream(ValueOperation.values()).map(ValueOperation::sqlName),
            Stream.of(MaskFunction.NAME));
    return Stream.concat(Arrays.stream(iceberg), ours.map(name -> Identifier.of(namespace, name)))
        .toArray(Identifier[]::new);
  }
}
