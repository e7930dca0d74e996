package io.icebergcrypto.spark.operations;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.NamespaceKeys.Another;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.table.CatalogTables;
import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.EachTable.Left;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.Namespace;

/** A call that is for all tables of a catalog of this project, or of one of its namespaces. */
final class ManyTables {
  private final Call call;
  private final EncryptedCatalog catalog;
  private final CatalogTables tables;
  private final int threads;
  private final Map<String, OptionalInt> versions = new ConcurrentHashMap<>();
  private final List<Namespace> namespaces = new ArrayList<>();

  /**
   * Takes the name of a catalog or a namespace, and how many tables at once.
   *
   * @throws InvalidConfigurationException when none has that name
   * @throws io.icebergcrypto.NotSupportedException when the catalog is not of this project
   */
  ManyTables(Call call) {
    this.call = call;
    this.tables = call.tables();
    this.catalog = Target.catalog(call.spark(), tables.catalogName());
    this.threads = call.threads();
  }

  /** Whether the catalog has branches and tags, of which only one is looked at. */
  boolean isOfOneBranch() {
    return catalog.context().behind().hasBranches();
  }

  /** Does something to each. */
  <T> EachTable<T> each(Function<String, T> work) {
    return EachTable.of(
        tables, tables.listed(namespaces), threads, call.progress(), work, done -> false);
  }

  /** Does an operation to a table. */
  Object run(Operation operation, String table, Map<String, Object> given) {
    Map<String, Object> arguments = new HashMap<>(given);
    arguments.put(Operation.TABLE, table);
    return call.run(operation, arguments).value();
  }

  /** The master keys that a table needs. */
  MasterKeyUse use(String table) {
    Target found = call.table(table);
    return MasterKeyUse.of(found.catalog(), found.table());
  }

  /**
   * The version of a master key that wraps now; what the KMS has answered is kept. Empty: wrapped
   * keys do not say.
   */
  OptionalInt wrappingVersion(String keyId) {
    return versions.computeIfAbsent(
        keyId,
        id -> {
          if (call.target() != Target.NONE) {
            // who sends SQL is to try no other key
            catalog.context().allowedKeyIds().checkNew(id);
          }

          return catalog.context().kms().wrappingVersion(id);
        });
  }

  /**
   * Namespaces, and the catalog itself, that give new tables another master key, or may do so:
   * those whose properties cannot be read. They are those of the tables to which something was done
   * before.
   */
  List<Left> another(String keyId) {
    Map<String, Left> left = new LinkedHashMap<>();
    for (Namespace namespace : namespaces) {
      try {
        Another found = catalog.context().namespaceKeys().another(namespace, keyId);
        if (found != null) {
          left.putIfAbsent(found.name(), new Left(found.name(), found.problem(), found.hint()));
        }
      } catch (RuntimeException e) {
        CancelledException.rethrow(e);
        String name = SqlNames.full(tables.catalogName(), namespace);
        left.put(name, Left.of(name, e));
      }
    }

    return List.copyOf(left.values());
  }

  /** Those to which it was not done; one that is gone may be there under another name. */
  static List<Left> left(EachTable<?> found) {
    return Stream.concat(
            found.left().stream(),
            found.gone().stream()
                .map(
                    table ->
                        new Left(
                            table,
                            "it was dropped or renamed since it was listed",
                            "Call it again: it lists what there is now.")))
        .toList();
  }

  /** What it was not for. */
  static List<String> skipped(EachTable<?> found) {
    return Stream.concat(found.views().stream(), found.notEncrypted().stream().map(Left::table))
        .toList();
  }
}
