"""Every metadata table, and what a SQL user must not find in one."""

import pytest
from harness.files import MARKER
from harness.lake import Lake
from pyspark.sql import Row

METADATA_TABLES = {
    "entries": 3,
    "files": 3,
    "data_files": 2,
    "delete_files": 1,
    "history": 3,
    "metadata_log_entries": 4,
    "snapshots": 3,
    "refs": 1,
    "manifests": 3,
    "partitions": 2,
    "all_data_files": 2,
    "all_delete_files": 1,
    "all_files": 3,
    "all_manifests": 6,
    "all_entries": 3,
    "position_deletes": 1,
}
"""Each, with how many rows it has of the table below."""


@pytest.fixture
def table(lake: Lake) -> str:
    return two_partitions(lake)


def two_partitions(lake: Lake) -> str:
    """Two data files in two partitions, three snapshots, one deletion vector."""
    name = lake.create(partition="part", write_delete_mode="merge-on-read")
    lake.insert(name, [1, 2], part=MARKER)
    lake.insert(name, [3])
    lake.run(f"DELETE FROM {name} WHERE id = 1")
    return name


def key_metadata(rows: list[Row]) -> list[object]:
    """All values of all columns called key_metadata, in structs too."""
    found: list[object] = []
    for row in rows:
        for name, value in row.asDict().items():
            if name == "key_metadata":
                found.append(value)
            elif isinstance(value, Row):
                found += key_metadata([value])
    return found


