"""Metadata that the catalog does not vouch for: edited, exchanged, put back, or written by a stock client."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER
from harness.lake import Lake
from harness.world import World
from pyspark.sql import Row, SparkSession

Json = dict[str, Any]


@pytest.fixture(params=("jdbc", "hadoop"))
def pointer(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> Iterator[Lake]:
    """A catalog that keeps no more than a pointer to metadata.json, without Spark's cache of tables."""
    lake = Lake(spark, world, request.param, f"enc_{request.param}")
    other = lake.with_options({"cache-enabled": "false"})
    other.sql(f"CREATE NAMESPACE IF NOT EXISTS {other.catalog}.{other.namespace}")
    yield other


def stock(lake: Lake, statement: str, name: str = "t") -> list[Row]:
    """Runs a statement on the stock catalog; {t} stands for the table."""
    catalog = f"stock_{lake.kind}"
    with lake.seen_by(catalog):
        return lake.sql(statement.format(t=lake.table(name, catalog)))


def metadata_file(lake: Lake, name: str = "t") -> Path:
    """The file that the catalog's pointer leads to, by the stock catalog's word."""
    entries = stock(lake, "SELECT file FROM {t}.metadata_log_entries", name)
    return Path(entries[-1].file.removeprefix("file:"))


def replace(path: Path, content: str) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.write_text(content)


def edit(path: Path, change: Callable[[Json], object]) -> None:
    metadata = json.loads(path.read_text())
    change(metadata)
    replace(path, json.dumps(metadata))


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


def strip(metadata: Json) -> None:
    drop_snapshots(metadata)
    del metadata["encryption-keys"]
    for name in [name for name in metadata["properties"] if name.startswith("encryption.")]:
        del metadata["properties"][name]
    metadata["properties"].pop("write.metadata.path", None)


EDITS: dict[str, Callable[[Json], object]] = {
    "snapshots dropped": drop_snapshots,
    "an older snapshot made current": lambda m: (
        m.update({"current-snapshot-id": m["snapshots"][0]["snapshot-id"]}),
        m["refs"]["main"].update({"snapshot-id": m["snapshots"][0]["snapshot-id"]}),
    ),
    "a manifest list exchanged": lambda m: m["snapshots"][1].update(
        {key: m["snapshots"][0][key] for key in ("manifest-list", "key-id")}
    ),
    "a column renamed": lambda m: m["schemas"][0]["fields"][1].update({"name": "other"}),
    "a property set": lambda m: m["properties"].update({"write.data.path": "/tmp/elsewhere"}),
    "key id dropped": lambda m: m["properties"].pop("encryption.key-id"),
    "key id changed": lambda m: m["properties"].update({"encryption.key-id": "k2"}),
    "MAC dropped": lambda m: m["properties"].pop("encryption.metadata-mac"),
    "location changed": lambda m: m.update({"location": m["location"] + "x"}),
    "next row id changed": lambda m: m.update({"next-row-id": 1_000_000}),
}


def two_rows(lake: Lake) -> str:
    table = lake.create()
    lake.insert(table, [1])
    lake.insert(table, [2])
    return table


def test_edits_of_metadata_are_refused(pointer: Lake) -> None:
    table = two_rows(pointer)
    path = metadata_file(pointer)
    genuine = path.read_text()
    for name, change in EDITS.items():
        edit(path, change)
        stock(pointer, "DESCRIBE TABLE {t}")  # the control
        text = pointer.refused(f"SELECT * FROM {table}", "metadata is refused", str(path.name))
        assert pointer.namespace in text, name
        replace(path, genuine)
    assert pointer.ids(table) == [1, 2]


def test_dropped_snapshots_on_stock_and_on_ours(pointer: Lake) -> None:
    table = two_rows(pointer)
    edit(metadata_file(pointer), drop_snapshots)
    assert stock(pointer, "SELECT * FROM {t}") == []  # the control: no rows, no error
    assert_refused(pointer, table, "was changed after it was committed")


def test_a_table_without_any_trace_of_encryption(pointer: Lake) -> None:
    table = two_rows(pointer)
    edit(metadata_file(pointer), strip)
    if pointer.kind == "jdbc":
        assert_refused(pointer, table, "encryption.key-id is gone")
    else:  # SECURITY.md: nothing outside of the storage says that it was encrypted
        assert pointer.sql(f"SELECT * FROM {table}") == []


