"""encrypt_table: a plaintext table is encrypted in place, with all that it shows."""

from typing import Any

import pytest
from harness.files import MARKER
from harness.lake import Lake

from pyspark_iceberg_crypto import verify_table


def plain(lake: Lake, name: str = "t", **properties: str) -> str:
    return lake.create(name, key=None, **properties)


def insert(lake: Lake, table: str, ids: list[int], part: str = "p") -> None:
    """As Lake.insert, into a table that is plaintext."""
    values = ", ".join(f"({i}, '{MARKER}-{i}', '{part}')" for i in ids)
    lake.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")


def encrypt(lake: Lake, table: str = "t", key: str = "k1", **arguments: Any) -> Any:
    more = "".join(f", {name} => {value}" for name, value in arguments.items())
    name = f"{lake.namespace}.{table}"
    [row] = lake.sql(
        f"CALL {lake.catalog}.system.encrypt_table(table => '{name}', key_id => '{key}'{more})"
    )
    return row


def assert_proved(lake: Lake, table: str) -> None:
    with verify_table(lake.spark, table, depth="deep") as report:
        assert report.ok, str(report)


@pytest.mark.catalogs()
def test_a_table_is_encrypted_in_place(lake: Lake) -> None:
    table = plain(lake, partition="part", format__version="2")
    insert(lake, table, [1, 2, 3], "p")
    insert(lake, table, [4, 5], "q")
    dry = encrypt(lake, dry_run="true")
    assert (dry.committed, dry.files, dry.copied_files) == (False, 2, 2)
    row = encrypt(lake)
    assert (row.committed, row.files, row.copied_files, row.rows) == (True, 2, 2, 5)
    assert lake.ids(table) == [1, 2, 3, 4, 5]
    assert lake.value(f"SELECT count(*) FROM {table} WHERE part = 'q'") == 2
    assert_proved(lake, table)
    lake.sql(f"INSERT INTO {table} VALUES (6, '{MARKER}-6', 'r')")
    assert lake.ids(table) == [1, 2, 3, 4, 5, 6]
