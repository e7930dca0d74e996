package io.icebergcrypto.spark.call;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.iceberg.catalog.ProcedureParameter;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure as Iceberg calls it for Spark 3.5. What is not given is null, regardless of the
 * default.
 */
public final class SparkProcedure
    implements org.apache.spark.sql.connector.iceberg.catalog.Procedure {
  private final Procedure procedure;

  private SparkProcedure(Procedure procedure) {
    this.procedure = procedure;
  }

  /** A procedure for Iceberg; one of Iceberg's as it is. */
  public static org.apache.spark.sql.connector.iceberg.catalog.Procedure of(Procedure procedure) {
    return procedure instanceof OfIceberg iceberg
        ? iceberg.delegate
        : new SparkProcedure(procedure);
  }

  /** A procedure of Iceberg's. */
  public static Procedure iceberg(
      String name, org.apache.spark.sql.connector.iceberg.catalog.Procedure procedure) {
    return new OfIceberg(name, procedure);
  }

  @Override
  public ProcedureParameter[] parameters() {
    return Arrays.stream(procedure.parameters())
        .map(
            one ->
                one.defaultValue() == null
                    ? ProcedureParameter.required(one.name(), one.type())
                    : ProcedureParameter.optional(one.name(), one.type()))
        .toArray(ProcedureParameter[]::new);
  }

  @Override
  public StructType outputType() {
    return procedure.outputType();
  }

  @Override
  public InternalRow[] call(InternalRow input) {
    List<InternalRow> rows = new ArrayList<>();
    procedure.call(input).forEachRemaining(scan -> rows.addAll(rows(scan)));
    return rows.toArray(InternalRow[]::new);
  }

  private static List<InternalRow> rows(Scan scan) {
    return Arrays.asList(((LocalScan) scan).rows());
  }

  @Override
  public String description() {
    return procedure.description();
  }

  private record OfIceberg(
      String name, org.apache.spark.sql.connector.iceberg.catalog.Procedure delegate)
      implements Procedure {
    @Override
    public String description() {
      return delegate.description();
    }

    @Override
    public Parameter[] parameters() {
      return Arrays.stream(delegate.parameters())
          .map(one -> new Parameter(one.name(), one.dataType(), one.required() ? null : "NULL"))
          .toArray(Parameter[]::new);
    }

    @Override
    public StructType outputType() {
      return delegate.outputType();
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      return List.<Scan>of(new Rows(delegate.outputType(), delegate.call(input))).iterator();
    }
  }

  private record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
