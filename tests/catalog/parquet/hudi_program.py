"""What test_hudi.py runs on Spark 3.5: Hudi's tables, with keys in their Parquet files.

Reads its settings as JSON from standard input and writes each step's outcome as JSON to standard output.
"""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import (
    IcebergCryptoError,
    Keystore,
    ParquetKeys,
    configure_spark,
    typed_errors,
    verify_folder,
)

MARKER = "sesame-4711"
ALLOWED = {"iceberg-crypto.hudi.plaintext": "allow"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **ALLOWED}
STATISTICS = "hoodie.metadata.index.column.stats.enable"


def main() -> None:
    settings = json.load(sys.stdin)
    builder = SparkSession.builder.appName("iceberg-crypto Hudi test")
    for key, value in settings["conf"].items():
        builder = builder.config(key, value)
    folder = Path(settings["folder"])
    keys = Keystore(folder / "keys.p12", password_env="KEYSTORE_PASSWORD")
    parquet = ParquetKeys(footer="footer", columns={"ssn": "pii"})
    warehouse = str(folder / "warehouse")
    configure_spark(
        builder, "lake", "hadoop", warehouse=warehouse, kms=keys, parquet_columns=parquet
    )
    work = Work(builder.getOrCreate(), folder, keys)
    seen = work.done()
    work.spark.stop()
    sys.stdout.write("SEEN " + json.dumps(seen, default=str) + "\n")