def test_an_older_version_in_place_of_a_newer_one(pointer: Lake) -> None:
    table = pointer.create()
    pointer.insert(table, [1])
    older = metadata_file(pointer).read_text()
    pointer.insert(table, [2])
    replace(metadata_file(pointer), older)
    assert len(stock(pointer, "SELECT * FROM {t}.snapshots")) == 1  # the control
    assert_refused(pointer, table, "was put in the place of version")


def test_another_tables_metadata(pointer: Lake) -> None:
    table = two_rows(pointer)
    pointer.create("other")
    replace(metadata_file(pointer), metadata_file(pointer, "other").read_text())
    assert_refused(
        pointer, table, "of another table" if pointer.kind == "jdbc" else "it is genuine"
    )


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
    genuine = Path(path).read_text()
    edit(Path(path), drop_snapshots)
    pointer.refused(hint, "is not the file that was looked at", sha256)
    replace(Path(path), genuine)
    pointer.sql(hint)
    assert pointer.ids(table) == [1, 2]
    pointer.insert(table, [3])
    assert pointer.ids(table) == [1, 2, 3]


def test_a_key_id_that_stock_removed_is_put_back(pointer: Lake) -> None:
    table = two_rows(pointer)
    stock(pointer, "ALTER TABLE {t} UNSET TBLPROPERTIES ('encryption.key-id')")
    text = pointer.refused(f"SELECT * FROM {table}", "encryption.key-id is gone (it was 'k1')")
    pointer.sql(offered(text))
    assert pointer.ids(table) == [1, 2]


def test_plaintext_that_stock_wrote_into_an_empty_table(pointer: Lake) -> None:
    table = pointer.create()
    stock(pointer, f"INSERT INTO {{t}} VALUES (1, '{MARKER}', 'p')")
    assert len(stock(pointer, "SELECT * FROM {t}")) == 1  # the control
    with pytest.raises(Exception, match="committed by a client that does not authenticate"):
        pointer.sql(f"SELECT * FROM {table}")


def test_statements_of_all_kinds_are_signed(pointer: Lake) -> None:
    table = two_rows(pointer)
    first = pointer.value(
        f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1"
    )
    pointer.run(f"ALTER TABLE {table} CREATE BRANCH b")
    pointer.run(f"INSERT INTO {table}.branch_b VALUES (7, '{MARKER}', 'p')")
    pointer.run(f"ALTER TABLE {table} ADD COLUMN more INT")
    pointer.run(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    pointer.run(f"UPDATE {table} SET more = 1 WHERE id = 2")
    pointer.call("rollback_to_snapshot", arguments=f"snapshot_id => {first}")
    assert pointer.ids(table) == [1]
    pointer.call("expire_snapshots", arguments="retain_last => 1")
    pointer.run(
        f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT 5L AS id, '{MARKER}' AS note"
    )
    assert pointer.ids(table) == [5]
    pointer.run(f"DROP TABLE {table} PURGE")


def test_a_refused_table_can_be_dropped(pointer: Lake) -> None:
    table = two_rows(pointer)
    edit(metadata_file(pointer), drop_snapshots)
    pointer.refused(f"DROP TABLE {table} PURGE", "metadata is refused")
    pointer.sql(f"DROP TABLE {table}")
    assert not pointer.sql(f"SHOW TABLES IN {pointer.catalog}.{pointer.namespace}")


def later(metadata: Json) -> None:
    metadata["later"] = {"a": [1.50]}
    metadata["snapshots"][0]["later"] = "x"


def test_metadata_of_a_later_iceberg(pointer: Lake) -> None:
    """Members that nobody here knows: whoever looked at the file signs them; the next commit drops them."""
    table = two_rows(pointer)
    path = metadata_file(pointer)
    edit(path, lambda m: (later(m), m["properties"].pop("encryption.metadata-mac")))
    pointer.sql(offered(assert_refused(pointer, table, "has no encryption.metadata-mac")))
    assert pointer.ids(table) == [1, 2]


def test_rest_and_hive_refuse_the_property(spark: SparkSession, world: World) -> None:
    for kind in ("rest", "hive"):
        lake = Lake(spark, world, kind, f"enc_{kind}")
        other = lake.with_options({"encryption.metadata-authentication": "require"})
        other.refused(
            f"SHOW TABLES IN {other.catalog}.{other.namespace}", "is not one that this is"
        )
