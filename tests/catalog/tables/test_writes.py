"""Statements that make and fill tables."""

from itertools import product

import pytest
from harness.files import MARKER, magic
from harness.lake import COLUMNS, Lake, tblproperties
from harness.world import KINDS
from pyspark.sql.functions import col, lit

KEY = tblproperties({"encryption.key-id": "k1"})
FORMATS = {"parquet": {b"PARE", b"AGS1"}, "avro": {b"AGS1"}}
BY_DAY = [("jdbc", "parquet"), ("rest", "avro")]
EVERY = [
    pytest.param(*each, marks=[] if each in BY_DAY else pytest.mark.nightly)
    for each in product(KINDS, FORMATS)
]


def select(ids: str) -> str:
    return f"SELECT id, concat('{MARKER}-', id) AS note, 'p' AS part FROM range({ids})"


@pytest.mark.catalogs()
@pytest.mark.parametrize(("lake", "file_format"), EVERY, indirect=["lake"])
def test_create_and_insert(lake: Lake, file_format: str) -> None:
    table = lake.create(partition="part", write_format_default=file_format)
    assert lake.ids(table) == []
    lake.insert(table, [1, 2], part=MARKER)
    lake.insert(table, [3])
    assert lake.ids(table) == [1, 2, 3]
    assert lake.ids(table, f"WHERE part = '{MARKER}'") == [1, 2]
    assert lake.magics() == FORMATS[file_format]
    data = [path for path in lake.files() if path.parent.name != "metadata"]
    expected = b"PARE" if file_format == "parquet" else b"AGS1"
    assert len(data) == 2
    assert {magic(path) for path in data} == {expected}


def test_create_gets_format_version_3(lake: Lake) -> None:
    table = lake.create()
    properties = lake.properties(table)
    assert properties["format-version"] == "3"
    assert properties["encryption.key-id"] == "k1"
    explicit = lake.insert(lake.create("explicit", format__version="3"), [1])
    assert lake.ids(explicit) == [1]


@pytest.mark.catalogs("jdbc")
def test_ctas_rtas_and_create_or_replace(lake: Lake) -> None:
    table = lake.table()
    lake.run(f"CREATE TABLE {table} USING iceberg {KEY} AS {select('3')}")
    assert lake.ids(table) == [0, 1, 2]
    lake.run(f"REPLACE TABLE {table} USING iceberg {KEY} AS {select('3, 5')}")
    assert lake.ids(table) == [3, 4]
    lake.run(f"CREATE OR REPLACE TABLE {table} USING iceberg {KEY} AS {select('6')}")
    assert lake.ids(table) == [0, 1, 2, 3, 4, 5]
    lake.run(f"CREATE OR REPLACE TABLE {table} ({COLUMNS}) USING iceberg {KEY}")
    assert lake.ids(table) == []
    lake.insert(table, [7])
    assert lake.ids(table) == [7]
    new = lake.table("new")
    lake.run(f"CREATE OR REPLACE TABLE {new} USING iceberg {KEY} AS {select('2')}")
    assert lake.ids(new) == [0, 1]
    assert lake.magics("new") == {b"PARE", b"AGS1"}


def test_replace_without_a_key_id_keeps_the_table_encrypted(lake: Lake) -> None:
    """CREATE OR REPLACE keeps Iceberg's table properties: the key id is not lost by leaving it out."""
    table = lake.insert(lake.create(), [1])
    lake.run(f"CREATE OR REPLACE TABLE {table} USING iceberg AS {select('2')}")
    assert lake.ids(table) == [0, 1]
    assert lake.properties(table)["encryption.key-id"] == "k1"


def test_insert_overwrite_static_and_dynamic(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part"), [1], part="a")
    lake.insert(table, [2], part="b")
    lake.run(f"INSERT OVERWRITE {table} PARTITION (part = 'a') VALUES (3, '{MARKER}')")
    assert lake.ids(table) == [2, 3]
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.run(f"INSERT OVERWRITE {table} VALUES (4, '{MARKER}', 'b')")
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert lake.ids(table) == [3, 4]
    lake.run(f"INSERT OVERWRITE {table} VALUES (5, '{MARKER}', 'c')")
    assert lake.ids(table) == [5]


def test_dataframe_writer(lake: Lake) -> None:
    frame = lake.spark.range(4).select(
        "id", lit(MARKER).alias("note"), (col("id") % 2).cast("string").alias("part")
    )
    table = lake.table()
    frame.writeTo(table).tableProperty("encryption.key-id", "k1").partitionedBy(
        col("part")
    ).create()
    lake.assert_encrypted("writeTo.create")
    frame.writeTo(table).append()
    lake.assert_encrypted("append")
    assert lake.ids(table) == [0, 0, 1, 1, 2, 2, 3, 3]
    frame.where("part = '1'").writeTo(table).overwritePartitions()
    lake.assert_encrypted("overwritePartitions")
    frame.where("id = 0").writeTo(table).overwrite(col("part") == "0")
    lake.assert_encrypted("overwrite")
    assert lake.ids(table) == [0, 1, 3]
    frame.writeTo(table).tableProperty("encryption.key-id", "k1").createOrReplace()
    lake.assert_encrypted("createOrReplace")
    frame.write.mode("append").option("write-format", "avro").saveAsTable(table)
    lake.assert_encrypted("saveAsTable")
    assert len(lake.ids(table)) == 8


def test_insert_then_truncate_and_delete_all(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1, 2])
    lake.run(f"TRUNCATE TABLE {table}")
    assert lake.ids(table) == []
    lake.insert(table, [3])
    lake.run(f"DELETE FROM {table}")
    assert lake.ids(table) == []
