"""What rotations cost: of one table as it grows, and of many tables.

A table of N data files is one file with rows, listed N times under other names: a rotation opens no data file.
Many tables are empty ones, each with a KEK of its own. The KMS is a keystore, which answers at once; with --slow, it is
Vault behind a proxy that lets each call wait for 0.2 seconds, three for each table.

    python benchmarks/rotation_scale.py [--slow] [--files N ...] [--tables N ...] [--rounds N] [--threads N]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _spark import java_table, new_keystore, spread, start_spark, took
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    Kms,
    Vault,
    key_versions_in_use,
    rotate_catalog,
    rotate_kek,
    rotate_master_key,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from harness.backends import start

KEY = "lake"
COMMITS = 10  # snapshots of each table; rewrap encrypts the key of each again


@contextmanager
def kms(folder: Path, *, slow: bool) -> Iterator[tuple[Kms, Kms]]:
    """A KMS with a master key, `lake`: as Spark has it, and as its operator. A slow one is a Vault."""
    if not slow:
        keys = new_keystore(folder)
        keys.create_key(KEY)
        yield keys, keys
        return
    server = start("vault", folder / "vault")
    try:
        admin = Vault(**{**server.fields, **server.admin})
        admin.create_key(KEY)
        assert server.proxy is not None
        server.proxy.mode = "slow"
        yield Vault(**server.fields), admin
    finally:
        server.stop()


def main(
    files: Sequence[int], tables: Sequence[int], rounds: int, threads: int, slow: bool
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="rotation-scale-") as folder,
        kms(Path(folder), slow=slow) as (keys, admin),
    ):
        spark = start_spark(Path(folder) / "warehouse", keys, "local[2]", spark_log_level="ERROR")
        spark.sql("CREATE NAMESPACE lake.db")
        rotate_catalog(spark, "lake", progress=False)  # warms up
        print(
            f"One table of {COMMITS} snapshots: seconds, median of {rounds} (lowest to highest)\n"
        )
        print(
            "| data files | rotate_master_key | rotate_kek | rotate_kek, rewrap |\n|--:|--:|--:|--:|"
        )
        make_table(spark, 0)
        of_one_table(spark, "lake.db.files0", 2)
        for count in files:
            cells = of_one_table(spark, make_table(spark, count), rounds)
            print(f"| {count:,} | {' | '.join(cells)} |", flush=True)
        print(f"\nMany tables, {threads} threads: seconds\n")
        print(
            "| tables | rotate_master_key | again: nothing to do | rotate_kek | versions in use |"
        )
        print("|--:|--:|--:|--:|--:|")
        for count in tables:
            cells = of_many_tables(spark, admin, count, threads)
            print(f"| {count:,} | {' | '.join(cells)} |", flush=True)
        spark.stop()


def of_one_table(spark: SparkSession, table: str, rounds: int) -> list[str]:
    works: list[Callable[[], Any]] = [
        lambda: rotate_master_key(spark, table),
        lambda: rotate_kek(spark, table),
        lambda: rotate_kek(spark, table, rewrap=True),
    ]
    cells = []
    for work in works:
        runs = [took(work) for _ in range(rounds)]
        assert all(done.committed for done, _ in runs), runs
        cells.append(spread([seconds for _, seconds in runs], 2))
    return cells


def of_many_tables(spark: SparkSession, admin: Kms, count: int, threads: int) -> list[str]:
    namespace = f"lake.many{count}"
    spark.sql(f"CREATE NAMESPACE {namespace}")
    for number in range(count):
        spark.sql(
            f"CREATE TABLE {namespace}.t{number} (id BIGINT) TBLPROPERTIES ('encryption.key-id'='{KEY}')"
        )
    admin.rotate_key(KEY)
    given: dict[str, Any] = {"threads": threads, "progress": False}
    cells = []
    for rotated, more in ((count, {}), (0, {}), (count, {"kek": True})):
        report, seconds = took(lambda more=more: rotate_catalog(spark, namespace, **given, **more))
        cells.append(f"{seconds:.1f}")
        assert report.ok and len(report.done) == rotated, report
    versions, seconds = took(lambda: key_versions_in_use(spark, namespace, **given))
    cells.append(f"{seconds:.1f}")
    assert versions.ok and versions.tables == count, versions
    return cells


def make_table(spark: SparkSession, files: int) -> str:
    """A table whose data files are links to the first one."""
    name = f"lake.db.files{files}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('encryption.key-id'='{KEY}')")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range(100)")
    jvm: Any = spark._jvm
    table = java_table(spark, name)
    first = table.newScan().planFiles().iterator().next().file().copy()
    builder = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).copy(first)
    for commit in range(1, COMMITS):
        append = table.newFastAppend()
        for number in range(files * (commit - 1) // (COMMITS - 1), files * commit // (COMMITS - 1)):
            link = f"{first.location()}.{number}"
            os.link(first.location().removeprefix("file:"), link.removeprefix("file:"))
            append.appendFile(builder.withPath(link).build())
        append.commit()
    spark.sql(f"REFRESH TABLE {name}")
    return name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What rotations cost.")
    parser.add_argument("--files", type=int, nargs="*", default=[10, 1_000, 20_000])
    parser.add_argument("--tables", type=int, nargs="*", default=[1, 100, 1_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--slow", action="store_true", help="a KMS that takes 0.2 s for each call")
    given = parser.parse_args()
    main(given.files, given.tables, given.rounds, given.threads, given.slow)
