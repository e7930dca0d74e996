"""verify_catalog and verify_folder: more than one table, or none."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.files import MARKER
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    ConfigurationError,
    TableNotFoundError,
    encrypt_table,
    encryption_keys,
    kms_metrics,
    rotate_catalog,
    rotate_master_key,
    typed_errors,
    verify_catalog,
    verify_folder,
    verify_table,
)

pytestmark = pytest.mark.catalogs("rest")


@pytest.mark.nightly
def test_a_table_that_cannot_be_checked_does_not_stop_the_rest(lake: Lake, tmp_path: Path) -> None:
    if lake.kind == "hadoop":
        pytest.skip("it has no views, and takes the metadata file before one that is gone")
    lake.insert(lake.create("good"), [1])
    lake.insert(lake.create("broken"), [1])
    lake.sql(f"INSERT INTO {lake.create('plain', key=None)} VALUES (1, 'x', 'p')")
    lake.sql(f"CREATE VIEW {lake.table('v')} AS SELECT 1 AS one")
    name = f"{lake.catalog}.{lake.namespace}"
    folder = tmp_path.as_uri()
    metadata = max(
        (lake.folder / "broken").rglob("*.metadata.json"),
        key=lambda path: path.stat().st_mtime_ns,
    )
    whole = metadata.read_bytes()
    lake.sql(f"REFRESH TABLE {lake.table('broken')}")
    metadata.unlink()
    try:
        report = verify_catalog(lake.spark, name, resume=folder)
    finally:
        metadata.write_bytes(whole)
    assert not report.ok
    assert {one.table: one.ok for one in report.reports} == {
        lake.table("good"): True,
        lake.table("plain"): False,
    }
    ((table, said),) = [(one["table"], one["problem"]) for one in report.not_checked]
    assert table == lake.table("broken")
    assert metadata.name in said
    assert report.views == [lake.table("v")]
    left_out = [lake.table("broken"), f"{name}.`plain`"]
    lake.sql(f"REFRESH TABLE {lake.table('broken')}")
    report = verify_catalog(lake.spark, name, except_tables=left_out)
    assert report.ok and [one.table for one in report.reports] == [lake.table("good")]
    assert report.left_out == [
        {"table": lake.table("broken"), "encrypted": True},
        {"table": lake.table("plain"), "encrypted": False},
    ]
    for unknown in ("typo", "v"):
        with pytest.raises(TableNotFoundError, match=f"Nothing was verified.*{unknown}"):
            verify_catalog(lake.spark, name, except_tables=[*left_out, lake.table(unknown)])
    lake.sql(f"DROP TABLE {lake.table('plain')} PURGE")  # its files are no plaintext of the others
    report = verify_catalog(lake.spark, f"{name}.*", resume=folder)
    assert report.ok
    signed = report.sign(lake.spark, lake.catalog, "k1")
    lake.insert(lake.create("later"), [1])
    since = verify_catalog(
        lake.spark, f"{name}.*", resume=folder, since=signed, since_key_id="k1", recheck=1e-9
    )
    assert since.ok, since
    assert {one.table: one.resumed_files for one in since.reports} == {
        lake.table("good"): 1,
        lake.table("broken"): 1,
        lake.table("later"): 0,
    }
    assert {path.name for path in tmp_path.iterdir()} == {
        lake.table(table) for table in ("good", "plain", "broken", "later")
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "There is no catalog 'nowhere'; the session has: .*enc_jdbc, "),
        ("lak.db", "There is no catalog 'lak'"),
        ("{catalog}.nowhere", "no namespace nowhere"),
        ("{catalog}..x", "is not the name"),
        (" ", "cannot be a catalog's name"),
    ],
)
def test_names_of_nothing(lake: Lake, name: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        verify_catalog(lake.spark, name.format(catalog=lake.catalog))


@pytest.mark.catalogs("jdbc")
def test_a_misspelt_catalog_gets_one_answer_everywhere(lake: Lake) -> None:
    spark, table = lake.spark, "lak.db.t"
    lake.insert(lake.create(), [1])

    def typed(statement: str) -> None:
        with typed_errors():
            spark.sql(statement)

    calls: list[Callable[[], object]] = [
        lambda: verify_table(spark, table),
        lambda: encryption_keys(spark, table),
        lambda: encrypt_table(spark, table, "k1"),
        lambda: rotate_master_key(spark, table),
        lambda: rotate_master_key(spark, lake.table(), from_catalog="lak"),
        lambda: rotate_catalog(spark, "lak"),
        lambda: kms_metrics(spark, "lak"),
        lambda: typed(f"CALL {lake.catalog}.system.verify_encryption(table => '{table}')"),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match=r"no catalog 'lak'; the session has: .*enc_"):
            call()


@pytest.mark.nightly
def test_a_folder(lake: Lake, tmp_path: Path) -> None:
    lake.insert(lake.create(), [1])
    with verify_folder(lake.spark, str(lake.folder)) as report:
        assert report.ok, report
        assert "of encrypted formats" in " ".join(str(report).split())
        assert report.files.count() == report.file_count
    plain = lake.folder / "t" / "data" / "a b%20c" / "rows.parquet"
    plain.parent.mkdir()
    plain.write_bytes(b"PAR1" + MARKER.encode())
    found = verify_folder(lake.spark, lake.folder.as_uri())
    assert not found.ok
    (problem,) = found.problems
    assert (problem.path.removeprefix("file://"), problem.code) == (str(plain), "plaintext")
    assert found.to_dict()["problem_count"] == 1
    with pytest.raises(ConfigurationError, match="no file in"):
        verify_folder(lake.spark, str(tmp_path / "absent"))
    unknown = verify_folder(lake.spark, "nosuch://x/y")
    assert not unknown.ok
    assert [problem.unchecked for problem in unknown.problems] == [True]
    assert "nosuch" in unknown.problems[0].problem
