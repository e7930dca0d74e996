package io.icebergcrypto.spark.call;

import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure. Spark has an interface of its own for them since 4.0, and Iceberg one for older
 * versions: {@code SparkProcedure} of each version makes that of this.
 *
 * @param name its name, without those of catalog and namespace
 * @param description what it does, in a sentence
 * @param parameters in the order of the values of the row that it is called with
 * @param outputType the columns of what it gives; null where Spark asks the scan instead
 * @param isDeterministic whether the same arguments always give the same
 * @param icebergs Iceberg's own, if it is that as it is; else null
 * @param work runs it
 */
public record Procedure(
    String name,
    String description,
    List<Parameter> parameters,
    StructType outputType,
    boolean isDeterministic,
    Object icebergs,
    Function<InternalRow, Iterator<Scan>> work) {
  /** Runs it. */
  public Iterator<Scan> call(InternalRow input) {
    return work.apply(input);
  }

  /** The same, but for what it does. */
  public Procedure doing(Function<InternalRow, Iterator<Scan>> other) {
    return new Procedure(name, description, parameters, outputType, isDeterministic, null, other);
  }
}
