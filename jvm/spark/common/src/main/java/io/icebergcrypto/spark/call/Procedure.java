package io.icebergcrypto.spark.call;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure. Spark has an interface of its own for them since 4.0, and Iceberg one for older
 * versions: {@code SparkProcedure} of each version makes that of this.
 */
public interface Procedure {
  /** Its name, without those of catalog and namespace. */
  String name();

  /** What it does, in a sentence. */
  String description();

  /** Its parameters, in the order of the values of {@link #call}. */
  Parameter[] parameters();

  /** The columns of what it gives; null where Spark asks the scan instead. */
  StructType outputType();

  /** Whether the same arguments always give the same. */
  default boolean isDeterministic() {
    return false;
  }

  /** Runs it. */
  Iterator<Scan> call(InternalRow input);
}
