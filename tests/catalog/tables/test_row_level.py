"""DELETE, UPDATE and MERGE, copy-on-write and merge-on-read."""

import pytest
from harness.files import MARKER, magic
from harness.lake import Lake

pytestmark = pytest.mark.catalogs("hive")


def mode_properties(mode: str) -> dict[str, str]:
    return {f"write_{statement}_mode": mode for statement in ("delete", "update", "merge")}


@pytest.mark.parametrize(
    "mode, file_format",
    [
        pytest.param("copy-on-write", "parquet", marks=pytest.mark.nightly),
        ("merge-on-read", "parquet"),
        pytest.param("merge-on-read", "avro", marks=pytest.mark.nightly),
    ],
)
def test_delete_update_merge(lake: Lake, mode: str, file_format: str) -> None:
    table = lake.create(write_format_default=file_format, **mode_properties(mode))
    lake.insert(table, range(10))
    lake.run(f"DELETE FROM {table} WHERE id IN (0, 5)")
    assert lake.ids(table) == [1, 2, 3, 4, 6, 7, 8, 9]
    lake.run(f"UPDATE {table} SET note = '{MARKER}-new', part = 'q' WHERE id < 3")
    assert lake.ids(table, "WHERE part = 'q'") == [1, 2]
    lake.run(
        f"MERGE INTO {table} t USING (SELECT id FROM range(8, 12)) s ON t.id = s.id WHEN MATCHED AND t.id = 9 THEN "
        f"DELETE WHEN MATCHED THEN UPDATE SET note = '{MARKER}-merged' WHEN NOT MATCHED THEN INSERT (id, note, part) "
        f"VALUES (s.id, '{MARKER}-inserted', 'r')"
    )
    assert lake.ids(table) == [1, 2, 3, 4, 6, 7, 8, 10, 11]
    assert lake.ids(table, f"WHERE note = '{MARKER}-merged'") == [8]
    vectors = [path for path in lake.files() if path.suffix == ".puffin"]
    if mode == "merge-on-read":
        assert vectors
        assert {magic(path) for path in vectors} == {b"AGS1"}
        formats = {
            row.file_format for row in lake.run(f"SELECT file_format FROM {table}.delete_files")
        }
        assert formats == {"PUFFIN"}
    else:
        assert not vectors


@pytest.mark.nightly
def test_deletion_vectors_over_several_partitions(lake: Lake) -> None:
    table = lake.create(partition="part", **mode_properties("merge-on-read"))
    for part in ("a", "b"):
        lake.insert(table, range(5), part=part)
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    lake.run(
        f"DELETE FROM {table} WHERE id = 3 AND part = 'b'"
    )  # replaces a vector by a longer one
    assert lake.ids(table) == [0, 0, 2, 2, 3, 4, 4]
    assert lake.value(f"SELECT count(*) FROM {table}.delete_files") == 2
    positions = lake.rows(f"SELECT pos FROM {table}.position_deletes")
    assert positions == [(1,), (1,), (3,)]
