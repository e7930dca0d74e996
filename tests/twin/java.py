"""What is done through Iceberg's Java API: as Flink does it, or because SQL does not show it."""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession


def loaded(spark: SparkSession, table: str) -> Any:
    """The table as Java has it, fresh from its catalog."""
    spark.sql(f"REFRESH TABLE {table}")
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)


def metadata(spark: SparkSession, table: str) -> dict[str, Any]:
    """A table's metadata, as its JSON has it."""
    jvm: Any = spark._jvm
    current = loaded(spark, table).operations().current()
    found: dict[str, Any] = json.loads(jvm.org.apache.iceberg.TableMetadataParser.toJson(current))
    found["metadata-file"] = current.metadataFileLocation()
    return found


def upsert_as_flink(
    spark: SparkSession,
    table: str,
    column: str,
    deleted: Sequence[Any],
    rows: Sequence[dict[str, Any]] = (),
    branch: str = "main",
) -> None:
    """Commits equality deletes of one column's values, and rows, in one row delta.

    Args:
        column: its values say which rows are deleted.
        deleted: these values.
        rows: new ones, each by the names of columns that have values.
        branch: where to.
    """
    java = loaded(spark, table)
    delta = java.newRowDelta()
    if branch != "main":
        delta = delta.toBranch(branch)
    field = java.schema().findField(column)
    equality = java.schema().select([column])
    gone = [{column: value} for value in deleted]
    delta = delta.addDeletes(written(spark, java, equality, gone, field.fieldId()))
    if rows:
        delta = delta.addRows(written(spark, java, java.schema(), rows))
    delta.commit()
    spark.sql(f"REFRESH TABLE {table}")


def written(
    spark: SparkSession,
    table: Any,
    schema: Any,
    rows: Sequence[dict[str, Any]],
    equality: int | None = None,
) -> Any:
    """A file with these rows, as Iceberg's writers in Java make it: of data, or of equality deletes by a field."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    factory = jvm.org.apache.iceberg.data.GenericFileWriterFactory.Builder(table)
    files = jvm.org.apache.iceberg.io.OutputFileFactory.builderFor(table, 1, 1).build()
    if equality is None:
        make = factory.build().newDataWriter
    else:
        ids = gateway.new_array(jvm.int, 1)
        ids[0] = equality
        factory = factory.equalityFieldIds(ids).equalityDeleteRowSchema(schema)
        make = factory.build().newEqualityDeleteWriter
    writer = make(files.newOutputFile(), table.spec(), None)
    parse = jvm.org.apache.iceberg.SingleValueParser.fromJson  # Py4J makes an int of every long
    for row in rows:
        ids = {str(schema.findField(name).fieldId()): value for name, value in row.items()}
        writer.write(parse(schema.asStruct(), json.dumps(ids)))
    writer.close()
    return writer.toDataFile() if equality is None else writer.toDeleteFile()
