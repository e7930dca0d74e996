"""What tests/catalog/test_defaults.py runs: a table's whole life on each catalog, on Spark as a user has it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import everything_below, files_below, plaintext_problem
from harness.steps import given, seen, tell
from harness.world import create_lock_tables
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

KEY = "'encryption.key-id'='k1'"
ROWS = 1000


@dataclass
class Life:
    """The life of the tables `events` and `copy`.

    Attributes:
        catalog: the catalog, which has the name of its kind.
        folder: what it makes below is looked at file by file.
    """

    spark: SparkSession
    catalog: str
    folder: Path

    @property
    def table(self) -> str:
        return f"{self.catalog}.life.events"

    @property
    def copy(self) -> str:
        return f"{self.catalog}.life.copy"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Runs a statement; no file may be plaintext behind it."""
        rows = self.spark.sql(statement.format(t=self.table, copy=self.copy)).collect()
        found = [plaintext_problem(path) for path in files_below(self.folder)]
        assert not any(found), (statement, found)
        return [tuple(row) for row in rows]

    def call(self, procedure: str, more: str = "") -> None:
        self.sql(f"CALL {self.catalog}.system.{procedure}(table => 'life.events'{more})")

    def is_now(self, count: int, total: int, where: str = "{t}") -> None:
        """The number of rows and the sum of their ids."""
        assert self.sql(f"SELECT count(*), sum(id) FROM {where}") == [(count, total)]

    def verified(self) -> None:
        with verify_table(self.spark, self.table, all_snapshots=True) as report:
            assert report.ok, report
            assert not report.problems, report

    def live(self) -> None:
        self.spark.sql(f"CREATE NAMESPACE {self.catalog}.life")
        self.born()
        self.changes()
        self.branches()
        self.is_kept()
        self.ends()

    def born(self) -> None:
        self.sql(
            "CREATE TABLE {t} (id BIGINT, kind STRING, at TIMESTAMP, cost DECIMAL(12, 2), tags ARRAY<STRING>)"
            f" USING iceberg PARTITIONED BY (kind) TBLPROPERTIES ({KEY})"
        )
        self.sql(
            "INSERT INTO {t} SELECT id, concat('kind-', id % 3), timestamp_seconds(id * 3600),"
            f" cast(id AS DECIMAL(12, 2)) / 7, array('a', cast(id AS STRING)) FROM range({ROWS})"
        )
        self.is_now(ROWS, 499500)
        self.sql(
            f"CREATE TABLE {{copy}} USING iceberg TBLPROPERTIES ({KEY}) AS"
            " SELECT kind, count(*) AS many, max(at) AS last, sum(cost) AS cost FROM {t} GROUP BY kind"
        )
        joined = "SELECT sum(many), count(*) FROM {copy} c JOIN (SELECT DISTINCT kind FROM {t}) USING (kind)"
        assert self.sql(joined) == [(ROWS, 3)]
        window = "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY kind ORDER BY at) n FROM {t})"
        assert self.sql(window) == [(334,)]

    def changes(self) -> None:
        self.sql("UPDATE {t} SET tags = array() WHERE id < 10")
        self.sql("DELETE FROM {t} WHERE id >= 990")
        self.sql("DELETE FROM {t} WHERE kind = 'kind-2'")  # a whole partition: metadata only
        self.sql(
            "MERGE INTO {t} t USING (SELECT explode(array(0L, 1L, 5000L)) AS id) s ON t.id = s.id"
            " WHEN MATCHED AND t.id = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET kind = 'merged'"
            " WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (s.id, 'new')"
        )
        self.is_now(660, 331040)
        self.sql("ALTER TABLE {t} ADD COLUMN note STRING FIRST")
        self.sql("ALTER TABLE {t} RENAME COLUMN cost TO price")
        self.sql("ALTER TABLE {t} ADD PARTITION FIELD days(at)")
        self.sql("ALTER TABLE {t} WRITE ORDERED BY id")
        self.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
        self.sql("DELETE FROM {t} WHERE id = 5000")
        self.sql("INSERT INTO {t} (id, kind, note) VALUES (2000, 'new', 'n'), (2001, 'new', NULL)")

    def branches(self) -> None:
        self.sql("ALTER TABLE {t} CREATE TAG before")
        self.sql("ALTER TABLE {t} CREATE BRANCH work")
        self.sql("INSERT INTO {t}.branch_work (id, kind) VALUES (3000, 'branch')")
        assert self.sql("SELECT count(*) FROM {t} VERSION AS OF 'work' WHERE id = 3000") == [(1,)]
        assert self.sql("SELECT count(*) FROM {t} WHERE id = 3000") == [(0,)]
        self.call("fast_forward", ", branch => 'main', to => 'work'")
        assert self.sql("SELECT count(*) FROM {t} WHERE id = 3000") == [(1,)]
        assert self.sql("SELECT count(*) FROM {t} VERSION AS OF 'before' WHERE id = 3000") == [(0,)]
        self.sql("ALTER TABLE {t} DROP BRANCH work")

    def is_kept(self) -> None:
        self.verified()
        before = self.sql("SELECT count(*), sum(id), sum(price) FROM {t}")
        self.call("rewrite_data_files", ", options => map('rewrite-all', 'true')")
        self.call("rewrite_manifests")
        self.sql("ALTER TABLE {t} DROP TAG before")
        files = len(list(files_below(self.folder)))
        self.call(
            "expire_snapshots", ", older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
        )
        assert len(list(files_below(self.folder))) < files
        assert self.sql("SELECT count(*), sum(id), sum(price) FROM {t}") == before
        self.verified()

    def ends(self) -> None:
        self.sql("CREATE OR REPLACE TABLE {copy} USING iceberg AS SELECT id, kind FROM {t}")
        self.sql("DROP TABLE {t} PURGE")
        left = [path for path in everything_below(self.folder) if "events" in path.parts]
        assert not [path for path in left if path.suffix != ".crc"], left
        assert self.sql("SELECT max(id) FROM {copy}") == [(3000,)]
        self.sql("DROP TABLE {copy} PURGE")
        assert not list(files_below(self.folder))
        self.spark.sql(f"DROP NAMESPACE {self.catalog}.life")


