package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.spark.table.CatalogTables.Listed;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
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
  /** How often a KMS that is away is asked again, each time after a pause. */
  private static final int WAITS = 6;

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
   * What came of one table: one of the first four.
   *
   * @param absent why it could not be loaded, which some catalogs also say of one that is there
   * @param cutOff whether that is so because the KMS was away
   */
  private record Outcome<T>(T done, Left left, Left notEncrypted, Left absent, boolean cutOff) {}

  /** What is done to each. */
  private record Task<T>(
      CatalogTables catalog,
      int threads,
      Progress progress,
      Function<String, T> work,
      Predicate<T> isCutOff) {
    Outcome<T> outcome(String name) {
      try {
        T done = work.apply(name);
        return new Outcome<>(done, null, null, null, isCutOff.test(done));
      } catch (Exception | LinkageError e) { // Spark's of Scala are checked, and not declared
        CancelledException.rethrow(e);
        Left left = Left.of(name, e);
        if (e instanceof NotEncryptedException || catalog.isOfOtherFormat(e)) {
          return new Outcome<>(null, null, left, null, false);
        } else if (CatalogTables.isAbsent(e)) {
          return new Outcome<>(null, null, null, left, false);
        }

        boolean cutOff = Causes.any(e, KmsUnavailableException.class::isInstance);
        return new Outcome<>(null, left, null, null, cutOff);
      }
    }

    void all(List<String> names, Map<String, Outcome<T>> outcomes) {
      List<Outcome<T>> found = map(catalog.spark(), names, threads, progress, this::outcome);
      for (int i = 0; i < names.size(); i++) {
        outcomes.put(names.get(i), found.get(i));
      }
    }

    /**
     * A KMS that is away for a minute cuts off many tables, as a circuit breaker lets no call
     * through: these are tried once more. One that never answered is not waited for.
     */
    void again(Map<String, Outcome<T>> outcomes) {
      List<String> cutOff =
          outcomes.keySet().stream().filter(name -> outcomes.get(name).cutOff()).toList();
      CachingKmsClient kms = catalog.kmsOrNull();
      boolean answered =
          outcomes.values().stream().anyMatch(one -> one.done() != null && !one.cutOff());
      if (kms == null || cutOff.isEmpty() || !answered) {
        return;
      }

      String first = cutOff.get(0); // by itself: the breaker then lets one call through
      for (int wait = 0; wait < WAITS && outcomes.get(first).cutOff(); wait++) {
        pause(kms.breakerDelayMs());
        outcomes.put(first, outcome(first));
      }

      all(cutOff.subList(1, cutOff.size()), outcomes); // it may be the key of the first alone
    }

    private static void pause(long millis) {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        CancelledException.rethrow(e);
      }
    }
  }

  /**
   * Does it. When the KMS was away meanwhile, and is back, the tables that it kept from that are
   * tried once more.
   *
   * @param listed tables of the catalog
   * @param threads how many tables at once; 1: on this thread, where a statement's Spark jobs are
   *     to begin
   * @param progress who is told how far it is
   * @param work does it to the table of a full name
   * @param isCutOff whether what was done says that the KMS was away, as an error would
   * @throws CancelledException when it was cancelled; what was begun has ended
   */
  public static <T> EachTable<T> of(
      CatalogTables catalog,
      List<Listed> listed,
      int threads,
      Progress progress,
      Function<String, T> work,
      Predicate<T> isCutOff) {
    Task<T> task = new Task<>(catalog, threads, progress, work, isCutOff);
    Map<String, Outcome<T>> outcomes = new LinkedHashMap<>();
    task.all(listed.stream().filter(Listed::isTable).map(Listed::name).toList(), outcomes);
    task.again(outcomes);
    Map<String, T> done = new LinkedHashMap<>();
    List<Left> left = new ArrayList<>();
    Map<String, Left> absent = new LinkedHashMap<>();
    List<Left> notEncrypted = new ArrayList<>();
    listed.stream().filter(one -> one.failure() != null).forEach(one -> left.add(Left.of(one)));
    outcomes.forEach(
        (name, outcome) -> {
          if (outcome.done() != null) {
            done.put(name, outcome.done());
          } else if (outcome.left() != null) {
            left.add(outcome.left());
          } else if (outcome.notEncrypted() != null) {
            notEncrypted.add(outcome.notEncrypted());
          } else {
            absent.put(name, outcome.absent());
          }
        });
    Set<String> there = catalog.stillListed(absent.keySet());
    there.forEach(name -> left.add(absent.get(name)));
    List<String> gone = absent.keySet().stream().filter(name -> !there.contains(name)).toList();
    List<String> views = listed.stream().filter(Listed::view).map(Listed::name).toList();
    return new EachTable<>(done, left, gone, views, notEncrypted);
  }

  /** The same, when those that have gone need not be told. */
  EachTable<T> withoutGone() {
    return new EachTable<>(done, left, List.of(), views, notEncrypted);
  }

  /**
   * What came of these tables and of others later, which may have their names; those of these that
   * have gone are not told.
   */
  EachTable<T> with(EachTable<T> later) {
    Map<String, T> all = new LinkedHashMap<>(done);
    all.putAll(later.done());
    return new EachTable<>(
        all,
        both(left, later.left),
        later.gone,
        both(views, later.views),
        both(notEncrypted, later.notEncrypted));
  }

  private static <E> List<E> both(List<E> some, List<E> others) {
    return Stream.of(some, others).flatMap(List::stream).toList();
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
