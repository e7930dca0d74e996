package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;

/**
 * What is done to each of many tables, several at once. A table to which it cannot be done does not
 * stop the others; a cancel ends all.
 *
 * @param done what came of it, by the table's full name
 * @param left tables to which it was not done, and namespaces that cannot be listed
 * @param gone tables that are no longer listed: dropped or renamed since
 * @param views the views
 * @param notEncrypted tables to which it was not done because they are not encrypted, or not of
 *     Iceberg
 */
public record EachTable<T>(
    Map<String, T> done,
    List<Left> left,
    List<String> gone,
    List<String> views,
    List<Left> notEncrypted) {
  /**
   * A table to which it was not done, or a namespace that cannot be listed.
   *
   * @param table its full name
   * @param problem why
   * @param hint what to do; empty when that is not known
   */
  public record Left(String table, String problem, String hint) {
    /** A missing hint is an empty one. */
    public Left {
      hint = hint == null ? "" : hint;
    }

    /** Takes why a namespace cannot be listed. */
    public static Left of(Listed failed) {
      return new Left(failed.name(), failed.failure(), failed.hint());
    }

    /** Takes what an error says. */
    public static Left of(String table, Throwable e) {
      return e instanceof IcebergCryptoException known
          ? new Left(table, known.problem(), known.hint())
          : new Left(table, e.toString(), null);
    }
  }

  /**
   * What came of one table: one of them.
   *
   * @param absent why it could not be loaded, which some catalogs also say of one that is there
   */
  private record Outcome<T>(T done, Left left, Left notEncrypted, Left absent) {}

  /**
   * Does it.
   *
   * @param listed tables of the catalog
   * @param threads how many tables at once; 1: on this thread, where a statement's Spark jobs are
   *     to begin
   * @param progress who is told how far it is
   * @param work does it to the table of a full name
   * @throws CancelledException when it was cancelled; what was begun has ended
   */
  public static <T> EachTable<T> of(
      CatalogTables catalog,
      List<Listed> listed,
      int threads,
      Progress progress,
      Function<String, T> work) {
    List<String> names = listed.stream().filter(Listed::isTable).map(Listed::name).toList();
    List<Outcome<T>> outcomes =
        map(catalog.spark(), names, threads, progress, name -> outcome(catalog, name, work));
    Map<String, T> done = new LinkedHashMap<>();
    List<Left> left = new ArrayList<>();
    Map<String, Left> absent = new LinkedHashMap<>();
    List<Left> notEncrypted = new ArrayList<>();
    listed.stream().filter(one -> one.failure() != null).forEach(one -> left.add(Left.of(one)));
    for (int i = 0; i < names.size(); i++) {
      Outcome<T> outcome = outcomes.get(i);
      if (outcome.done() != null) {
        done.put(names.get(i), outcome.done());
      } else if (outcome.left() != null) {
        left.add(outcome.left());
      } else if (outcome.notEncrypted() != null) {
        notEncrypted.add(outcome.notEncrypted());
      } else {
        absent.put(names.get(i), outcome.absent());
      }
    }

    Set<String> there = catalog.stillListed(absent.keySet());
    there.forEach(name -> left.add(absent.get(name)));
    List<String> gone = absent.keySet().stream().filter(name -> !there.contains(name)).toList();
    List<String> views = listed.stream().filter(Listed::view).map(Listed::name).toList();
    return new EachTable<>(done, left, gone, views, notEncrypted);
  }

  private static <T> Outcome<T> outcome(
      CatalogTables catalog, String name, Function<String, T> work) {
    try {
      return new Outcome<>(work.apply(name), null, null, null);
    } catch (Exception | LinkageError e) { // Spark's of Scala are checked, and not declared
      CancelledException.rethrow(e);
      Left left = Left.of(name, e);
      if (e instanceof NotEncryptedException || catalog.isOfOtherFormat(e)) {
        return new Outcome<>(null, null, left, null);
      }

      return CatalogTables.isAbsent(e)
          ? new Outcome<>(null, null, null, left)
          : new Outcome<>(null, left, null, null);
    }
  }

  /**
   * Does something to each table, in the same order; after an error no other begins.
   *
   * @param tables their full names
   * @param threads see {@link #of}
   * @throws CancelledException see there
   */
  public static <T> List<T> map(
      SparkSession spark,
      List<String> tables,
      int threads,
      Progress progress,
      Function<String, T> work) {
    Object[] results = new Object[tables.size()];
    progress.beginTables(results.length);
    if (threads == 1) {
      for (int i = 0; i < results.length; i++) {
        CancelledException.check();
        progress.beginTable(tables.get(i));
        results[i] = work.apply(tables.get(i));
        progress.endTable();
      }
    } else if (results.length > 0) {
      Workers.run(
          Math.min(results.length, threads),
          workers -> {
            for (int i = 0; i < results.length; i++) {
              int index = i;
              workers.begin(
                  () -> {
                    SparkSession.setActiveSession(spark);
                    results[index] = work.apply(tables.get(index));
                    progress.endTable();
                  });
            }
          });
    }

    @SuppressWarnings("unchecked")
    List<T> typed = (List<T>) Arrays.asList(results);
    return typed;
  }
}
