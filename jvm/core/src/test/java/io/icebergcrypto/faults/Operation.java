package io.icebergcrypto.faults;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestLake;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;

/** What {@link Attempt} does to a table: by default one with the rows 1, 2 and 3. */
final class Operation {
  /** The rows that a table has before, in a snapshot each. */
  static final List<Long> BEFORE = List.of(1L, 2L, 3L);

  /** In place of rows: the table refuses to be read. */
  static final List<Long> BROKEN = List.of(-1L);

  /** It may not end in retries: another operator does not go on for long. */
  static final Map<String, String> FEW_RETRIES =
      Map.of("commit.retry.num-retries", "2", "commit.retry.max-wait-ms", "20");

  /** Does it, or makes what is there before. */
  @FunctionalInterface
  interface Step {
    void run(EncryptedCatalog catalog, TableIdentifier name) throws Exception;
  }

  /** Makes what is there before, and says what must always be true of it, beside the rows. */
  @FunctionalInterface
  interface Preparation {
    Step make(EncryptedCatalog catalog, TableIdentifier name, TestLake lake) throws Exception;
  }

  /** Looks whether it was done. */
  @FunctionalInterface
  interface Done {
    boolean isSo(EncryptedCatalog catalog, TableIdentifier name) throws Exception;
  }

  /** What is to be expected of it. */
  enum Trait {
    /** Earlier snapshots may be gone after it. */
    FORGETS,
    /** It leaves earlier plaintext. */
    LEAVES_PLAINTEXT,
    /** The table refuses to be read before it. */
    STARTS_BROKEN,
    /**
     * It may be told that nothing was done, although it was: the catalog behind tries it twice, or
     * a look at the result fails.
     */
    MAY_BE_DENIED,
    /** Once it was done, it can be done again. */
    REPEATS,
    /** It is to do nothing. */
    REFUSED,
    /** It makes a table, and then commits something else to it. */
    IN_STEPS,
    /** No operation of another undoes it, where commits conflict, while the table is encrypted. */
    LASTS
  }

  private final String name;
  private final UnaryOperator<List<Long>> effect;
  private final Step run;
  private Preparation preparation = (catalog, table, lake) -> rows(catalog, table);
  private Done done;
  private final Set<Trait> traits = EnumSet.noneOf(Trait.class);
  private UnaryOperator<TableIdentifier> source;
  private Set<Backend> backends = EnumSet.allOf(Backend.class);
  private final Map<String, String> properties = new HashMap<>();
  private Operation rival;

  private Operation(String name, UnaryOperator<List<Long>> effect, Step run) {
    this.name = name;
    this.effect = effect;
    this.run = run;
  }

  /**
   * One that changes rows.
   *
   * @param effect the rows after it, of those before; null: there is no table
   * @param run loads the table, and does it
   */
  static Operation of(String name, UnaryOperator<List<Long>> effect, Step run) {
    return new Operation(name, effect, run);
  }

  /** One that changes something else, of which is told whether it was done. */
  static Operation of(String name, Step run, Done done) {
    return new Operation(name, rows -> rows, run).doneWhen(done);
  }

  /** The same, told by the table. */
  static Operation of(String name, Step run, Predicate<Table> done) {
    return of(name, run, (catalog, table) -> done.test(catalog.loadTable(table)));
  }

  /** All of them. */
  static List<Operation> all() {
    return Stream.of(
            RowOperations.all(), HistoryOperations.all(), KeyOperations.all(), NameOperations.all())
        .flatMap(List::stream)
        .toList();
  }

  Operation doneWhen(Done newDone) {
    this.done = newDone;
    return this;
  }

  Operation preparedBy(Preparation newPreparation) {
    this.preparation = newPreparation;
    return this;
  }

  Operation preparedBy(Step step) {
    return preparedBy(
        (catalog, table, lake) -> {
          rows(catalog, table);
          step.run(catalog, table);
          return (fresh, same) -> {};
        });
  }

  Operation that(Trait... some) {
    traits.addAll(List.of(some));
    return this;
  }

  boolean is(Trait trait) {
    return traits.contains(trait);
  }

  /** The table has another name before. */
  Operation from(UnaryOperator<TableIdentifier> newSource) {
    this.source = newSource;
    return this;
  }

  Operation notOn(Backend... some) {
    this.backends = EnumSet.complementOf(EnumSet.copyOf(List.of(some)));
    return this;
  }

  /** Properties of all sessions. */
  Operation with(Map<String, String> newProperties) {
    properties.putAll(newProperties);
    return this;
  }

  /** What another operator does, where it cannot be another row. */
  Operation beside(Operation newRival) {
    this.rival = newRival;
    return this;
  }

  boolean isOn(Backend backend) {
    return backends.contains(backend);
  }

  Map<String, String> properties(TableIdentifier table) {
    return properties.entrySet().stream()
        .collect(
            Collectors.toMap(
                Map.Entry::getKey, entry -> entry.getValue().replace("{table}", table.toString())));
  }

  Step prepare(EncryptedCatalog catalog, TableIdentifier table, TestLake lake) throws Exception {
    return preparation.make(catalog, table, lake);
  }

  void run(EncryptedCatalog catalog, TableIdentifier table) throws Exception {
    run.run(catalog, table);
  }

  /** The rows after it; null: there is no table. */
  List<Long> after(List<Long> rows) {
    return effect.apply(rows);
  }

  /** Whether it was done, where not the rows tell it. */
  Done done() {
    return done;
  }

  /** Where the table is. */
  TableIdentifier where(EncryptedCatalog catalog, TableIdentifier table) {
    return source == null || catalog.tableExists(table) ? table : source.apply(table);
  }

  Operation rival() {
    return rival;
  }

  @Override
  public String toString() {
    return name;
  }

  /** An encrypted table with the rows 1, 2 and 3. */
  static Step rows(EncryptedCatalog catalog, TableIdentifier table) {
    Table made = TestLake.createTable(catalog, table.name(), FEW_RETRIES);
    BEFORE.forEach(id -> TestLake.append(made, id));
    return (fresh, same) -> {};
  }

  /** With another row. */
  static UnaryOperator<List<Long>> plus(long id) {
    return rows ->
        rows == null ? null : Stream.concat(rows.stream(), Stream.of(id)).sorted().toList();
  }

  /** Without a row. */
  static UnaryOperator<List<Long>> minus(long id) {
    return rows -> rows == null ? null : rows.stream().filter(row -> row != id).toList();
  }

  /** With a row in the place of another. */
  static UnaryOperator<List<Long>> replaced(long id, long by) {
    return rows -> plus(by).apply(minus(id).apply(rows));
  }
}
