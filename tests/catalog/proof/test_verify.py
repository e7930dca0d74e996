"""verify_table and inspect_file on real tables, whole and tampered with."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.files import MARKER
from harness.lake import Lake
from pyspark.sql import Row, SparkSession

from pyspark_iceberg_crypto import ConfigurationError, inspect_file, verify_table

pytestmark = pytest.mark.catalogs("rest", "hadoop")

ON_DRIVER = "spark.iceberg-crypto.verify.files-on-driver"


@pytest.mark.catalogs()
def test_an_encrypted_table_verifies(lake: Lake) -> None:
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    lake.insert(table, range(3))
    lake.insert(table, [5], part="q")
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    report = verify_table(lake.spark, table)
    assert report.ok, report
    assert not report.problems
    assert report.metadata_authenticated == (lake.kind != "rest"), report.metadata_authentication
    word = "is not authenticated: the REST server" if lake.kind == "rest" else "is authenticated: "
    assert f"its metadata {word}" in str(report)
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


@pytest.mark.parametrize("kind", ["data", "manifest", "manifest list"])
def test_a_planted_plaintext_file_is_found(lake: Lake, kind: str) -> None:
    """A plaintext file in the place of an encrypted one: verify names it."""
    table = lake.create()
    lake.insert(table, [1])
    plain = lake.create("plain", key=None)
    lake.sql(f"INSERT INTO {plain} VALUES (1, 'x', 'p')")
    victim, plaintext = (one_file(lake.files(name), kind) for name in ("t", "plain"))
    victim.write_bytes(plaintext.read_bytes())
    victim.with_name(f".{victim.name}.crc").unlink(missing_ok=True)
    lake.sql(f"REFRESH TABLE {table}")
    report = verify_table(lake.spark, table)
    assert not report.ok
    assert victim.name in str(report.problems)


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
def test_the_driver_finds_what_jobs_find(lake: Lake) -> None:
    """A small table needs no Spark job; whoever checks it, the outcome is the same."""
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    lake.insert(table, range(3))
    lake.insert(table, [5], part="q")
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.insert(f"{table}.branch_audit", [7])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    tracker = lake.spark.sparkContext.statusTracker()
    files: list[Row] = []
    for damaged in (False, True):
        if damaged:
            for kind in ("data", "manifest"):
                flip(next(row.path for row in files if row.kind == kind))
        seen = []
        for on_driver in ("50", "0"):
            group = f"{table} {damaged} {on_driver}"
            lake.spark.sparkContext.setJobGroup(group, "")
            with (
                configured(lake.spark, ON_DRIVER, on_driver),
                verify_table(lake.spark, table, deep=True, all_snapshots=True) as report,
            ):
                assert bool(tracker.getJobIdsForGroup(group)) == (on_driver == "0")
                assert report.ok != damaged
                files = sorted(report.files.collect(), key=str)
                seen.append((files, [*map(str, report.problems)], [*map(str, report.counts)]))
        assert seen[0] == seen[1]
    with (
        configured(lake.spark, ON_DRIVER, "-1"),
        pytest.raises(ConfigurationError, match="'-1', which is no number of files"),
    ):
        verify_table(lake.spark, table)


def test_a_missing_file_is_found(hadoop: Lake) -> None:
    table = hadoop.create()
    hadoop.insert(table, [1])
    victim = one_file(hadoop.files(), "data")
    victim.unlink()
    report = verify_table(hadoop.spark, table)
    assert not report.ok
    assert victim.name in str(report.problems)


@pytest.mark.parametrize("kind", ["data", "manifest", "manifest list"])
def test_a_file_that_the_storage_denies_is_unchecked(hadoop: Lake, kind: str) -> None:
    """It is no finding, and the table is not ok."""
    table = hadoop.create()
    hadoop.insert(table, [1])
    victim = one_file(hadoop.files(), kind)
    with denied(hadoop, victim):
        report = verify_table(hadoop.spark, table)
    assert not report.ok
    (problem,) = report.problems
    assert (problem.kind, problem.unchecked, problem.code) == (kind, True, "unreadable")
    assert problem.path.endswith(victim.name)
    assert "Permission denied" in problem.problem
    assert "says nothing about the file" in problem.hint
    assert verify_table(hadoop.spark, table).ok


@contextmanager
def configured(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def flip(location: str) -> None:
    """One bit in the middle of a file, which the local file system does not notice."""
    path = Path(location.removeprefix("file:"))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@contextmanager
def denied(lake: Lake, file: Path) -> Iterator[None]:
    """The storage denies reading a file meanwhile."""
    assert lake.spark._jvm is not None
    system = lake.spark._jvm.java.lang.System
    system.setProperty("io.icebergcrypto.testing.denied", file.name)
    try:
        yield
    finally:
        system.clearProperty("io.icebergcrypto.testing.denied")


def test_inspect_file(hadoop: Lake, spark: SparkSession) -> None:
    hadoop.insert(hadoop.create(), [1])
    hadoop.create("plain", key=None)
    hadoop.sql(f"INSERT INTO {hadoop.table('plain')} VALUES (1, 'x', 'p')")
    assert inspect_file(spark, str(one_file(hadoop.files(), "data"))).magic == "PARE"
    assert inspect_file(spark, str(one_file(hadoop.files(), "manifest"))).magic == "AGS1"
    plain = inspect_file(spark, str(one_file(hadoop.files("plain"), "data")))
    assert (plain.magic, plain.encrypted) == ("PAR1", False)
