"""On a standalone cluster, whose executors are other processes: tables' lives, a killed executor, verification."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER, change, flipped
from harness.lake import FILES_ON_DRIVER, Lake
from harness.life import MODE, live
from harness.sessions import OtherSession, executor_count, process_id
from harness.world import KINDS, World, create_lock_tables
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
        session.do(create_lock_tables)
        yield session


def executors(cluster: OtherSession) -> set[int]:
    """Their process ids."""
    pid = "reflect('java.lang.ProcessHandle', 'current')"
    rows = cluster.sql(f"SELECT DISTINCT {pid} AS pid FROM range(0, 64, 1, 8)")
    return {int(row["pid"]) for row in rows}


def test_executors_are_other_processes(cluster: OtherSession) -> None:
    assert len(executors(cluster)) == 2
    assert cluster.do(process_id) not in executors(cluster)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tables_life(cluster: OtherSession, kind: str) -> None:
    live(cluster, f"enc_{kind}", f"cluster_{kind}")


def test_executors_come_and_go(world: World, tmp_path: Path) -> None:
    """Dynamic allocation, with Kryo: an executor that comes later reads what those before it wrote, and its keys."""
    allocation = {
        "enabled": "true",
        "shuffleTracking.enabled": "true",
        "shuffleTracking.timeout": "20s",
        "executorIdleTimeout": "20s",  # not between two statements: an executor takes seconds to start
        "minExecutors": "0",
        "maxExecutors": "2",
    }
    more = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        FILES_ON_DRIVER: "0",
        **{f"spark.dynamicAllocation.{name}": value for name, value in allocation.items()},
    }
    table = "enc_jdbc.elastic.kept"
    with session_on_cluster(world, tmp_path, more) as elastic:
        live(elastic, "enc_jdbc", "elastic")
        elastic.sql(
            f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('encryption.key-id'='k1') "
            "AS SELECT id FROM range(0, 100, 1, 4)"
        )
        before = executors(elastic)
        end = time.monotonic() + 120
        while elastic.do(executor_count) and time.monotonic() < end:
            time.sleep(0.2)
        assert elastic.do(executor_count) == 0
        assert elastic.sql(f"SELECT sum(id) AS sum FROM {table}") == [{"sum": 4950}]
        assert elastic.verify(table, deep=True)["ok"]
        assert before.isdisjoint(executors(elastic))


def test_an_executor_is_killed_while_it_writes(cluster: OtherSession, world: World) -> None:
    """Another one does its work again: each row is there once, and nothing in plaintext was left."""
    cluster.sql("CREATE NAMESPACE enc_hadoop.killed")
    table = "enc_hadoop.killed.t"
    cluster.sql(
        f"CREATE TABLE {table} (id BIGINT, note STRING) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    before = executors(cluster)
    data = world.warehouse("hadoop") / "killed" / "t" / "data"
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(
            cluster.sql,
            f"INSERT INTO {table} SELECT id, concat('{MARKER}-', id) FROM range(0, 2000000, 1, 16)",
        )
        end = time.monotonic() + 120
        while len(list(data.glob("*.parquet"))) < 4 and time.monotonic() < end:
            time.sleep(0.02)
        assert not writing.done(), "it was too fast to be killed"
        os.kill(min(before), signal.SIGKILL)
        writing.result(240)
    (row,) = cluster.sql(
        f"SELECT count(*) AS rows, count(DISTINCT id) AS ids, sum(id) AS sum FROM {table}"
    )
    assert row == {"rows": 2_000_000, "ids": 2_000_000, "sum": 1_999_999_000_000}
    assert cluster.verify(table, deep=True)["ok"]
    assert before != executors(cluster)
    for path in data.iterdir():
        assert path.suffix == ".crc" or path.read_bytes()[:4] in (b"PARE", b""), path
        assert MARKER.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("depth", FOUND)
def test_the_same_report(
    spark: SparkSession, cluster: OtherSession, damaged: str, depth: str
) -> None:
    options = {depth: True} if depth != "magic" else {}
    with verify_table(spark, damaged, strays=True, **options) as report:
        here = report.to_dict()
    there = cluster.verify(damaged, strays=True, **options)
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
    table = lake.insert(lake.create(write_delete_mode=MODE), range(9))
    lake.run(f"DELETE FROM {table} WHERE id = 3")
    report = cluster.verify(table, deep=True, strays=True)
    assert report["ok"], report
    kinds = {count["kind"] for count in report["counts"]}
    assert {"data", "manifest", "manifest list"} <= kinds
    assert ("deletion vector" in kinds) is (MODE == "merge-on-read")
