"""Which files verification reaches: the metadata log, branches, expired snapshots; samples; what was checked before."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from harness.files import change, magic, path_of
from harness.lake import Lake
from pyspark import InheritableThread

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    VerifyReport,
    verify_table,
)

pytestmark = pytest.mark.catalogs("hadoop")


def data_files(lake: Lake) -> list[Path]:
    found = [path for path in lake.files() if path.suffix == ".parquet"]
    return sorted(found, key=modified)


def modified(path: Path) -> int:
    return path.stat().st_mtime_ns


def problems(report: VerifyReport) -> dict[str, str]:
    return {Path(problem.path).name: problem.code for problem in report.problems}


def java_table(lake: Lake) -> Any:
    assert lake.spark._jvm is not None
    lake.sql(f"REFRESH TABLE {lake.table()}")
    return lake.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lake.spark._jsparkSession, lake.table()
    )


@pytest.mark.parametrize("deep", [False, True])
def test_plaintext_in_a_branch_or_under_a_tag(lake: Lake, deep: bool) -> None:
    table = lake.create()
    lake.insert(table, [1])
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.insert(f"{table}.branch_audit", [2])
    lake.insert(table, [3])
    lake.run(f"ALTER TABLE {table} CREATE TAG first")
    lake.run(f"INSERT OVERWRITE {table} VALUES (4, 'x', 'p')")
    of_both, of_audit, of_first, _ = data_files(lake)
    with verify_table(lake.spark, table, deep=deep) as whole:
        assert whole.ok and (whole.branches, whole.tags, whole.snapshots) == (
            ["audit"],
            ["first"],
            3,
        )
        assert "those of the current snapshot, 1 branch and 1 tag" in " ".join(str(whole).split())
        paths = [Path(row.path) for row in whole.files.collect()]
    assert len(paths) == len(set(paths)), "each file once"
    assert {of_both, of_audit, of_first} < set(map(path_of, map(str, paths)))
    for victim in (of_audit, of_first):
        bytes_ = victim.read_bytes()
        change(victim, b"PAR1 plaintext")
        report = verify_table(lake.spark, table, deep=deep)
        assert problems(report) == {victim.name: "plaintext"}
        change(victim, bytes_)


def test_what_only_older_metadata_names(lake: Lake) -> None:
    """It is checked as long as it is there, with keys of older metadata, and is no problem once it is gone."""
    table = lake.create(write_delete_mode="merge-on-read")
    lake.insert(table, [1, 2])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    lake.run(f"INSERT OVERWRITE {table} VALUES (3, 'x', 'p')")
    old = data_files(lake)[0]
    first_list = min((lake.folder / "t" / "metadata").glob("snap-*"), key=modified)
    assert magic(first_list) == b"AGS1"
    expire = java_table(lake).expireSnapshots().expireOlderThan(2**62)
    expire.retainLast(1).cleanExpiredFiles(False).commit()
    lake.sql(f"REFRESH TABLE {table}")
    with verify_table(lake.spark, table, all_snapshots=True, depth="structure") as report:
        assert report.ok, report
        assert old.name in {Path(row.path).name for row in report.files.collect()}
        assert report.snapshots == 1
    whole = old.read_bytes()
    change(old, b"PAR1 plaintext")
    report = verify_table(lake.spark, table, all_snapshots=True)
    assert problems(report) == {old.name: "plaintext"}
    old.unlink()
    assert verify_table(lake.spark, table, all_snapshots=True).ok
    change(old, whole)
    first_list.unlink()
    assert verify_table(lake.spark, table).ok
    logged = min((lake.folder / "t" / "metadata").rglob("*.metadata.json"), key=modified)
    logged.unlink()
    report = verify_table(lake.spark, table, all_snapshots=True)
    assert problems(report)[logged.name] == "missing"
    assert {problem.kind for problem in report.problems} <= {"metadata file"}


def test_a_sample_is_the_same_for_the_same_seed(lake: Lake) -> None:
    table = lake.create()
    lake.run(f"INSERT INTO {table} SELECT /*+ REPARTITION(40) */ id, 'x', 'p' FROM range(400)")

    def sampled(seed: int) -> set[str]:
        with verify_table(lake.spark, table, sample=0.5, seed=seed) as report:
            assert report.ok
            assert (report.sample, report.seed) == (0.5, seed)
            rows = report.files.collect()
        assert {"manifest", "manifest list"} < {row.kind for row in rows}
        return {row.path for row in rows if row.kind == "data"}

    first = sampled(1)
    assert 5 < len(first) < 35
    assert sampled(1) == first != sampled(2)


def test_it_goes_on_where_it_was(lake: Lake, tmp_path: Path) -> None:
    table = lake.create()
    lake.insert(table, [1])
    folder = (tmp_path / "record").as_uri()
    first = verify_table(lake.spark, table, depth="structure", resume=folder)
    assert first.ok, first
    lake.insert(table, [2])
    before, victim = data_files(lake)
    first_whole, whole = before.read_bytes(), victim.read_bytes()
    change(before, b"PAR1 plaintext")
    change(victim, whole[:-8])
    with verify_table(lake.spark, table, depth="structure", resume=folder) as again:
        assert problems(again) == {victim.name: "truncated"}
        rows = again.files.collect()
        found = {Path(row.path).name for row in rows}
    assert len(rows) == again.file_count
    assert {before.name, victim.name} < found, "what was checked before is in the report"
    change(victim, whole)  # what was not right is checked again
    assert verify_table(lake.spark, table, depth="structure", resume=folder).ok
    change(before, first_whole)
    recorded = lake.spark.read.parquet(f"{folder}/outcomes")
    assert "key" not in "".join(recorded.columns).replace("key_id", "")

    other = lake.create("other")
    with pytest.raises(ConfigurationError, match="it is of table"):
        verify_table(lake.spark, other, depth="structure", resume=folder)
    with pytest.raises(ConfigurationError, match="it is of depth structure"):
        verify_table(lake.spark, table, resume=folder)
    with pytest.raises(ConfigurationError, match="it holds files"):
        verify_table(lake.spark, table, resume=tmp_path.as_uri())
    with pytest.raises(ConfigurationError, match="in the table's own location"):
        verify_table(lake.spark, table, resume=f"{lake.folder}/t/record")


def test_it_can_be_cancelled(lake: Lake, tmp_path: Path) -> None:
    """The job group's cancel ends the job and what is told of it; the next run is whole."""
    table = lake.create()
    lake.run(f"INSERT INTO {table} SELECT /*+ REPARTITION(300) */ id, 'x', 'p' FROM range(3000)")
    context = lake.spark.sparkContext
    raised: list[BaseException] = []

    def work() -> None:
        context.setJobGroup("audit", "by a test", interruptOnCancel=True)
        try:
            verify_table(lake.spark, table, deep=True)
        except IcebergCryptoError as error:
            raised.append(error)

    thread = InheritableThread(target=work)
    thread.start()
    while thread.is_alive():
        context.cancelJobGroup("audit")
        time.sleep(0.05)
    assert "cancel" in str(raised[0]).lower()
    assert not [t for t in threading.enumerate() if t.name == "audit"]
    assert verify_table(lake.spark, table, deep=True).ok


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": "bottom"}, "no depth 'bottom'"),
        ({"sample": 0}, "no share"),
        ({"sample": 1.01}, "no share"),
        ({"sample": float("nan")}, "no share"),
        ({"sample": "half"}, "no number"),
        ({"resume": " "}, "resume is empty"),
        ({"resume": "nosuch://x/y"}, "cannot be used to resume"),
        ({"deep": True, "depth": "magic"}, "one of them"),
    ],
)
def test_bad_arguments(lake: Lake, arguments: dict[str, Any], words: str) -> None:
    table = lake.create()
    with pytest.raises(IcebergCryptoError, match=words):
        verify_table(lake.spark, table, **arguments)


@pytest.mark.catalogs("rest")
def test_a_catalog_that_does_not_start(lake: Lake) -> None:
    """Its own error, not one about a namespace of Spark's catalog."""
    table = lake.create()
    broken = lake.with_options({"encryption.kms-type": "nosuch"})
    with pytest.raises(ConfigurationError, match="nosuch"):
        verify_table(lake.spark, table.replace(lake.catalog, broken.catalog))
