"""What test_hudi.py runs on Spark 3.5: Hudi's tables, with keys in their Parquet files.

With the setting "unchecked", Spark has no extension that checks statements: only its tasks refuse.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from harness.columns import MARKER, Work
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import IcebergCryptoError, typed_errors, verify_folder

ALLOWED = "iceberg-crypto.hudi.plaintext"
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
METADATA = "hoodie.metadata.enable"
EPOCHS = (1764420000, 1764420001)  # seconds
EVENTS = "hoodie.payload.event.time.field"
EMPTY_LOG = 200  # bytes, of which Hudi makes one for each part of an index


def avro(value: int) -> bytes:
    """As Avro writes a positive long."""
    rest, found = value * 2, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


class HudiWork(Work):
    form = "hudi"

    def steps(self) -> list[Callable[[], Any]]:
        return [
            *(self.copy_on_write, self.denied, self.verified, self.bulk_insert, self.clustered),
            *(self.archived, self.merge_on_read, self.parquet_in_logs, self.statistics, self.sql),
            *(self.indexes, self.turned_off, self.event_times, self.refused, self.refused_in_sql),
            self.nothing_written,
        ]

    def unchecked(self) -> list[Callable[[], Any]]:
        return [self.sound, self.refused_by_tasks, self.indexed, self.left]

    @contextmanager
    def context(self, name: str = ALLOWED, value: str = "allow") -> Iterator[None]:
        """Sets something in SparkContext's Hadoop configuration, from which Hudi takes it."""
        hadoop: Any = self.spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set(name, value)
        try:
            yield
        finally:
            hadoop.unset(name)

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
            METADATA: "false",
            EVENTS: "none",
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
        with self.context():
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
        with self.context():
            self.write("mor", self.rows(5, 10, 3), **MOR, **compact)
        seen["compacted"] = self.by_ts("mor", "read_optimized")
        seen["compacted base"] = self.files("mor", "a/*.parquet")
        return seen

    def parquet_in_logs(self) -> Any:
        blocks = {**MOR, "hoodie.logfile.data.block.format": "parquet"}
        with self.context():
            self.write("blocks", self.rows(0, 10, 1), "insert", **blocks)
            self.write("blocks", self.rows(5, 10, 2), **blocks)
        return [self.by_ts("blocks"), self.files("blocks", "a/.*.log.*"), self.problems("blocks")]

    def statistics(self) -> Any:
        """What Hudi does by default, with keys or without."""
        with self.context():
            self.write("statistics", self.rows(0, 10, 1), "insert", **{METADATA: ""})
        table = self.spark.read.format("hudi").load(f"{self.folder}/statistics/.hoodie/metadata")
        values = table.where("type = 3 AND ColumnStatsMetadata.columnName = 'ssn'")
        return str(values.select("ColumnStatsMetadata.minValue").collect())

    def indexes(self) -> Any:
        """Each has a folder of its own in the metadata table, and a kind."""
        more = dict.fromkeys(
            (
                METADATA,
                "hoodie.metadata.index.bloom.filter.enable",
                "hoodie.metadata.index.column.stats.enable",
                "hoodie.metadata.index.partition.stats.enable",
                "hoodie.metadata.record.index.enable",
            ),
            "true",
        )
        with self.context():
            self.write("indexes", self.rows(0, 10, 1), "insert", **more)
            self.spark.sql(f"CREATE TABLE indexed USING hudi LOCATION '{self.folder}/indexes'")
            lock = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
            more = {
                "hoodie.metadata.record.index.enable": "true",
                "hoodie.write.lock.provider": lock,
            }
            with self.set(**more):
                self.spark.sql("CREATE INDEX of_ssn ON indexed (ssn)")
                self.spark.sql(
                    "CREATE INDEX hours ON indexed USING column_stats(ts)"
                    " OPTIONS(expr = 'from_unixtime', format = 'yyyy')"
                )
        folders = sorted(path.name for path in (self.folder / "indexes/.hoodie/metadata").iterdir())
        return [folders, self.problems("indexes")["problems"]]

    def turned_off(self) -> Any:
        """An earlier table, which has a metadata table."""
        told = self.told(lambda: self.write("statistics", self.rows(0, 10, 2)))
        with self.context():
            self.spark.sql(f"CREATE TABLE old USING hudi LOCATION '{self.folder}/statistics'")
        self.spark.sql("CALL delete_metadata_table(table => 'old')").collect()
        self.write("statistics", self.rows(0, 10, 3))
        return [told, self.by_ts("statistics"), self.problems("statistics")["problems"]]

    def event_times(self) -> Any:
        """What commits have of the column ts: by default, and if that is turned off; in SQL, too."""
        refused = self.told(lambda: self.write("times", self.rows(0, 3, EPOCHS[0]), **{EVENTS: ""}))
        named = self.told(lambda: self.write("times", self.rows(0, 3, 1), **{EVENTS: "ssn"}))
        for ts in EPOCHS:
            self.write("times", self.rows(0, 3, ts))
            with self.context():
                self.write("default", self.rows(0, 3, ts), **{EVENTS: ""})
        create = (
            "CREATE TABLE times (id BIGINT, ssn STRING, ts BIGINT) USING hudi TBLPROPERTIES"
            f" (primaryKey = 'id', preCombineField = 'ts', '{METADATA}' = 'false'%s)"
            f" LOCATION '{self.folder}/times_sql'"
        )
        in_sql = self.told(lambda: self.spark.sql(create % ""))
        self.spark.sql(create % f", '{EVENTS}' = 'none'")
        self.spark.sql(f"INSERT INTO times VALUES (1, 'x', {EPOCHS[0]})")
        self.spark.sql(f"UPDATE times SET ts = {EPOCHS[1]} WHERE id = 1")
        return {
            "refused": [refused, named, in_sql],
            "rows": [self.by_ts("times"), self.spark.table("times").first()["ts"]],
            "by default": self.in_commits("default"),
            "turned off": [self.in_commits("times"), self.in_commits("times_sql")],
        }

    def in_commits(self, name: str) -> list[int]:
        """The times that a table's commits have, in Avro's milliseconds."""
        timeline = self.folder / name / ".hoodie" / "timeline"
        commits = b"".join(path.read_bytes() for path in timeline.glob("*.commit"))
        return [ts for ts in EPOCHS if avro(ts * 1000) in commits]

    def sql(self) -> Any:
        name = "spark_catalog.default.h"
        self.spark.sql(
            f"CREATE TABLE {name} (id BIGINT, ssn STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id', "
            f"preCombineField = 'ts', '{METADATA}' = 'false', '{EVENTS}' = 'none') LOCATION '{self.folder}/sql'"
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
            f"CREATE TABLE selected USING hudi TBLPROPERTIES (primaryKey = 'id', '{METADATA}' ="
            f" 'false') AS SELECT id, ssn FROM {name}"
        )
        self.spark.sql("CALL show_commits(table => 'h', limit => 1)").collect()
        selected = self.files("spark-warehouse/selected", "*.parquet")
        return [[list(row) for row in found], self.files("sql", "*.parquet"), selected]

    def refused(self) -> Any:
        rows = self.rows(0, 3, 1)
        typo = rows.withColumnRenamed("ssn", "snn")
        record_key = "hoodie.datasource.write.recordkey.field"
        partition = "hoodie.datasource.write.partitionpath.field"

        def by_columns() -> None:
            options = {"hoodie.table.name": "r", record_key: "id", METADATA: "false"}
            writer = rows.write.format("hudi").options(**options).partitionBy("ssn")
            writer.mode("append").save(f"{self.folder}/refused")

        def overwrite() -> None:
            options = {"hoodie.table.name": "cow", record_key: "id", METADATA: "false", **MOR}
            writer = rows.write.format("hudi").options(**options)
            writer.mode("overwrite").save(f"{self.folder}/cow")

        def write(rows: DataFrame = rows, **more: str) -> Callable[[], None]:
            return lambda: self.write("refused", rows, **more)

        def within(setting: AbstractContextManager[None]) -> Callable[[], None]:
            def run() -> None:
                with setting:
                    self.write("refused", rows)

            return run

        def in_session() -> None:
            session = self.spark.newSession()
            session.conf.set("parquet.encryption.uniform.key", "pii")
            self.write(
                "refused", session.createDataFrame([(1, "a", 1)], "id INT, part STRING, ts INT")
            )

        def in_defaults() -> None:
            file = self.folder / "conf" / "hudi-defaults.conf"
            file.write_text("# of all tables\nhoodie.metadata.enable   true\n")
            try:
                self.write("refused", rows)
            finally:
                file.write_text("")

        return {
            "merge on read": self.told(write(**MOR)),
            "statistics": self.told(write(**{METADATA: ""})),
            "metadata": self.told(write(**{METADATA: "true"})),
            "changes": self.told(write(**{"hoodie.table.cdc.enabled": "true"})),
            "record index": self.told(write(**{"hoodie.metadata.record.index.enable": "true"})),
            "orc": self.told(write(**{"hoodie.table.base.file.format": "ORC"})),
            "alias": self.told(write(**{"hoodie.table.ro.file.format": "ORC"})),
            "unknown": self.told(write(**{"hoodie.of.a.later.version": "1"})),
            "key generator": self.told(
                write(**{"hoodie.datasource.write.keygenerator.class": "com.acme.Keys"})
            ),
            "session's": self.told(within(self.set(**{METADATA: "true"}))),
            "spark's": self.told(within(self.set(**{f"spark.{METADATA}": "true"}))),
            "hadoop's": self.told(within(self.context("hoodie.metadata.enable", "true"))),
            "defaults": self.told(in_defaults),
            "stream": self.told(
                lambda: self.streamed(
                    "refused",
                    rows,
                    **{"hoodie.table.name": "refused", METADATA: "false"},
                    **{record_key: "id", partition: "part"},
                )
            ),
            "record key": self.told(write(**{record_key: "ssn"})),
            "partition": self.told(write(**{partition: "ssn"})),
            "partitionBy": self.told(by_columns),
            "column": self.told(write(typo)),
            "option": self.told(write(**{"parquet.encryption.column.keys": "pii:tags"})),
            "allowing": self.told(write(**{ALLOWED: "allow"})),
            "session": self.told(in_session),
            "existing": self.told(lambda: self.write("mor", rows)),
            "overwriting": self.told(overwrite),
            "bootstrap": self.told(write(**{"hoodie.datasource.write.operation": "bootstrap"})),
            "footer": self.told(
                within(self.context("parquet.encryption.plaintext.footer", "true"))
            ),
            "keys beside": self.told(
                within(self.context("parquet.encryption.key.material.store.internally", "false"))
            ),
        }

    def refused_in_sql(self) -> Any:
        table = "(id BIGINT, ssn STRING, ts INT) USING hudi TBLPROPERTIES (primaryKey = 'id'"
        place = f"LOCATION '{self.folder}/refused'"

        def sql(statement: str) -> str:
            return self.told(lambda: self.spark.sql(statement))

        with self.set(**{METADATA: "true"}):
            inserted = sql("INSERT INTO h VALUES (9, 'x', 1)")
        return {
            "statistics": sql(f"CREATE TABLE r1 {table}) {place}"),
            "merge on read": sql(
                f"CREATE TABLE r2 {table}, type = 'mor', '{METADATA}' = 'false') {place}"
            ),
            "as select": sql(
                "CREATE TABLE refused USING hudi TBLPROPERTIES (primaryKey = 'id',"
                f" type = 'mor', '{METADATA}' = 'false') AS SELECT 1 AS id, 'x' AS ssn"
            ),
            "session": inserted,
            "index": sql("CREATE INDEX i ON indexed USING secondary_index(ssn)"),
            "procedure": sql("CALL run_clustering(table => 'h')"),
        }

    def sound(self) -> Any:
        self.write("cow", self.rows(0, 10, 1), "insert")
        self.write("cow", self.rows(5, 15, 2))
        return [self.by_ts("cow"), self.files("cow", "a/*.parquet")]

    def refused_by_tasks(self) -> Any:
        rows = self.rows(0, 3, 1)
        by_row = {"hoodie.datasource.write.row.writer.enable": "true"}

        def write(name: str, operation: str = "upsert", **more: str) -> str:
            return self.chain(lambda: self.write(name, rows, operation, **more))

        return {
            "statistics": write("r1", **{METADATA: ""}),
            "bulk": write("r2", "bulk_insert", **{METADATA: "", **by_row}),
            "merge on read": write("r3", **MOR),
            "changes": write("r4", **{"hoodie.table.cdc.enabled": "true"}),
            "partition": write("r5", **{"hoodie.datasource.write.partitionpath.field": "ssn"}),
            "existing": write("cow", **{METADATA: "true"}),
        }

    def indexed(self) -> Any:
        """Hudi passes over files whose statistics it cannot read: where nobody refuses the write."""
        self.write("indexed", self.rows(0, 10, 1), "insert")
        self.spark.sql(f"CREATE TABLE indexed USING hudi LOCATION '{self.folder}/indexed'")
        self.spark.sql("CALL create_metadata_table(table => 'indexed')").collect()
        return self.by_ts("indexed")

    def chain(self, work: Callable[[], Any]) -> str:
        """Hudi's own error, with all its causes."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 (Hudi has its own around ours)
            return f"{type(error).__name__}: {error} {error.__cause__} {traceback.format_exc()}"
        return "not refused"

    def left(self) -> Any:
        """Of all that was refused: what has the marker, and the partitions of metadata tables."""
        found = [path for path in self.folder.glob("**/*") if path.is_file()]
        statistics = [path for path in found if path.parent.name.endswith("_stats")]
        return [
            [str(p) for p in found if MARKER.encode() in p.read_bytes() and "/r5/" not in str(p)],
            [str(p) for p in statistics if p.suffix != ".crc" and p.stat().st_size > EMPTY_LOG],
        ]

    def nothing_written(self) -> Any:
        folders = ("refused", "spark-warehouse/refused")
        return [name for name in folders if (self.folder / name).exists()]


if __name__ == "__main__":
    work = HudiWork()
    work.tell(work.unchecked() if work.settings.get("unchecked") else work.steps())
