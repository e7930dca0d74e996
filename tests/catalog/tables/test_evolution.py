"""A table's schema, partitioning and order change; its files of all ages stay encrypted and readable."""

import pytest
from harness.files import MARKER
from harness.lake import Lake


@pytest.mark.nightly
def test_schema_evolution(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    lake.run(f"ALTER TABLE {table} ADD COLUMN extra STRUCT<a: INT, b: STRING>")
    lake.run(f"INSERT INTO {table} VALUES (2, '{MARKER}', 'p', struct(7, '{MARKER}'))")
    lake.run(f"ALTER TABLE {table} RENAME COLUMN part TO area")
    lake.run(f"ALTER TABLE {table} ADD COLUMN narrow INT")
    lake.run(f"ALTER TABLE {table} ALTER COLUMN narrow TYPE BIGINT")
    lake.run(f"ALTER TABLE {table} ALTER COLUMN narrow FIRST")
    assert lake.rows(f"SELECT id, extra.a, area, narrow FROM {table} WHERE id = 2") == [
        (2, 7, "p", None)
    ]
    lake.run(f"ALTER TABLE {table} DROP COLUMN narrow")
    lake.run(f"ALTER TABLE {table} DROP COLUMN extra.b")
    assert lake.rows(f"SELECT id, extra.a FROM {table} WHERE id = 2") == [(2, 7)]
    lake.run(f"UPDATE {table} SET area = 'z' WHERE id = 1")
    assert lake.ids(table) == [1, 2]
    lake.run(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('comment'='c', 'write.delete.mode'='merge-on-read')"
    )
    lake.run(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('comment')")
    assert lake.ids(table) == [1, 2]


@pytest.mark.nightly
def test_partition_evolution(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part"), [1], part=MARKER)
    lake.run(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    lake.insert(table, [2], part=MARKER)
    lake.run(f"ALTER TABLE {table} DROP PARTITION FIELD part")
    lake.insert(table, [3], part=MARKER)
    lake.run(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(4, id) WITH truncate(2, note)")
    lake.insert(table, [4], part=MARKER)
    lake.run(f"DELETE FROM {table} WHERE id = 3")
    assert lake.ids(table, f"WHERE part = '{MARKER}'") == [1, 2, 4]
    assert lake.value(f"SELECT count(DISTINCT spec_id) FROM {table}.files") >= 3


def test_write_order_and_identifier_fields(lake: Lake) -> None:
    table = lake.create(columns="id BIGINT NOT NULL, note STRING, part STRING")
    lake.run(f"ALTER TABLE {table} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY part, id DESC")
    lake.run(f"ALTER TABLE {table} SET IDENTIFIER FIELDS id")
    lake.insert(table, [3, 1, 2])
    assert lake.ids(table) == [1, 2, 3]
    lake.run(f"ALTER TABLE {table} WRITE UNORDERED")
    lake.insert(table, [4])
    assert lake.ids(table) == [1, 2, 3, 4]
