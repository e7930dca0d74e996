"""What many sessions in one JVM leave behind, as on a Spark Connect server that runs for a week.

    python benchmarks/session_scale.py [--vault] [--sessions N] [--every N]

Each session loads catalogs of its own, writes to a table, reads it and goes; Spark has no call that closes its
catalogs. First come sessions with stock Iceberg and a plaintext table, then as many with an encrypted one. Prints the
JVM's threads, heap (after a full collection), open file descriptors and seconds a session as the sessions go by. The
KMS is a keystore; with --vault a Vault server with AppRole, whose tokens (the leases of our logins) are counted, too.
"""

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _spark import new_keystore, start_spark
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto.kms import Kms, Vault

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from servers.vault import start_vault, write_secret

KEY = "lake"
TABLES = {"plaintext": "plain.db.t", "encrypted": "lake.db.t"}


def main(sessions: int, every: int, vault: bool) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="session-scale-") as folder,
        (vault_kms if vault else keystore_kms)(Path(folder)) as (keys, tokens),
    ):
        warehouse = Path(folder) / "warehouse"
        spark = start_spark(warehouse, keys, "local[2]", spark_log_level="ERROR", **plain(folder))
        for kind, table in TABLES.items():
            spark.sql(f"CREATE NAMESPACE {table.partition('.')[0]}.db")
            key = f"TBLPROPERTIES ('encryption.key-id'='{KEY}')" if kind == "encrypted" else ""
            spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg {key}")
        print(
            "| table | sessions | threads | heap, MB | file descriptors | Vault tokens | seconds a session |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|")
        for kind, table in TABLES.items():
            for _ in range(every):  # warms up
                one_session(spark, table)
            show(spark, kind, 0, tokens(), 0.0)
            for done in range(every, sessions + 1, every):
                start = time.perf_counter()
                for _ in range(every):
                    one_session(spark, table)
                show(spark, kind, done, tokens(), (time.perf_counter() - start) / every)
        spark.stop()


@contextmanager
def keystore_kms(folder: Path) -> Iterator[tuple[Kms, Callable[[], str]]]:
    keys = new_keystore(folder)
    keys.create_key(KEY)
    yield keys, lambda: ""


@contextmanager
def vault_kms(folder: Path) -> Iterator[tuple[Kms, Callable[[], str]]]:
    """A Vault that we log in to by AppRole, and how many tokens it has."""
    server = start_vault(folder / "vault.log")
    try:
        policy = server.driver_policy(server.make_key(KEY))
        role_id, secret_id = server.make_approle(policy, token_ttl="1h")
        write_secret(folder / "secret-id", secret_id)
        keys = Vault(server.address, role_id=role_id, secret_id_file=folder / "secret-id")
        yield keys, lambda: str(len(server.tokens()))
    finally:
        server.stop()


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


def show(spark: SparkSession, kind: str, sessions: int, tokens: str, seconds: float) -> None:
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
        tokens,
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
