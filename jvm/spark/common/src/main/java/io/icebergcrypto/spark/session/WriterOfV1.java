package io.icebergcrypto.spark.session;

import java.lang.StackWalker.StackFrame;
import java.util.Iterator;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;

/**
 * Spark's writer of DataFrames where it saves a table without a call of {@code spark_catalog}: V1,
 * as Spark has it.
 */
public final class WriterOfV1 {
  /** The last name that this thread's writer was allowed to replace, in small letters. */
  private static final ThreadLocal<String> ALLOWED = new ThreadLocal<>();

  private WriterOfV1() {}

  /**
   * Remembers that the writer may replace a table: what it creates next has passed its checks, and
   * a refusal after the drop would lose the table.
   */
  public static void allow(TableIdentifier table) {
    ALLOWED.set(key(table));
  }

  /** Whether the writer has probably dropped the table by now, to create another. */
  static boolean wasAllowed(TableIdentifier table) {
    return key(table).equals(ALLOWED.get());
  }

  /** Forgets it, as the writer's statement is over. */
  static void forget() {
    ALLOWED.remove();
  }

  /** The same, unless this thread is still in that statement. */
  static void forgetAfterwards() {
    if (ALLOWED.get() != null
        && !StackWalker.getInstance().walk(frames -> frames.anyMatch(WriterOfV1::saves))) {
      forget();
    }
  }

  private static boolean saves(StackFrame caller) {
    return caller.getMethodName().equals("saveAsTable")
        && caller.getClassName().startsWith("org.apache.spark.sql.")
        && caller.getClassName().endsWith(".DataFrameWriter");
  }

  private static String key(TableIdentifier table) {
    return table.toString().toLowerCase(Locale.ROOT);
  }

  /**
   * Whether this thread is in {@code saveAsTable} with mode overwrite, which loads the existing
   * table to see that the DataFrame is not read from it. As soon as it has the table, it drops it
   * and creates one of another format, both in Spark's own catalog. No rule of an extension sees
   * that in time: only the callers of the load tell.
   */
  public static boolean isAboutToReplace() {
    return AnalysisContext.get().catalogAndNamespace().isEmpty() // not what a view reads
        && StackWalker.getInstance().walk(WriterOfV1::loadsTable);
  }

  private static boolean loadsTable(Stream<StackFrame> frames) {
    String called = "";
    for (Iterator<StackFrame> callers = frames.iterator(); callers.hasNext(); ) {
      StackFrame caller = callers.next();
      if (called.equals("table") && saves(caller)) {
        return true;
      }

      called = caller.getMethodName();
    }

    return false;
  }
}