def defaults(spark: SparkSession, catalog: str) -> dict[str, Any]:
    """What must be as Spark and Iceberg have it."""
    assert spark._jvm is not None
    management = spark._jvm.java.lang.management.ManagementFactory
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    frame = spark.sql("SELECT sum(id) FROM range(9)")._jdf
    frame.collect()
    plan = frame.queryExecution().executedPlan().toString()
    table = f"{catalog}.probe.t"
    spark.sql(f"CREATE NAMESPACE {catalog}.probe")
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ({KEY})")
    codec = dict(spark.sql(f"SHOW TBLPROPERTIES {table}").collect())[
        "write.parquet.compression-codec"
    ]
    spark.sql(f"DROP TABLE {table} PURGE")
    return {
        "factory": spark.conf.get("spark.sql.codegen.factoryMode"),
        "whole stage": spark.conf.get("spark.sql.codegen.wholeStage"),
        "compiled": "*(1)" in plan,
        "files": conf.get("fs.file.impl"),
        "options": [o for o in management.getRuntimeMXBean().getInputArguments() if "-XX:T" in o],
        "codec": codec,
    }


def main() -> None:
    settings, builder = given()
    spark = builder.getOrCreate()
    create_lock_tables(spark)
    lives = {
        catalog: seen([Life(spark, catalog, Path(folder)).live])["live"]
        for catalog, folder in settings["folders"].items()
    }
    found = {**lives, "defaults": defaults(spark, settings["catalog"])}
    spark.stop()
    tell(found)


if __name__ == "__main__":
    main()
