"""A table's life beside its rows: names, drops, keys, other sessions."""

import pytest
from harness.files import files_below, magic
from harness.lake import Lake


@pytest.mark.catalogs()
def test_rename(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    new = lake.table("renamed")
    if lake.kind == "hadoop":  # a Hadoop catalog cannot rename
        with pytest.raises(Exception, match="Cannot rename Hadoop tables"):
            lake.run(f"ALTER TABLE {table} RENAME TO {new}")
        return
    lake.run(f"ALTER TABLE {table} RENAME TO {lake.namespace}.renamed")
    lake.insert(new, [2])
    assert lake.ids(new) == [1, 2]
    assert lake.tables() == {"renamed"}


@pytest.mark.catalogs("jdbc")
def test_drop_keeps_files_and_purge_deletes_them(lake: Lake) -> None:
    dropped, purged = (
        lake.create("dropped"),
        lake.create("purged", write_delete_mode="merge-on-read"),
    )
    for table in (dropped, purged):
        lake.insert(table, range(4))
    lake.run(f"DELETE FROM {purged} WHERE id = 0")
    before = lake.files("dropped")
    lake.run(f"DROP TABLE {dropped}")
    # a Hadoop table is its folder, which goes with it
    assert lake.files("dropped") == ([] if lake.kind == "hadoop" else before)
    lake.run(f"DROP TABLE {purged} PURGE")
    assert lake.files("purged") == []
    assert not [
        path for path in (lake.folder / "purged").rglob("*") if path.name.endswith("metadata.json")
    ]
    lake.run(f"DROP TABLE IF EXISTS {dropped}")
    lake.run(f"DROP TABLE IF EXISTS {dropped} PURGE")
    assert not lake.tables()
    lake.run(f"DROP NAMESPACE {lake.catalog}.{lake.namespace}")


@pytest.mark.nightly
def test_key_ids_differ_by_table(lake: Lake) -> None:
    names = {"k1": "t1", "k2": "t2", "k-128": "t128", "k-192": "t192", "k-256": "t256"}
    lengths = {"t128": "16", "t192": "24", "t256": "32"}
    for key, name in names.items():
        properties = {"encryption_data__key__length": lengths[name]} if name in lengths else {}
        lake.insert(lake.create(name, key=key, **properties), [1])
    joined = " UNION ALL ".join(f"SELECT * FROM {lake.table(name)}" for name in names.values())
    assert len(lake.sql(joined)) == 5


def test_table_default_key_id(lake: Lake) -> None:
    """table-default.encryption.key-id encrypts every new table."""
    default = lake.with_options({"table-default.encryption.key-id": "k2"})
    table = default.table()
    default.run(f"CREATE TABLE {table} (id BIGINT, note STRING, part STRING) USING iceberg")
    default.insert(table, [1])
    assert default.ids(table) == [1]
    default.run(f"CREATE TABLE {default.table('ctas')} USING iceberg AS SELECT * FROM {table}")
    properties = default.properties(default.table("ctas"))
    assert (properties["encryption.key-id"], properties["format-version"]) == ("k2", "3")
    assert default.magics("ctas") == {b"PARE", b"AGS1"}


def test_the_key_id_is_set_at_create_only(lake: Lake) -> None:
    table, plain = lake.create(), lake.create("plain", key=None)
    lake.insert(table, [1])
    name = f"{lake.namespace}.t"
    key = "encryption.key-id"
    lake.refused(f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}'='k2')", name, key, "k2")
    lake.refused(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{key}')", name, key)
    replace = (
        f"REPLACE TABLE {table} USING iceberg TBLPROPERTIES ('{key}'='k2') AS SELECT * FROM {table}"
    )
    lake.refused(replace, name, key, "k2")
    enable = f"ALTER TABLE {plain} SET TBLPROPERTIES ('{key}'='k1', 'format-version'='3')"
    lake.refused(enable, f"{lake.namespace}.plain", key, "encrypt_table")
    length = "encryption.data-key-length"
    lake.refused(f"ALTER TABLE {table} SET TBLPROPERTIES ('{length}'='17')", name, length)
    lake.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}'='k1')")  # no change
    lake.insert(table, [2])
    assert lake.ids(table) == [1, 2]


@pytest.mark.nightly
def test_new_session(lake: Lake) -> None:
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2, 3])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    other = lake.spark.newSession()
    assert sorted(row.id for row in other.table(table).collect()) == [2, 3]
    other.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 2").collect()
    lake.assert_encrypted("INSERT in another session")
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [2, 2, 3]


def test_session_catalog(hive: Lake) -> None:
    """EncryptedSessionCatalog as spark_catalog: Iceberg tables encrypted, Spark's own as they were."""
    name = f"t_{hive.namespace}"
    folder = hive.warehouse / name
    hive.sql(
        f"CREATE TABLE default.{name} (id BIGINT) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    hive.sql(f"INSERT INTO default.{name} VALUES (1), (2)")
    hive.sql(f"DELETE FROM default.{name} WHERE id = 2")
    assert hive.rows(f"SELECT * FROM spark_catalog.default.{name}") == [(1,)]
    key = "TBLPROPERTIES ('encryption.key-id'='k1')"
    hive.sql(f"CREATE OR REPLACE TABLE default.{name} USING iceberg {key} AS SELECT 5L AS id")
    assert hive.rows(f"SELECT * FROM spark_catalog.default.{name}") == [(5,)]
    assert {magic(path) for path in files_below(folder)} == {b"PARE", b"AGS1"}
    parquet = f"p_{hive.namespace}"
    hive.sql(f"CREATE TABLE default.{parquet} (id BIGINT) USING parquet")
    hive.sql(f"INSERT INTO default.{parquet} VALUES (1)")
    assert hive.rows(f"SELECT * FROM default.{parquet}") == [(1,)]
    hive.sql(f"DROP TABLE default.{parquet}")
    hive.sql(f"DROP TABLE default.{name} PURGE")
    assert not list(files_below(folder))