@pytest.mark.nightly
def test_every_metadata_table(lake: Lake, table: str) -> None:
    counts = {name: len(lake.run(f"SELECT * FROM {table}.{name}")) for name in METADATA_TABLES}
    assert counts == METADATA_TABLES
    first = lake.value(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1")
    assert len(lake.run(f"SELECT * FROM {table}.files VERSION AS OF {first}")) == 1
    frame = lake.spark.read.format("iceberg").load(f"{table}.files")
    assert frame.count() == 3
    assert lake.ids(table, f"WHERE part = '{MARKER}' AND _pos >= 0 AND _file IS NOT NULL") == [2]


def test_no_metadata_table_tells_a_key(lake: Lake, table: str) -> None:
    for name in METADATA_TABLES:
        values = key_metadata(lake.sql(f"SELECT * FROM {table}.{name}"))
        assert not [value for value in values if value is not None], f"{name} gives a data key away"


WITH_KEYS = [
    *("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"),
    *("entries", "all_entries", "all_manifests"),
]
"""The metadata tables that have a column for keys."""


@pytest.mark.nightly
def test_only_the_keys_are_missing(hive: Lake) -> None:
    """A catalog that shows keys is the control: all else is the same, column by column and row by row."""
    table = two_partitions(hive)
    showing = hive.with_options({"encryption.expose-key-metadata": "true"})
    for name in METADATA_TABLES:
        theirs = hive.sql(f"SELECT * FROM {table}.{name}")
        all_of_it = hive.sql(f"SELECT * FROM {showing.table()}.{name}")
        assert schema(hive, f"{table}.{name}") == schema(hive, f"{showing.table()}.{name}")
        keys = key_metadata(all_of_it)
        if name in WITH_KEYS:
            assert keys, name
            assert all(keys), name
            assert key_metadata(theirs) == [None] * len(keys), name
        assert sorted(map(no_keys, theirs)) == sorted(map(no_keys, all_of_it)), name


def schema(lake: Lake, table: str) -> str:
    return lake.spark.table(table).schema.json()


def no_keys(row: Row) -> str:
    """All of a row but its keys, as text."""
    columns = row.asDict(recursive=True)
    for holder in (columns, columns.get("data_file") or {}):
        holder.pop("key_metadata", None)
    return str(columns)


def test_no_query_finds_a_key(hive: Lake) -> None:
    table = hive.insert(hive.create(partition="part"), [1])
    version = hive.value(f"SELECT snapshot_id FROM {table}.snapshots")
    for query in (
        f"SELECT key_metadata FROM {table}.files",
        f"SELECT key_metadata, file_path FROM {table}.files WHERE record_count > 0",
        f"SELECT KEY_METADATA AS k FROM {table}.all_data_files",
        f"SELECT data_file.key_metadata FROM {table}.entries",
        f"SELECT data_file FROM {table}.entries",
        f"SELECT data_file.key_metadata, data_file.file_path, status FROM {table}.all_entries",
        f"SELECT key_metadata, readable_metrics FROM {table}.files",
        f"SELECT key_metadata FROM {table}.all_manifests",
        f"SELECT max(key_metadata) FROM {table}.files",
        f"SELECT key_metadata FROM {table}.files VERSION AS OF {version}",
        f"SELECT key_metadata FROM {table}.files FOR SYSTEM_TIME AS OF current_timestamp()",
        f"SELECT key_metadata FROM {table}.files VERSION AS OF 'main'",
        f"SELECT key_metadata FROM {table}.files.branch_main",
        f"SELECT hex(key_metadata) FROM {table}.files ORDER BY file_path LIMIT 1",
        f"SELECT a.key_metadata FROM {table}.files a JOIN {table}.files b ON a.file_path = b.file_path",
    ):
        rows = hive.sql(query)
        assert rows, query
        for row in rows:
            assert (key_metadata([row]) or [row[0]]) == [None], query
    loaded = hive.spark.read.format("iceberg").load(f"{table}.files")
    assert key_metadata(loaded.collect()) == [None]


@pytest.mark.nightly
def test_no_reader_and_no_view_finds_a_key(hive: Lake) -> None:
    table = two_partitions(hive)
    spark = hive.spark
    frames = [
        spark.table(f"{table}.files"),
        spark.read.format("iceberg").load(f"{table}.files"),
        spark.read.option("versionAsOf", "main").table(f"{table}.files"),
        spark.table(f"{table}.files").cache(),
    ]
    spark.table(f"{table}.entries").createOrReplaceTempView("entries_of_table")
    frames.append(spark.sql("SELECT data_file.key_metadata FROM entries_of_table"))
    for frame in frames:
        assert frame.count() == 3
        assert key_metadata(frame.collect()) == [None] * 3
        frame.unpersist()
    spark.catalog.dropTempView("entries_of_table")  # SHOW VIEWS of other tests would list it
    with pytest.raises(Exception, match="Cannot append to a metadata table"):
        hive.sql(f"INSERT INTO {table}.files SELECT * FROM {table}.files")


def test_no_filter_tells_a_key(hive: Lake) -> None:
    """A filter that Iceberg evaluated would tell the key's bytes one by one."""
    table = two_partitions(hive)
    showing = hive.with_options({"encryption.expose-key-metadata": "true"})
    key = bytes(hive.value(f"SELECT key_metadata FROM {showing.table()}.data_files LIMIT 1"))
    for test in (
        f"key_metadata = X'{key.hex()}'",
        "key_metadata > X'00'",
        "key_metadata IS NOT NULL",
        "length(key_metadata) > 0",
    ):
        query = f"SELECT file_path FROM {{}}.files WHERE {test}"
        assert hive.sql(query.format(showing.table()))
        assert hive.sql(query.format(table)) == []
        entries = f"SELECT status FROM {table}.entries WHERE data_file.{test}".replace(
            "data_file.length(", "length(data_file."
        )
        assert hive.sql(entries) == []
    assert len(hive.sql(f"SELECT file_path FROM {table}.files WHERE key_metadata IS NULL")) == 3
    assert (
        len(hive.sql(f"SELECT 1 FROM {table}.files WHERE key_metadata IS NULL AND content = 0"))
        == 2
    )


@pytest.mark.nightly
def test_columns_of_the_same_name_are_the_users_own(hive: Lake) -> None:
    columns = "id BIGINT, key_metadata BINARY, data_file STRUCT<key_metadata: BINARY>"
    table = hive.create(columns=columns, partition="key_metadata")
    hive.run(f"INSERT INTO {table} VALUES (1, X'0102', named_struct('key_metadata', X'0304'))")
    assert hive.sql(f"SELECT * FROM {table}")[0].key_metadata == b"\x01\x02"
    (row,) = hive.sql(f"SELECT * FROM {table}.files")
    assert row.key_metadata is None
    assert row.partition.key_metadata == b"\x01\x02"
    assert row.readable_metrics.key_metadata.lower_bound == b"\x01\x02"
    (entry,) = hive.sql(f"SELECT data_file, readable_metrics FROM {table}.entries")
    assert entry.data_file.key_metadata is None
    assert entry.data_file.partition.key_metadata == b"\x01\x02"
    assert entry.readable_metrics.key_metadata.lower_bound == b"\x01\x02"


def test_the_session_catalog_hides_keys_too(hive: Lake) -> None:
    hive.insert(hive.create(), [1])
    same = hive.table(catalog="spark_catalog")
    assert key_metadata(hive.sql(f"SELECT * FROM {same}.files")) == [None]
    assert len(hive.sql(f"SELECT * FROM {same}")) == 1


def test_bad_value_is_refused(hive: Lake) -> None:
    other = hive.with_options({"encryption.expose-key-metadata": "yes"})
    other.refused(
        f"SHOW TABLES IN {other.catalog}.{hive.namespace}", "encryption.expose-key-metadata", "yes"
    )
