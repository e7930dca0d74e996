"""What many sessions in one JVM leave behind, as on a Spark Connect server that runs for a week.

    python benchmarks/session_scale.py [--vault] [--sessions N] [--every N]

Each session loads catalogs of its own, writes to a table, reads it and goes; Spark has no call that closes its
catalogs. First come sessions with stock Iceberg and a plaintext table, then as many with an encrypted one. Prints the
JVM's threads, heap (after a full collection), open file descriptors and seconds a session as the sessions go by. The
KMS is a keystore; with --vault a Vault server.
"""

import argparse
import gc
import tempfile
import time
from pathlib import Path
from typing import Any

from _spark import start_spark
from pyspark.sql import SparkSession
from rotation_scale import KEY, kms

TABLES = {"plaintext": "plain.db.t", "encrypted": "lake.db.t"}


def main(sessions: int, every: int, vault: bool) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="session-scale-") as folder,
        kms(Path(folder), vault=vault) as (keys, _),
    ):
        warehouse = Path(folder) / "warehouse"
        spark = start_spark(warehouse, keys, "local[2]", spark_log_level="ERROR", **plain(folder))
        for kind, table in TABLES.items():
            spark.sql(f"CREATE NAMESPACE {table.partition('.')[0]}.db")
            key = f"TBLPROPERTIES ('encryption.key-id'='{KEY}')" if kind == "encrypted" else ""
            spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg {key}")
        print("| table | sessions | threads | heap, MB | file descriptors | seconds a session |")
        print("|---|--:|--:|--:|--:|--:|")
        for kind, table in TABLES.items():
            for _ in range(every):  # warms up
                one_session(spark, table)
            show(spark, kind, 0, 0.0)
            for done in range(every, sessions + 1, every):
                start = time.perf_counter()
                for _ in range(every):
                    one_session(spark, table)
                show(spark, kind, done, (time.perf_counter() - start) / every)
        spark.stop()


def plain(folder: str) -> dict[str, str]:
    """A catalog of stock Iceberg; see `start_spark`."""
    catalog = "spark_sql_catalog_plain"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}_type": "hadoop",
        f"{catalog}_warehouse": f"{folder}/plain",
    }


def one_session(spark: SparkSession, table: str) -> None:
    """Its catalogs are new, and nothing refers to them afterwards."""
    session = spark.newSession()
    session.sql(f"INSERT OVERWRITE {table} SELECT id FROM range(10)")
    assert session.table(table).count() == 10


def show(spark: SparkSession, kind: str, sessions: int, seconds: float) -> None:
    gc.collect()
    java: Any = spark._jvm
    management = java.java.lang.management.ManagementFactory
    for _ in range(2):
        java.System.gc()
        time.sleep(0.5)
    cells = (
        kind,
        f"{sessions:,}",
        management.getThreadMXBean().getThreadCount(),
        management.getMemoryMXBean().getHeapMemoryUsage().getUsed() // 1_000_000,
        management.getOperatingSystemMXBean().getOpenFileDescriptorCount(),
        f"{seconds:.2f}",
    )
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--vault", action="store_true", help="a Vault server in place of a keystore"
    )
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--every", type=int, default=40, help="sessions between two lines")
    given = parser.parse_args()
    main(given.sessions, given.every, given.vault)