class Work:
    """The steps, each of which is told apart: what it saw, or its error."""

    def __init__(self, spark: SparkSession, folder: Path, keys: Keystore) -> None:
        self.spark = spark
        self.folder = folder
        self.keys = keys

    def done(self) -> dict[str, Any]:
        steps: list[Callable[[], Any]] = [
            *(self.copy_on_write, self.denied, self.verified, self.bulk_insert, self.clustered),
            *(self.archived, self.merge_on_read, self.parquet_in_logs, self.statistics, self.sql),
            *(self.refused, self.refused_in_sql, self.nothing_written),
        ]
        seen = {}
        for step in steps:
            try:
                seen[step.__name__] = step()
            except Exception:  # noqa: BLE001 (told by the step's test)
                seen[step.__name__] = {"error": traceback.format_exc()}
        return seen

    def rows(self, start: int, end: int, ts: int) -> DataFrame:
        return self.spark.range(start, end).select(
            "id",
            fn.lit(MARKER).alias("ssn"),
            fn.lit("a").alias("part"),
            fn.lit(ts).alias("ts"),
            fn.struct(fn.lit("Hill").alias("street")).alias("address"),
            fn.array(fn.lit("tag")).alias("tags"),
        )

    def write(self, name: str, rows: DataFrame, operation: str = "upsert", **more: str) -> None:
        options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.operation": operation,
            STATISTICS: "false",
            **more,
        }
        options = {key: value for key, value in options.items() if value}
        with typed_errors():
            rows.write.format("hudi").options(**options).mode("append").save(
                str(self.folder / name)
            )

    def read(
        self, name: str, query: str = "snapshot", spark: SparkSession | None = None
    ) -> DataFrame:
        reader = (spark or self.spark).read.format("hudi")
        return reader.option("hoodie.datasource.query.type", query).load(str(self.folder / name))

    def by_ts(self, name: str, query: str = "snapshot") -> dict[str, int]:
        found = self.read(name, query).where(f"ssn = '{MARKER}'").groupBy("ts").count().collect()
        return {str(row["ts"]): row["count"] for row in found}

    def files(self, name: str, pattern: str) -> dict[str, list[Any]]:
        """Of the table's own files: their first bytes, and whether the marker is in them."""
        found = sorted((self.folder / name).glob(pattern))
        return {
            str(path.relative_to(self.folder / name)): [
                path.read_bytes()[:4].decode("latin-1"),
                MARKER.encode() in path.read_bytes(),
            ]
            for path in found
            if not path.name.endswith(".crc")
        }

    def problems(self, name: str, *, deep: bool = False) -> dict[str, Any]:
        with verify_folder(
            self.spark, str(self.folder / name), deep=deep, progress=False
        ) as report:
            return {
                "encrypted": {c.kind: c.files for c in report.counts if c.encrypted},
                "problems": sorted({(p.kind, p.code) for p in report.problems}),
                "logs": [p.problem for p in report.problems if p.kind == "hudi log"],
                "paths": [p.path for p in report.problems],
            }

    def copy_on_write(self) -> Any:
        self.write("cow", self.rows(0, 10, 1), "insert")
        self.write("cow", self.rows(5, 15, 2))
        self.write("cow", self.rows(0, 2, 3).select("id", "ts", "part"), "delete")
        incremental = self.spark.read.format("hudi").options(
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "0",
            }
        )
        return {
            "snapshot": self.by_ts("cow"),
            "read_optimized": self.by_ts("cow", "read_optimized"),
            "incremental": incremental.load(str(self.folder / "cow")).count(),
            "files": self.files("cow", "a/*.parquet"),
        }

    def denied(self) -> Any:
        """Who may use the footer's key alone."""
        clerk = self.spark.newSession()
        clerk.conf.set("iceberg-crypto.encryption.allowed-key-ids", "footer")
        told = ""
        try:
            with typed_errors():
                self.read("cow", spark=clerk).select("ssn").collect()
        except IcebergCryptoError as error:
            told = f"{type(error).__name__}: {error}"
        return {"ids": self.read("cow", spark=clerk).agg(fn.sum("id")).first()[0], "ssn": told}

    def verified(self) -> Any:
        return [self.problems("cow"), self.problems("cow", deep=True)]

    def bulk_insert(self) -> Any:
        by_row = {"hoodie.datasource.write.row.writer.enable": "true"}
        self.write("bulk", self.rows(0, 10, 1), "bulk_insert", **by_row)
        return [self.by_ts("bulk"), self.files("bulk", "a/*.parquet")]

    def clustered(self) -> Any:
        often = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
        self.write("clustered", self.rows(0, 10, 1), "insert", **often)
        replaced = list((self.folder / "clustered" / ".hoodie/timeline").glob("*.replacecommit"))
        return [len(replaced), self.by_ts("clustered"), self.files("clustered", "a/*.parquet")]

    def archived(self) -> Any:
        """Hudi writes old parts of its timeline as Parquet, which has none of the columns."""
        soon = {
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.clean.commits.retained": "1",
        }
        for ts in range(7):
            self.write("archived", self.rows(0, 4, ts), **soon)
        return [
            self.by_ts("archived"),
            self.files("archived", ".hoodie/timeline/history/*.parquet"),
        ]

    def merge_on_read(self) -> Any:
        self.write("mor", self.rows(0, 10, 1), "insert", **MOR)
        self.write("mor", self.rows(5, 10, 2), **{**MOR, "hoodie.compact.inline": "false"})
        seen = {
            "snapshot": self.by_ts("mor"),
            "read_optimized": self.by_ts("mor", "read_optimized"),
            "base": self.files("mor", "a/*.parquet"),
            "logs": self.files("mor", "a/.*.log.*"),
            "verified": self.problems("mor"),
        }
        compact = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        self.write("mor", self.rows(5, 10, 3), **MOR, **compact)
        seen["compacted"] = self.by_ts("mor", "read_optimized")
        seen["compacted base"] = self.files("mor", "a/*.parquet")
        return seen

    def parquet_in_logs(self) -> Any:
        blocks = {**MOR, "hoodie.logfile.data.block.format": "parquet"}
        self.write("blocks", self.rows(0, 10, 1), "insert", **blocks)
        self.write("blocks", self.rows(5, 10, 2), **blocks)
        return [self.by_ts("blocks"), self.files("blocks", "a/.*.log.*"), self.problems("blocks")]

    def statistics(self) -> Any:
        """What Hudi 1.0 does by default, with keys or without."""
        self.write("statistics", self.rows(0, 10, 1), "insert", **ALLOWED, **{STATISTICS: ""})
        table = self.spark.read.format("hudi").load(f"{self.folder}/statistics/.hoodie/metadata")
        values = table.where("type = 3 AND ColumnStatsMetadata.columnName = 'ssn'")
        return str(values.select("ColumnStatsMetadata.minValue").collect())

    def sql(self) -> Any:
        name = "spark_catalog.default.h"
        self.spark.sql(
            f"CREATE TABLE {name} (id BIGINT, ssn STRING, ts INT) USING hudi TBLPROPERTIES"
            f" (primaryKey = 'id', preCombineField = 'ts', '{STATISTICS}' = 'false')"
            f" LOCATION '{self.folder}/sql'"
        )
        self.spark.sql(f"INSERT INTO {name} VALUES (1, '{MARKER}', 1), (2, 'x', 1), (3, 'y', 1)")
        self.spark.sql(f"UPDATE {name} SET ts = 2 WHERE id = 1")
        self.spark.sql(
            f"MERGE INTO {name} USING (SELECT 2L AS id, '{MARKER}' AS ssn, 3 AS ts) s"
            f" ON {name}.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
        self.spark.sql(f"DELETE FROM {name} WHERE id = 3")
        found = self.spark.sql(f"SELECT id, ssn, ts FROM {name} ORDER BY id").collect()
        self.spark.sql(
            f"CREATE TABLE selected USING hudi TBLPROPERTIES (primaryKey = 'id', '{STATISTICS}' ="
            f" 'false') AS SELECT id, ssn FROM {name}"
        )
        selected = self.files("spark-warehouse/selected", "*.parquet")
        return [[list(row) for row in found], self.files("sql", "*.parquet"), selected]

    def told(self, work: Callable[[], Any]) -> str:
        try:
            with typed_errors():
                work()
        except IcebergCryptoError as error:
            return f"{type(error).__name__}: {error}"
        return "not refused"

    def refused(self) -> Any:
        rows = self.rows(0, 3, 1)
        typo = rows.withColumnRenamed("ssn", "snn")
        record_key = "hoodie.datasource.write.recordkey.field"
        partition = "hoodie.datasource.write.partitionpath.field"

        def by_columns() -> None:
            options = {"hoodie.table.name": "r", record_key: "id", STATISTICS: "false"}
            writer = rows.write.format("hudi").options(**options).partitionBy("ssn")
            writer.mode("append").save(f"{self.folder}/refused")

        def overwrite() -> None:
            options = {"hoodie.table.name": "cow", record_key: "id", STATISTICS: "false"}
            options["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
            writer = rows.write.format("hudi").options(**options)
            writer.mode("overwrite").save(f"{self.folder}/cow")

        def write(rows: DataFrame = rows, **more: str) -> Callable[[], None]:
            return lambda: self.write("refused", rows, **more)

        def in_context(name: str, value: str) -> Callable[[], None]:
            def run() -> None:
                hadoop: Any = self.spark.sparkContext._jsc.hadoopConfiguration()
                hadoop.set(name, value)
                try:
                    self.write("refused", rows)
                finally:
                    hadoop.unset(name)

            return run

        def in_session() -> None:
            session = self.spark.newSession()
            keys = ParquetKeys(uniform="pii")
            configure_spark(
                session,
                "late",
                "hadoop",
                warehouse=str(self.folder),
                kms=self.keys,
                path_access=False,
                parquet_columns=keys,
            )
            self.write(
                "refused", session.createDataFrame([(1, "a", 1)], "id INT, part STRING, ts INT")
            )

        return {
            "merge on read": self.told(write(**{**MOR, **dict.fromkeys(ALLOWED, "refuse")})),
            "statistics": self.told(write(**{STATISTICS: ""})),
            "changes": self.told(write(**{"hoodie.table.cdc.enabled": "true"})),
            "record index": self.told(write(**{"hoodie.metadata.record.index.enable": "true"})),
            "orc": self.told(write(**{"hoodie.table.base.file.format": "ORC"})),
            "record key": self.told(write(**{record_key: "ssn"})),
            "partition": self.told(write(**{partition: "ssn"})),
            "partitionBy": self.told(by_columns),
            "column": self.told(write(typo)),
            "option": self.told(write(**{"parquet.encryption.column.keys": "pii:tags"})),
            "session": self.told(in_session),
            "existing": self.told(lambda: self.write("mor", rows)),
            "overwriting": self.told(overwrite),
            "bootstrap": self.told(write(**{"hoodie.datasource.write.operation": "bootstrap"})),
            "footer": self.told(in_context("parquet.encryption.plaintext.footer", "true")),
            "keys beside": self.told(
                in_context("parquet.encryption.key.material.store.internally", "false")
            ),
        }

    def refused_in_sql(self) -> Any:
        table = "(id BIGINT, ssn STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id'"
        place = f"LOCATION '{self.folder}/refused'"
        return {
            "statistics": self.told(lambda: self.spark.sql(f"CREATE TABLE r1 {table}) {place}")),
            "merge on read": self.told(
                lambda: self.spark.sql(
                    f"CREATE TABLE r2 {table}, type = 'mor', '{STATISTICS}' = 'false') {place}"
                )
            ),
            "as select": self.told(
                lambda: self.spark.sql(
                    "CREATE TABLE refused USING hudi TBLPROPERTIES (primaryKey = 'id',"
                    f" type = 'mor', '{STATISTICS}' = 'false') AS SELECT 1 AS id, 'x' AS ssn"
                )
            ),
            "index": self.told(
                lambda: self.spark.sql("CREATE INDEX i ON h USING secondary_index(ssn)")
            ),
        }

    def nothing_written(self) -> Any:
        folders = ("refused", "spark-warehouse/refused")
        return [name for name in folders if (self.folder / name).exists()]


if __name__ == "__main__":
    main()
