package io.icebergcrypto.spark.call;

import java.util.ArrayList;
import java.util.Arrays;
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
public record SparkProcedure(Procedure procedure)
    implements org.apache.spark.sql.connector.iceberg.catalog.Procedure {
  /** A procedure for Iceberg; one of Iceberg's as it is. */
  public static org.apache.spark.sql.connector.iceberg.catalog.Procedure of(Procedure procedure) {
    return procedure.icebergs()
            instanceof org.apache.spark.sql.connector.iceberg.catalog.Procedure icebergs
        ? icebergs
        : new SparkProcedure(procedure);
  }

  /** A procedure of Iceberg's. */
  public static Procedure iceberg(
      String name, org.apache.spark.sql.connector.iceberg.catalog.Procedure icebergs) {
    List<Parameter> parameters =
        Arrays.stream(icebergs.parameters())
            .map(one -> new Parameter(one.name(), one.dataType(), one.required() ? null : "NULL"))
            .toList();
    StructType columns = icebergs.outputType();
    return new Procedure(
        name,
        icebergs.description(),
        parameters,
        columns,
        false,
        icebergs,
        input -> List.<Scan>of(new Rows(columns, icebergs.call(input))).iterator());
  }

  @Override
  public ProcedureParameter[] parameters() {
    return procedure.parameters().stream()
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

  private record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
