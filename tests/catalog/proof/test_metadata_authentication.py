"""Metadata that the catalog does not vouch for, in SQL: it is refused, and can be signed or dropped.

What can be done to it is in MetadataAuthenticationTest and in tamper/test_metadata.py.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER, change
from harness.lake import Lake
from harness.world import World
from pyspark.sql import Row, SparkSession

Json = dict[str, Any]


@pytest.fixture(params=("jdbc", pytest.param("hadoop", marks=pytest.mark.nightly)))
def pointer(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> Iterator[Lake]:
    """A catalog that keeps no more than a pointer to metadata.json, without Spark's cache of tables."""
    lake = Lake(spark, world, request.param, f"enc_{request.param}")
    other = lake.with_options({"cache-enabled": "false"})
    other.sql(f"CREATE NAMESPACE IF NOT EXISTS {other.catalog}.{other.namespace}")
    yield other


def stock(lake: Lake, statement: str) -> list[Row]:
    """Runs a statement on the stock catalog; {t} stands for the table."""
    catalog = f"stock_{lake.kind}"
    with lake.seen_by(catalog):
        return lake.sql(statement.format(t=lake.table("t", catalog)))


def metadata_file(lake: Lake) -> Path:
    """The file that the catalog's pointer leads to, by the stock catalog's word."""
    entries = stock(lake, "SELECT file FROM {t}.metadata_log_entries")
    return Path(entries[-1].file.removeprefix("file:"))


def edit(path: Path, edited: Callable[[Json], object]) -> None:
    metadata = json.loads(path.read_text())
    edited(metadata)
    change(path, json.dumps(metadata).encode())


def assert_refused(lake: Lake, table: str, *words: str) -> str:
    """Reading, writing, altering and describing are all refused; the stock catalog takes the metadata."""
    stock(lake, "DESCRIBE TABLE {t}")
    for statement in (
        f"INSERT INTO {table} VALUES (9, '{MARKER}', 'p')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('a'='b')",
        f"SELECT * FROM {table}.snapshots",
        f"DELETE FROM {table} WHERE id = 1",
    ):
        lake.refused(statement, "metadata is refused")
    return lake.refused(
        f"SELECT * FROM {table}", "metadata is refused", "authenticate_metadata", *words
    )


def offered(text: str) -> str:
    """The call that an error's hint offers."""
    found = re.search(r"CALL \S+\.system\.authenticate_metadata\([^)]*'\)", text)
    assert found, text
    return found.group()


def drop_snapshots(metadata: Json) -> None:
    metadata.update({"snapshots": [], "refs": {}, "snapshot-log": [], "current-snapshot-id": None})


def two_rows(lake: Lake) -> str:
    table = lake.insert(lake.create(), [1])
    lake.insert(table, [2])
    return table


def test_a_stock_commit_is_named_and_can_be_signed(pointer: Lake) -> None:
    table = two_rows(pointer)
    stock(pointer, "ALTER TABLE {t} SET TBLPROPERTIES ('a'='b')")
    assert_refused(pointer, table, "committed by a client that does not authenticate")
    path = str(metadata_file(pointer))
    off = pointer.with_options({"encryption.metadata-authentication": "off"})
    with pointer.seen_by(off.catalog):
        assert off.ids(off.table()) == [1, 2]
    call = f"CALL {pointer.catalog}.system.authenticate_metadata(table => '{pointer.namespace}.t', "
    pointer.refused(f"{call} metadata_file => '{path}x', metadata_sha256 => '')", "metadata_file")
    hint = offered(pointer.refused(f"SELECT * FROM {table}", "authenticate_metadata"))
    file = hint.split("metadata_file => '")[1].split("'")[0]
    assert file.endswith(path)
    sha256 = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert f"metadata_sha256 => '{sha256}'" in hint
    call += f"metadata_file => '{file}'"
    asked = pointer.refused(f"{call})", "metadata_sha256 is missing", "sha256sum")
    assert offered(asked) == hint
    genuine = Path(path).read_bytes()
    edit(Path(path), drop_snapshots)
    pointer.refused(hint, "is not the file that was reviewed", sha256)
    change(Path(path), genuine)
    pointer.sql(hint)
    assert pointer.ids(table) == [1, 2]
    pointer.insert(table, [3])
    assert pointer.ids(table) == [1, 2, 3]


@pytest.mark.nightly
def test_a_refused_table_can_be_dropped(pointer: Lake) -> None:
    table = two_rows(pointer)
    edit(metadata_file(pointer), drop_snapshots)
    assert stock(pointer, "SELECT * FROM {t}") == []  # the control: no rows, no error
    assert_refused(pointer, table, "was changed after it was committed")
    pointer.refused(f"DROP TABLE {table} PURGE", "metadata is refused")
    pointer.sql(f"DROP TABLE {table}")
    assert not pointer.tables()


def test_rest_and_hive_refuse_the_property(spark: SparkSession, world: World) -> None:
    for kind in ("rest", "hive"):
        lake = Lake(spark, world, kind, f"enc_{kind}")
        other = lake.with_options({"encryption.metadata-authentication": "require"})
        other.refused(
            f"SHOW TABLES IN {other.catalog}.{other.namespace}",
            "this is not meant for catalog class",
        )
