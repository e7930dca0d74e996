"""verify_table and inspect_file on real tables, whole and tampered with."""

import re
from pathlib import Path

import pytest
from harness.files import MARKER, change, flipped, path_of
from harness.lake import FILES_ON_DRIVER, Lake
from pyspark.sql import Row, SparkSession

from pyspark_iceberg_crypto import ConfigurationError, VerifyReport, inspect_file, verify_table

pytestmark = pytest.mark.catalogs("rest")


@pytest.mark.catalogs()
def test_an_encrypted_table_verifies(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part", write_delete_mode="merge-on-read"), range(3))
    lake.insert(table, [5], part="q")
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    report = verify_table(lake.spark, table)
    assert report.ok, report
    assert not report.problems
    assert report.metadata_authenticated == (lake.kind != "rest"), report.metadata_authentication
    word = "is not authenticated: the REST server" if lake.kind == "rest" else "is authenticated: "
    assert f"its metadata {word}" in str(report)
    told = re.findall(r"^ +(\w+) (\w+): ", VerifyReport.files.__doc__ or "", re.MULTILINE)
    assert report.files.dtypes == told
    files = report.files.collect()
    on_disk = {path.name for path in lake.files()}
    assert {Path(row.path).name for row in files} <= on_disk
    assert all(row.encrypted for row in files)
    assert {"data", "deletion vector", "manifest", "manifest list"} <= {row.kind for row in files}
    assert MARKER not in str(report)
    everything = verify_table(lake.spark, table, all_snapshots=True)
    assert everything.ok
    reached = everything.files.collect()
    assert {Path(row.path).name for row in reached if row.kind != "metadata file"} == on_disk
    logged = [row for row in reached if row.kind == "metadata file"]
    assert len(logged) == len(list((lake.folder / "t" / "metadata").rglob("*.metadata.json")))
    assert all((row.magic, row.encrypted, row.problem) == ("JSON", False, None) for row in logged)


def test_a_plaintext_table_does_not_verify(lake: Lake) -> None:
    table = lake.create(key=None)
    lake.sql(f"INSERT INTO {table} VALUES (1, 'x', 'p')")
    report = verify_table(lake.spark, table)
    assert not report.ok
    assert [p for p in report.problems if p.kind == "table" and "encryption.key-id" in p.problem]


def one_file(files: list[Path], kind: str) -> Path:
    """The one file of a kind, told by its name."""
    if kind == "data":
        (found,) = (path for path in files if path.suffix == ".parquet")
    elif kind == "manifest list":
        (found,) = (path for path in files if path.name.startswith("snap-"))
    else:
        (found,) = (
            path for path in files if path.suffix == ".avro" and not path.name.startswith("snap-")
        )
    return found


@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_the_driver_finds_what_jobs_find(lake: Lake) -> None:
    """A small table needs no Spark job; the driver finds the same as a job."""
    table = lake.insert(lake.create(partition="part", write_delete_mode="merge-on-read"), range(3))
    lake.insert(table, [5], part="q")
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.insert(f"{table}.branch_audit", [7])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    tracker = lake.spark.sparkContext.statusTracker()
    files: list[Row] = []
    for damaged in (False, True):
        if damaged:
            for kind in ("data", "manifest"):
                victim = path_of(next(row.path for row in files if row.kind == kind))
                change(victim, flipped(victim.read_bytes()))
        seen = []
        for on_driver in ("50", "0"):
            group = f"{table} {damaged} {on_driver}"
            lake.spark.sparkContext.setJobGroup(group, "")
            with (
                lake.configured(FILES_ON_DRIVER, on_driver),
                verify_table(lake.spark, table, deep=True, all_snapshots=True) as report,
            ):
                assert bool(tracker.getJobIdsForGroup(group)) == (on_driver == "0")
                assert report.ok != damaged
                wrong = sum(one.wrong_files for one in report.counts)
                assert wrong == report.problem_count and bool(wrong) == damaged
                files = sorted(report.files.collect(), key=str)
                seen.append((files, [*map(str, report.problems)], [*map(str, report.counts)]))
        assert seen[0] == seen[1]
    with (
        lake.configured(FILES_ON_DRIVER, "-1"),
        pytest.raises(ConfigurationError, match="'-1', which is not a number of files"),
    ):
        verify_table(lake.spark, table)


def test_inspect_file(hadoop: Lake, spark: SparkSession) -> None:
    hadoop.insert(hadoop.create(), [1])
    hadoop.create("plain", key=None)
    hadoop.sql(f"INSERT INTO {hadoop.table('plain')} VALUES (1, 'x', 'p')")
    assert inspect_file(spark, str(one_file(hadoop.files(), "data"))).magic == "PARE"
    assert inspect_file(spark, str(one_file(hadoop.files(), "manifest"))).magic == "AGS1"
    plain = inspect_file(spark, str(one_file(hadoop.files("plain"), "data")))
    assert (plain.magic, plain.encrypted) == ("PAR1", False)
