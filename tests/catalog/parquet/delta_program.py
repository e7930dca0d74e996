"""What test_delta.py runs: Delta's tables, with keys in their Parquet files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
from doubles.listener import Listener
from harness.columns import MARKER, Work
from harness.files import secret_file
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import typed_errors, verify_folder

COLLECT = "spark.databricks.delta.stats.collect"
COUNT = "delta.dataSkippingNumIndexedCols"
COLUMNS = "delta.dataSkippingStatsColumns"


class DeltaWork(Work):
    form = "delta"

    def __init__(self) -> None:
        super().__init__()
        self.listener = Listener().start()

    def steps(self) -> list[Callable[[], Any]]:
        return [
            *(self.without_statistics, self.by_property, self.of_columns_without_keys),
            *(self.in_sql, self.deletion_vectors, self.stream),
            *(self.refused, self.left, self.kept, self.stored),
        ]

    def rows(self, count: int = 10) -> DataFrame:
        return self.spark.range(count).select("id", fn.lit(MARKER).alias("ssn"))

    def write(self, name: str, rows: DataFrame | None = None, **options: str) -> None:
        mode = options.pop("mode", "append")
        with typed_errors():
            writer = (rows or self.rows()).write.format("delta").options(**options)
            writer.mode(mode).save(str(self.folder / name))

    def create(self, name: str, **properties: str) -> None:
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.spark.sql(
            f"CREATE TABLE {name} (id BIGINT, ssn STRING) USING delta"
            f" LOCATION '{self.folder}/{name}'" + (f" TBLPROPERTIES ({told})" if told else "")
        )

    def count(self, name: str) -> int:
        return self.spark.read.format("delta").load(str(self.folder / name)).count()

    def files(self, name: str) -> dict[str, Any]:
        """First bytes of the table's Parquet files and checkpoints, and where the marker is."""
        all_files = [path for path in (self.folder / name).rglob("*") if path.is_file()]
        parquet = [path for path in all_files if path.suffix == ".parquet"]
        return {
            "data": sorted({p.read_bytes()[:4].decode() for p in parquet if "log" not in str(p)}),
            "checkpoints": [p.read_bytes()[:4].decode() for p in parquet if "_log" in str(p)],
            "marker": [path.name for path in all_files if MARKER.encode() in path.read_bytes()],
            "ids": any(b"maxValues" in p.read_bytes() for p in all_files if p.suffix == ".json"),
        }

    def without_statistics(self) -> Any:
        with self.set(**{COLLECT: "false"}):
            self.create("off", **{"delta.checkpointInterval": "2"})
            for _ in range(3):
                self.write("off")
            seen = {"rows": self.count("off"), **self.files("off")}
        with verify_folder(self.spark, f"{self.folder}/off", progress=False) as report:
            seen["problems"] = sorted({(p.kind, p.code) for p in report.problems})
        return seen

    def by_property(self) -> Any:
        self.create("none", **{COUNT: "0"})
        self.write("none")
        return {"rows": self.count("none"), **self.files("none")}

    def of_columns_without_keys(self) -> Any:
        with self.set(**{"parquet.encryption.complete.columns": "false"}):
            self.create("some", **{COLUMNS: "id"})
            self.write("some")
            return {"rows": self.count("some"), **self.files("some")}

    def in_sql(self) -> Any:
        with self.set(**{COLLECT: "false"}):
            self.create("sql")
            self.spark.sql(f"INSERT INTO sql VALUES (1, '{MARKER}'), (2, '{MARKER}'), (3, 'x')")
            self.spark.sql("UPDATE sql SET ssn = concat(ssn, '') WHERE id = 1")
            self.spark.sql(
                f"MERGE INTO sql USING (SELECT 4L AS id, '{MARKER}' AS ssn) s ON sql.id = s.id"
                " WHEN NOT MATCHED THEN INSERT *"
            )
            self.spark.sql("DELETE FROM sql WHERE id = 3")
            self.spark.sql("OPTIMIZE sql")
            self.spark.sql(
                f"CREATE TABLE selected USING delta LOCATION '{self.folder}/selected' AS SELECT * FROM sql"
            )
        found = self.spark.sql("SELECT count(*), min(ssn) FROM sql").first()
        return [list(found or []), self.files("sql"), self.files("selected")]

    def deletion_vectors(self) -> Any:
        """Delta reads statistics of files that have none when it writes vectors for them."""
        vectors = {"delta.enableDeletionVectors": "true"}
        with self.set(**{COLLECT: "false"}):
            self.create("vectors", **vectors)
            self.write("vectors")
            told = self.told(lambda: self.spark.sql("DELETE FROM vectors WHERE id = 3"))
        self.create("counted", **vectors, **{COUNT: "0"})
        self.write("counted")
        self.spark.sql("DELETE FROM counted WHERE id = 3")
        left = [self.files("vectors"), self.files("counted")]
        return [told, self.count("vectors"), self.count("counted"), left]

    def stream(self) -> Any:
        with self.set(**{COLLECT: "false"}):
            self.streamed("streamed", self.rows())
        return {"rows": self.count("streamed"), **self.files("streamed")}

    def refused(self) -> Any:
        self.create("keyed", **{COLUMNS: "ssn"})
        self.create("footers", **{COLUMNS: "id"})
        self.create("mapped", **{COUNT: "0", "delta.columnMapping.mode": "name"})

        def with_session(**conf: str) -> Callable[[], None]:
            def run() -> None:
                with self.set(**conf):
                    self.write("refused")

            return run

        def partitioned() -> None:
            with self.set(**{COLLECT: "false"}):
                writer = self.rows().write.format("delta").partitionBy("ssn")
                writer.save(f"{self.folder}/refused")

        def converted() -> None:
            self.rows().write.parquet(f"{self.folder}/converted")
            self.spark.sql(f"CONVERT TO DELTA parquet.`{self.folder}/converted`")

        def beside_in_tasks() -> None:
            with self.set(**{"parquet.encryption.key.material.store.internally": "false"}):
                self.past_the_checks("off")

        noted = self.rows().withMetadata("id", {"ml_attr": {"vals": [MARKER]}})
        noted.createOrReplaceTempView("noted_rows")
        keys = {"parquet.encryption.column.keys": "pii:id"}
        return {
            "default": self.told(lambda: self.write("refused")),
            "overwrite": self.told(lambda: self.write("off", mode="overwrite")),
            "sql": self.told(
                lambda: self.spark.sql(
                    f"CREATE TABLE r USING delta LOCATION '{self.folder}/refused'"
                    f" AS SELECT 1L AS id, '{MARKER}' AS ssn"
                )
            ),
            "keyed": self.told(lambda: self.write("keyed")),
            "footers": self.told(lambda: self.write("footers")),
            "mapped": self.told(lambda: self.write("mapped")),
            "session": self.told(with_session(**{COUNT: "0"})),
            "option": self.told(lambda: self.write("refused", **keys)),
            "OPTION": self.told(
                lambda: self.write("refused", **{name.upper(): keys[name] for name in keys})
            ),
            "stream": self.told(lambda: self.streamed("refused", self.rows())),
            "partition": self.told(partitioned),
            "noted": self.told(lambda: self.write("noted", noted)),
            "noted sql": self.told(
                lambda: self.spark.sql("CREATE TABLE noted USING delta AS SELECT * FROM noted_rows")
            ),
            "noted stream": self.told(lambda: self.streamed("noted", noted)),
            "beside": self.told(
                with_session(**{"parquet.encryption.key.material.store.internally": "false"})
            ),
            "beside in tasks": self.told(beside_in_tasks),
            "convert": self.told(converted),
        }

    def left(self) -> Any:
        """Of all that was refused."""
        found = [*self.folder.glob("refused/**/*"), *self.folder.glob("converted/_delta_log/*")]
        return [str(path) for path in found if path.is_file() and path.suffix != ".crc"]

    def kept(self) -> Any:
        return self.count("off")

    def stored(self) -> Any:
        """What someone wrote into Delta's log, who may write there, and has no key."""
        off = {
            "parquet.encryption.footer.key": "",
            "parquet.encryption.column.keys": "",
            "parquet.encryption.complete.columns": "false",
            "iceberg-crypto.parquet.plaintext-writes": "allow",
        }
        elsewhere = {
            "iceberg-crypto.encryption.kms-type": "vault",
            "iceberg-crypto.encryption.kms.vault.address": self.listener.url,
            "iceberg-crypto.encryption.kms.vault.token-file": str(self.token()),
            "iceberg-crypto.encryption.kms.retry.max-attempts": "1",
        }
        factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
        tampered = {
            "off": off,
            "elsewhere": elsewhere,
            "factory": {"parquet.crypto.factory.class": factory, **off},
            "statistics": {COLLECT: "false"},
        }
        found: dict[str, Any] = {}
        for name, properties in tampered.items():
            table = f"stored_{name}"
            self.create(table, **{COUNT: "0"})
            self.write(table)
            edit_log(self.folder / table, "configuration", properties)
            statements = {
                "append": lambda table=table: self.write(table),
                "overwrite": lambda table=table: self.write(table, mode="overwrite"),
                "insert": lambda table=table: self.spark.sql(
                    f"INSERT INTO {table} VALUES (1, 'x')"
                ),
                "delete": lambda table=table: self.spark.sql(f"DELETE FROM {table} WHERE id = 1"),
                "optimize": lambda table=table: self.spark.sql(f"OPTIMIZE {table}"),
                "stream": lambda table=table: self.streamed(table, self.rows()),
            }
            if name in ("off", "elsewhere"):
                statements["tasks"] = lambda table=table: self.past_the_checks(table)
            told = {what: self.told(work) for what, work in statements.items()}
            found[name] = [told, self.files(table), self.listener.tokens]
        self.create("stored_read")
        with self.set(**{COLLECT: "false"}):
            self.write("stored_read")
        edit_log(self.folder / "stored_read", "options", elsewhere)
        found["read"] = self.told(lambda: self.count("stored_read"))
        found["view"] = self.view(elsewhere)
        for name in tampered["off"]:
            self.spark.sql(f"ALTER TABLE stored_off UNSET TBLPROPERTIES ('{name}')")
        self.write("stored_off")
        found["mended"] = [self.count("stored_off"), self.files("stored_off")]
        found["created"] = self.told(lambda: self.create("stored_created", **off))
        found["set"] = self.told(
            lambda: self.spark.sql(
                "ALTER TABLE stored_off SET TBLPROPERTIES"
                " ('iceberg-crypto.parquet.plaintext-writes' = 'allow')"
            )
        )
        return found

    def view(self, options: dict[str, str]) -> Any:
        """Whoever created it wrote the options into its text, which Spark 3.5 does not take."""
        if self.spark.version.startswith("3."):
            return None
        plain = self.folder / "plain.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), plain)
        listed = ", ".join(f"'{name}'='{value}'" for name, value in options.items())
        with self.set(**{"iceberg-crypto.parquet.plaintext-reads": "allow"}):
            self.spark.sql(f"CREATE VIEW seen AS SELECT * FROM parquet.`{plain}` WITH ({listed})")
            self.spark.sql("CREATE TABLE named (id INT) USING parquet")
            self.spark.sql(f"CREATE VIEW of_table AS SELECT * FROM named WITH ({listed})")
            return [self.selected("seen"), self.selected("of_table")]

    def selected(self, view: str) -> str:
        return self.told(lambda: self.spark.sql(f"SELECT * FROM {view}").collect())

    def token(self) -> Path:
        return secret_file(self.folder / "token", "hvs.of-the-victim")

    def past_the_checks(self, table: str) -> None:
        """As if the log had been changed after the statement was checked: Delta's own code, without a plan."""
        jvm: Any = self.spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            self.spark._jsparkSession, str(self.folder / table)
        )
        log.startTransaction().writeFiles(self.rows()._jdf)


def edit_log(table: Path, field: str, values: dict[str, str]) -> None:
    """Adds a version to Delta's log that changes a table's metadata."""
    versions = sorted((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in versions for line in path.read_text().splitlines()]
    metadata = next(action["metaData"] for action in reversed(actions) if "metaData" in action)
    (metadata if field == "configuration" else metadata["format"]).setdefault(field, {}).update(
        values
    )
    version = table / "_delta_log" / f"{len(versions):020}.json"
    version.write_text(json.dumps({"metaData": metadata}) + "\n")


if __name__ == "__main__":
    work = DeltaWork()
    work.tell(work.steps())
