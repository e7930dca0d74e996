"""What writes files: each does the same with keys and, for the twin, without them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto._names import quoted


@dataclass
class Target:
    """A folder and a table that one writer fills, on one side.

    Attributes:
        options: of the write; none for the twin.
    """

    spark: SparkSession
    format: str
    folder: Path
    source: Path
    options: dict[str, str]
    table: str
    partitioned: bool
    compression: str

    def frame(self, batch: int) -> DataFrame:
        return self.spark.read.parquet(str(self.source / f"batch{batch}")).coalesce(1)

    def writer(self, batch: int, mode: str = "append") -> Any:
        made = self.frame(batch).write.format(self.format).mode(mode).options(**self.options)
        made = made.option("compression", self.compression)
        return made.partitionBy("part") if self.partitioned else made

    def sql(self, statement: str, batch: int = 0) -> None:
        """With {rows}, a view of the batch; {t}, {folder}, {options}, {parts} and {columns}."""
        self.frame(batch).createOrReplaceTempView("rows")
        options = {**self.options, "compression": self.compression}
        listed = ", ".join(f"{text(name)} {text(value)}" for name, value in options.items())
        data = ", ".join(quoted(name) for name in self.frame(batch).columns if name != "part")
        schema = ", ".join(
            f"{quoted(field.name)} {field.dataType.simpleString()}"
            for field in self.frame(batch).schema
        )
        self.spark.sql(
            statement.format(
                t=self.table,
                rows=f"(SELECT {data}, part FROM rows)",
                folder=str(self.folder),
                options=f"OPTIONS ({listed})",
                parts="PARTITIONED BY (part)" if self.partitioned else "",
                schema=schema,
                format=self.format,
            )
        )

    def read(self) -> DataFrame:
        return self.spark.read.format(self.format).load(str(self.folder))


def text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def save_append(t: Target) -> None:
    t.writer(0).save(str(t.folder))
    t.writer(1).save(str(t.folder))


def save_overwrite(t: Target) -> None:
    t.writer(0, "errorifexists").save(str(t.folder))
    t.writer(1, "overwrite").save(str(t.folder))
    t.writer(0, "ignore").save(str(t.folder))


def save_dynamic(t: Target) -> None:
    t.writer(0).save(str(t.folder))
    t.writer(1, "overwrite").option("partitionOverwriteMode", "dynamic").save(str(t.folder))


def save_as_table(t: Target) -> None:
    t.writer(0).option("path", str(t.folder)).saveAsTable(t.table)
    t.frame(1).write.format(t.format).mode("append").partitionBy(
        *(["part"] if t.partitioned else [])
    ).saveAsTable(t.table)


def buckets(t: Target) -> None:
    made = t.writer(0, "overwrite").option("path", str(t.folder))
    made.bucketBy(2, "id").sortBy("id").saveAsTable(t.table)


def ctas(t: Target) -> None:
    t.sql(
        "CREATE TABLE {t} USING {format} {options} {parts} LOCATION '{folder}' AS SELECT * FROM {rows}"
    )


def insert(t: Target) -> None:
    t.sql(
        "CREATE TABLE {t} USING {format} {options} {parts} LOCATION '{folder}' AS SELECT * FROM {rows} WHERE id < 0"
    )
    t.sql("INSERT INTO {t} SELECT * FROM {rows}")
    t.sql("INSERT OVERWRITE {t} SELECT * FROM {rows}", 1)


def insert_dynamic(t: Target) -> None:
    t.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    insert(t)
    t.frame(1).select(t.spark.table(t.table).columns).write.insertInto(t.table, overwrite=True)


def directory(t: Target) -> None:
    t.sql("INSERT OVERWRITE DIRECTORY '{folder}' USING {format} {options} SELECT * FROM {rows}")


def stream(t: Target) -> None:
    stream_of(t).format(t.format).options(**t.options).option("compression", t.compression).start(
        str(t.folder)
    ).awaitTermination()


def for_each_batch(t: Target) -> None:
    def one(frame: DataFrame, _: int) -> None:
        writer = frame.write.format(t.format).mode("append").options(**t.options)
        (writer.partitionBy("part") if t.partitioned else writer).save(str(t.folder))

    stream_of(t).foreachBatch(one).start().awaitTermination()


def stream_of(t: Target) -> Any:
    read = t.spark.readStream.schema(t.frame(0).schema).parquet(str(t.source / "batch*"))
    made = read.writeStream.option("checkpointLocation", f"{t.folder}-checkpoint")
    return (made.partitionBy("part") if t.partitioned else made).trigger(availableNow=True)


def hive_table(t: Target) -> None:
    """Spark's own writer, by conversion."""
    hive(t, "true")


def hives_writer(t: Target) -> None:
    hive(t, "false")


def hive(t: Target, converted: str) -> None:
    t.spark.conf.set(f"spark.sql.hive.convertMetastore{t.format.capitalize()}", converted)
    t.sql(
        "CREATE TABLE {t} ({schema}) STORED AS {format} LOCATION '{folder}'"
        + (f" TBLPROPERTIES ({properties(t)})" if t.options else "")
    )
    t.sql("INSERT INTO {t} SELECT id, part, * EXCEPT (id, part) FROM rows")


def hive_directory(t: Target) -> None:
    """Not converted: Hive's own writer makes the files."""
    t.spark.conf.set("spark.sql.hive.convertMetastoreInsertDir", "false")
    t.sql("INSERT OVERWRITE DIRECTORY '{folder}' STORED AS {format} SELECT * FROM {rows}")


def properties(t: Target) -> str:
    return ", ".join(f"{text(name)} = {text(value)}" for name, value in t.options.items())


def after_a_cache(t: Target) -> None:
    """Sorted, with spilling, cached on disk, and written from there."""
    from pyspark import StorageLevel

    t.spark.conf.set("spark.sql.windowExec.buffer.spill.threshold", "2")
    rows = (
        t.frame(0).repartition(2, "id").sortWithinPartitions("part").persist(StorageLevel.DISK_ONLY)
    )
    rows.count()
    writer = rows.write.format(t.format).options(**t.options)
    writer.save(str(t.folder))
    t.read().repartition(2).localCheckpoint().count()
    if t.spark.sparkContext.getCheckpointDir():
        t.read().checkpoint()
    rows.unpersist()


Writer = Callable[[Target], None]
TO_FOLDERS: tuple[Writer, ...] = (
    *(save_append, save_overwrite, save_dynamic, directory, stream, for_each_batch),
    *(hive_directory, after_a_cache),
)
TO_TABLES: tuple[Writer, ...] = (
    *(save_as_table, buckets, ctas, insert, insert_dynamic, hive_table, hives_writer),
)
# What writes once: if that is refused, there is no file.
AT_ONCE = (buckets, ctas, directory, stream, for_each_batch, hive_directory, after_a_cache)
