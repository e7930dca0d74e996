"""Tables that an earlier build wrote are read, verified and written to by this one: see vectors/README.md."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.files import changed, files_below, plaintext_problem
from pyspark.sql import SparkSession
from reader import golden as unpacked
from vectors.write_tables import catalog_conf, rows, values

from pyspark_iceberg_crypto import TamperedError, typed_errors, verify_table

MAC = "encryption.metadata-mac"
ALL = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"


@dataclass
class Golden:
    """One table of a copy of what a build wrote, in a catalog of Spark's."""

    spark: SparkSession
    files: unpacked.Golden

    @property
    def catalog(self) -> str:
        return self.files.name

    @property
    def table(self) -> str:
        return f"{self.catalog}.db.t"

    def rows(self, state: str = "") -> list[Any]:
        return rows(self.spark, f"{self.table} {state}")

    def sql(self, statement: str) -> list[Any]:
        return self.spark.sql(statement.format(t=self.table, c=self.catalog)).collect()

    def mac(self) -> str:
        metadata = json.loads(plain(self.metadata_file().read_bytes()))
        return str(metadata["properties"][MAC])

    def metadata_file(self) -> Path:
        return self.files.local(self.files.location)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of both tables: a JVM mounts a view's folder once."""
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(params=unpacked.KINDS)
def golden(request: pytest.FixtureRequest, spark: SparkSession, folder: Path) -> Golden:
    files = unpacked.Golden.unpacked(request.param, folder)
    for key, value in catalog_conf(files.kind, unpacked.BUILD, folder).items():
        spark.conf.set(key, value)
    return Golden(spark, files)


@pytest.mark.nightly
def test_a_table_that_an_earlier_build_wrote(golden: Golden) -> None:
    assert golden.mac().startswith("v3.hmac-sha256.")
    for state, expected in states(golden.files.answers):
        assert golden.rows(state) == expected, state
    assert rows(golden.spark, values(golden.catalog)) == golden.files.answers["values"]
    assert_verified(golden, 2)
    assert_changes_are_refused(golden)

    golden.sql("INSERT INTO {t} VALUES (7, 'seven', 'r', struct(7, 'x'))")
    golden.sql("DELETE FROM {t} WHERE id = 4")
    golden.sql("INSERT INTO {t}.branch_work VALUES (8, 'eight', 'r', NULL)")
    assert golden.mac().startswith("v3.hmac-sha256.")
    assert ids(golden.rows()) == [1, 3, 7]
    work = golden.files.answers["work"]
    assert ids(golden.rows("VERSION AS OF 'work'")) == [*ids(work), 8]
    assert golden.rows("VERSION AS OF 'first'") == golden.files.answers["first"]
    assert_verified(golden, 2)

    golden.sql(
        "CALL {c}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all','true'))"
    )
    golden.sql(f"CALL {{c}}.system.expire_snapshots(table => 'db.t', {ALL})")
    assert ids(golden.rows()) == [1, 3, 7]
    assert golden.rows("VERSION AS OF 'first'") == golden.files.answers["first"]
    assert_verified(golden, 0)
    written = list(files_below(golden.files.folder / "tables" / golden.files.kind / "db" / "t"))
    assert [problem for problem in map(plaintext_problem, written) if problem] == []


def states(answers: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    yield "", answers["rows"]
    yield "VERSION AS OF 'first'", answers["first"]
    yield "VERSION AS OF 'work'", answers["work"]
    for snapshot, expected in answers["snapshots"].items():
        yield f"VERSION AS OF {snapshot}", expected


def ids(found: list[Any]) -> list[int]:
    return [row["id"] for row in found]


def assert_verified(golden: Golden, statistics: int) -> None:
    with verify_table(golden.spark, golden.table, all_snapshots=True) as report:
        assert report.ok, report
        assert report.metadata_authenticated is True
        kinds = [row.kind for row in report.files.collect()]
    assert {"data", "deletion vector", "manifest", "manifest list"} <= set(kinds)
    assert sum("statistics" in kind for kind in kinds) == statistics


def assert_changes_are_refused(golden: Golden) -> None:
    """The old code authenticates the metadata here, too: one more byte in the file, and nothing is read."""
    file = golden.metadata_file()
    edited = {file: with_comment(file.read_bytes())}
    with changed(edited), pytest.raises(TamperedError), typed_errors():
        golden.rows()


def with_comment(content: bytes) -> bytes:
    """With another comment in the table's properties, of a file that may be compressed."""
    edited = plain(content).replace(b'"properties":{', b'"properties":{"comment":"x",', 1)
    assert edited != plain(content)
    return gzip.compress(edited) if is_compressed(content) else edited


def plain(content: bytes) -> bytes:
    return gzip.decompress(content) if is_compressed(content) else content


def is_compressed(content: bytes) -> bool:
    return content.startswith(b"\x1f\x8b")
