package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import io.icebergcrypto.spark.table.CatalogTables.Selected;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/**
 * Follows tables that are renamed before their turn: what is done to each listed table is then done
 * to those that are new, and to those that have the name of another one. So a table that is not
 * found was dropped, or is among these.
 *
 * @param threads how many tables are loaded at once
 * @param progress who is told how far it is
 * @param pass does it to listed tables
 * @param uuid that of the table to which it was done
 */
public record Renames<T>(
    CatalogTables tables,
    int threads,
    Progress progress,
    Function<List<Listed>, EachTable<T>> pass,
    Function<T, String> uuid) {
  /** How often tables are listed again; short-lived ones appear all the time. */
  private static final int ROUNDS = 5;

  /**
   * Does it.
   *
   * @param selected the tables, and the names of those to which it is not done
   * @return what came of all of them; gone are tables that may have another name by now
   */
  public EachTable<T> followed(Selected selected) {
    Set<String> known = new HashSet<>();
    selected.listed().forEach(one -> known.add(one.name()));
    selected.leftOut().forEach(one -> known.add(one.table()));
    EachTable<T> found = pass.apply(selected.listed());
    for (int round = 0; round < ROUNDS; round++) {
      List<Listed> later = later(known, found);
      if (later.isEmpty()) {
        return found.withoutGone();
      }

      later.forEach(one -> known.add(one.name()));
      found = found.with(pass.apply(later));
    }

    return later(known, found).isEmpty() ? found.withoutGone() : found;
  }

  /** Tables with new names; if any have gone, also those that may have names of others now. */
  private List<Listed> later(Set<String> known, EachTable<T> found) {
    List<Listed> later = new ArrayList<>();
    List<Listed> same = new ArrayList<>();
    boolean haveGone = !found.gone().isEmpty();
    for (Listed one : listed()) {
      if (haveGone && found.done().containsKey(one.name())) {
        same.add(one);
      } else if (!known.contains(one.name()) && (haveGone || one.failure() == null)) {
        later.add(one);
      }
    }

    List<String> names = same.stream().map(Listed::name).toList();
    List<Boolean> areOthers =
        EachTable.map(
            tables.spark(),
            names,
            threads,
            progress,
            name -> tables.isOther(name, uuid.apply(found.done().get(name))));
    for (int i = 0; i < same.size(); i++) {
      if (areOthers.get(i)) {
        later.add(same.get(i));
      }
    }

    return later;
  }

  private List<Listed> listed() {
    try {
      return tables.listed();
    } catch (TableNotFoundException e) {
      return List.of(); // the namespace was dropped
    } catch (RuntimeException e) { // what was done stays
      CancelledException.rethrow(e);
      EachTable.Left left = EachTable.Left.of(tables.catalogName(), e);
      String failure = "its tables cannot be listed again: " + left.problem();
      return List.of(new Listed(left.table(), false, failure, left.hint()));
    }
  }
}
