package io.icebergcrypto.spark.call;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** A procedure as Spark 4 calls it. */
public record SparkProcedure(Procedure procedure) implements UnboundProcedure, BoundProcedure {
  /** A procedure for Spark; one of Iceberg's as it is. */
  public static UnboundProcedure of(Procedure procedure) {
    return procedure.icebergs() instanceof UnboundProcedure icebergs
        ? icebergs
        : new SparkProcedure(procedure);
  }

  /** A procedure of Iceberg's. */
  public static Procedure iceberg(UnboundProcedure unbound) {
    BoundProcedure bound = unbound.bind(new StructType());
    List<Parameter> parameters =
        Arrays.stream(bound.parameters())
            .map(
                one ->
                    new Parameter(
                        one.name(),
                        one.dataType(),
                        one.defaultValue() == null ? null : one.defaultValue().getSql()))
            .toList();
    return new Procedure(
        unbound.name(),
        unbound.description(),
        parameters,
        null,
        bound.isDeterministic(),
        unbound,
        bound::call);
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
    return procedure.parameters().stream()
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
}
