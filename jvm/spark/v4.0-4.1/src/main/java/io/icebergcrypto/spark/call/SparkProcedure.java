package io.icebergcrypto.spark.call;

import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** A procedure as Spark 4 calls it. */
public final class SparkProcedure implements UnboundProcedure, BoundProcedure {
  private final Procedure procedure;

  private SparkProcedure(Procedure procedure) {
    this.procedure = procedure;
  }

  /** A procedure for Spark; one of Iceberg's as it is. */
  public static UnboundProcedure of(Procedure procedure) {
    return procedure instanceof OfIceberg iceberg ? iceberg.unbound : new SparkProcedure(procedure);
  }

  /** A procedure of Iceberg's. */
  public static Procedure iceberg(UnboundProcedure unbound) {
    return new OfIceberg(unbound, unbound.bind(new StructType()));
  }

  @Override
  public String name() {
    return procedure.name();
  }

  @Override
  public String description() {
    return procedure.description();
  }

  @Override
  public BoundProcedure bind(StructType inputType) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return Arrays.stream(procedure.parameters())
        .map(SparkProcedure::parameter)
        .toArray(ProcedureParameter[]::new);
  }

  private static ProcedureParameter parameter(Parameter parameter) {
    ProcedureParameter.Builder builder = ProcedureParameter.in(parameter.name(), parameter.type());
    return parameter.defaultValue() == null
        ? builder.build()
        : builder.defaultValue(parameter.defaultValue()).build();
  }

  @Override
  public boolean isDeterministic() {
    return procedure.isDeterministic();
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    return procedure.call(input);
  }

  private record OfIceberg(UnboundProcedure unbound, BoundProcedure bound) implements Procedure {
    @Override
    public String name() {
      return unbound.name();
    }

    @Override
    public String description() {
      return unbound.description();
    }

    @Override
    public Parameter[] parameters() {
      return Arrays.stream(bound.parameters())
          .map(
              one ->
                  new Parameter(
                      one.name(),
                      one.dataType(),
                      one.defaultValue() == null ? null : one.defaultValue().getSql()))
          .toArray(Parameter[]::new);
    }

    @Override
    public StructType outputType() {
      return null;
    }

    @Override
    public boolean isDeterministic() {
      return bound.isDeterministic();
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      return bound.call(input);
    }
  }
}
