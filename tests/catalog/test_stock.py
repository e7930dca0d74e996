"""What stock Iceberg does: the left column of README's table. When Iceberg mends one of these, its test says so.

The right column is tested where README says. test_harness.py has the first row.
"""

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from servers.files import MARKER, everything_below, files_below, magic, marker_in
from servers.lake import COLUMNS, Lake, tblproperties

KEY = {"encryption.key-id": "k1", "format-version": "3"}


@pytest.fixture
def stock(hive: Lake) -> Lake:
    """Stock Iceberg's Hive catalog, with our keystore as its KMS: the one that encrypts."""
    other = object.__new__(Lake)
    other.__dict__.update(hive.__dict__, catalog="stock_hive", _seen=set())
    return other


def create(stock: Lake, **properties: str) -> str:
    table = stock.table()
    every = {**KEY, **properties}
    stock.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {tblproperties(every)}")
    return table


def insert(stock: Lake, table: str, i: int = 1) -> None:
    stock.sql(f"INSERT INTO {table} VALUES ({i}, '{MARKER}-{i}', 'p')")


def plaintext_files(stock: Lake) -> list[Path]:
    encrypted = (b"PARE", b"AGS1")
    return [path for path in files_below(stock.folder) if magic(path) not in encrypted]


def test_a_create_without_a_format_version_fails(stock: Lake) -> None:
    key = tblproperties({"encryption.key-id": "k1"})
    with pytest.raises(Exception, match=r"Invalid properties for v2: \[encryption\.key-id\]"):
        stock.sql(f"CREATE TABLE {stock.table()} (id INT) USING iceberg {key}")


def test_an_unknown_key_id_fails_at_the_first_insert(stock: Lake) -> None:
    table = stock.table()
    unknown = tblproperties({**KEY, "encryption.key-id": "no-such-key"})
    stock.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {unknown}")
    with pytest.raises(Exception, match="no-such-key"):
        insert(stock, table)
    assert [path for path in stock.files() if path.suffix == ".parquet"]  # left behind


def test_a_wrong_data_key_length_locks_the_table(stock: Lake) -> None:
    table = create(stock)
    insert(stock, table)
    wrong = tblproperties({"encryption.data-key-length": "17"})
    stock.sql(f"ALTER TABLE {table} SET {wrong}")
    right = tblproperties({"encryption.data-key-length": "16"})
    for statement in (f"SELECT * FROM {table}", f"ALTER TABLE {table} SET {right}"):
        with pytest.raises(Exception, match="(?i)data key length"):
            stock.sql(statement)


def test_add_files_adds_plaintext(stock: Lake) -> None:
    source = f"spark_catalog.default.source_{uuid.uuid4().hex[:8]}"
    stock.sql(f"CREATE TABLE {source} USING parquet AS SELECT 1L AS id, '{MARKER}' AS note, 'p' AS part")
    table = create(stock)
    stock.sql(f"CALL stock_hive.system.add_files(table => '{table}', source_table => '{source}')")
    assert len(stock.sql(f"SELECT * FROM {table}")) == 1
    assert stock.rows(f"SELECT key_metadata FROM {table}.files") == [(None,)]
    stock.sql(f"DROP TABLE {source}")


def test_statistics_are_plaintext(stock: Lake) -> None:
    table = stock.table()
    stock.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY (part) {tblproperties(KEY)}"
    )
    stock.sql(f"INSERT INTO {table} VALUES (1, 'x', '{MARKER}')")
    assert not plaintext_files(stock)
    for procedure in ("compute_table_stats", "compute_partition_stats"):
        stock.sql(f"CALL stock_hive.system.{procedure}(table => '{stock.namespace}.t')")
    assert {magic(path) for path in plaintext_files(stock)} == {b"PFA1", b"PAR1"}
    assert [path.suffix for path in marker_in(stock.folder)] == [".parquet"]


def test_java_expire_snapshots_deletes_nothing(stock: Lake, spark: SparkSession) -> None:
    table = create(stock)
    insert(stock, table, 1)
    stock.sql(f"INSERT OVERWRITE {table} VALUES (9, '{MARKER}', 'p')")
    insert(stock, table, 10)
    before = {path for path in everything_below(stock.folder) if path.suffix == ".parquet"}
    jvm = spark._jvm
    assert jvm is not None
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    loaded.expireSnapshots().expireOlderThan(2**61).retainLast(1).commit()
    assert before <= everything_below(stock.folder)
    stock.sql(f"REFRESH TABLE {table}")
    assert len(stock.sql(f"SELECT * FROM {table}.snapshots")) == 1


def test_a_key_removed_on_rest_goes_unnoticed(spark: SparkSession, world: object) -> None:
    """No stock catalog but Hive looks at the key id of a table that it writes."""
    rest = Lake(spark, world, "rest", "enc_rest")  # type: ignore[arg-type]
    table = rest.create()
    rest.sql(f"INSERT INTO {rest.table('t', 'stock_rest')} VALUES (1, '{MARKER}', 'p')")
    assert rest.magics() == {b"PAR1", b"Obj\x01"}
    rest.sql(f"REFRESH TABLE {table}")
