"""Verification on a standalone cluster, whose executors are other processes: the report of a session in this one."""

from collections.abc import Iterator
from typing import Any

import pytest
from harness.files import MARKER, change, flipped
from harness.lake import FILES_ON_DRIVER, Lake
from harness.sessions import OtherSession, process_id
from harness.world import World
from pyspark.sql import SparkSession
from servers.cluster import session_on_cluster

from pyspark_iceberg_crypto import verify_table

pytestmark = pytest.mark.nightly

AT_ONCE = {"missing", "plaintext", "truncated"}
FOUND = {"magic": AT_ONCE, "structure": AT_ONCE, "deep": {*AT_ONCE, "tampered"}}
"""What is found at each depth."""


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, world: World) -> str:
    """A table of which four data files are damaged, each in another way, and with a stray."""
    lake = Lake(spark, world, "hadoop", "enc_hadoop")
    table = lake.create()
    lake.run(
        f"INSERT INTO {table} SELECT /*+ REPARTITION(12) */ id, '{MARKER}', 'p' FROM range(600)"
    )
    gone, cut, plain, other, *_ = sorted(p for p in lake.files() if p.suffix == ".parquet")
    change(gone, None)
    change(cut, cut.read_bytes()[:-8])
    change(plain, b"PAR1" + plain.read_bytes()[4:])
    change(other, flipped(other.read_bytes()))
    (lake.folder / "t" / "data" / "stray.csv").write_text(MARKER)
    lake.sql(f"REFRESH TABLE {table}")
    return table


@pytest.fixture(scope="module")
def cluster(
    damaged: str, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherSession]:
    more = {
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        FILES_ON_DRIVER: "0",
    }
    with session_on_cluster(world, tmp_path_factory.mktemp("cluster"), more) as session:
        yield session


def test_executors_are_other_processes(cluster: OtherSession) -> None:
    pid = "reflect('java.lang.ProcessHandle', 'current')"
    rows = cluster.sql(f"SELECT DISTINCT {pid} AS pid FROM range(0, 64, 1, 8)")
    executors = {int(row["pid"]) for row in rows}
    assert len(executors) == 2
    assert cluster.do(process_id) not in executors


@pytest.mark.parametrize("depth", FOUND)
def test_the_same_report(
    spark: SparkSession, cluster: OtherSession, damaged: str, depth: str
) -> None:
    with verify_table(spark, damaged, depth=depth, strays=True) as report:
        here = report.to_dict()
    there = cluster.verify(damaged, depth=depth, strays=True)
    assert {problem["code"] for problem in there["problems"]} == FOUND[depth]
    assert there["problem_count"] == len(FOUND[depth]) + 1, "one stray, plaintext"
    assert compared(there) == compared(here)


def compared(report: dict[str, Any]) -> dict[str, Any]:
    """Without times, and what has no order in order."""
    kept = {k: v for k, v in report.items() if k not in ("started_at", "ended_at", "seconds")}
    for name in ("counts", "problems"):
        kept[name] = sorted(map(str, kept[name]))
    return kept


def test_a_clean_table(cluster: OtherSession, spark: SparkSession, world: World) -> None:
    lake = Lake(spark, world, "rest", "enc_rest")
    table = lake.create(write_delete_mode="merge-on-read")
    lake.insert(table, range(9))
    lake.run(f"DELETE FROM {table} WHERE id = 3")
    report = cluster.verify(table, depth="deep", strays=True)
    assert report["ok"], report
    kinds = {count["kind"] for count in report["counts"]}
    assert {"data", "deletion vector", "manifest", "manifest list"} <= kinds
