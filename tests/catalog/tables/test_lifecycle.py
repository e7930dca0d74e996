"""A table's life beside its rows: names, drops, keys, plaintext neighbours, other sessions."""

import pytest
from harness.files import files_below, magic, untouched
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
def test_a_table_without_a_key_id_stays_plaintext(lake: Lake) -> None:
    table = lake.create(key=None, partition="part", write_delete_mode="merge-on-read")
    assert lake.properties(table)["format-version"] == "2"
    lake.sql(f"INSERT INTO {table} VALUES (1, 'x', 'p'), (2, 'x', 'p'), (3, 'x', 'p')")
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    assert lake.rows(f"SELECT id FROM {table}") == [(1,), (3,)]
    assert lake.magics() == {b"PAR1", b"Obj\x01"}
    lake.sql(f"CALL {lake.catalog}.system.compute_table_stats(table => '{lake.namespace}.t')")
    lake.sql(f"DROP TABLE {table} PURGE")
    assert lake.files() == []


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


@pytest.mark.nightly
def test_required(lake: Lake) -> None:
    """encryption.required=true refuses a plaintext table, however it comes about."""
    lake.create("plain", key=None)
    replace = "REPLACE TABLE {} USING iceberg AS SELECT 1 AS id"
    lake.sql(replace.format(lake.table("plain")))  # the control: without the property
    strict = lake.with_options({"encryption.required": "true"})
    log = lake.sql(f"SELECT file FROM {lake.table('plain')}.metadata_log_entries")
    register = (
        f"CALL {strict.catalog}.system.register_table("
        f"table => '{strict.namespace}.registered', metadata_file => '{log[-1].file}')"
    )
    told = pytest.raises(Exception, match=r"(?s)encryption\.required=true.*hint:")
    for statement in (replace, f"CREATE OR {replace}", register):
        with lake.seen_by(strict.catalog), untouched(lake.folder), told:
            strict.sql(statement.format(strict.table("plain")))
    lake.sql(f"DROP TABLE {lake.table('plain')} PURGE")
    assert not lake.tables()
    name = f"{strict.namespace}.t"
    strict.refused(
        f"CREATE TABLE {strict.table()} (id INT) USING iceberg", name, "encryption.key-id"
    )
    strict.refused(
        f"CREATE TABLE {strict.table()} USING iceberg AS SELECT 1 AS id", name, "encryption.key-id"
    )
    strict.create()


@pytest.mark.nightly
def test_allowed_key_ids(hive: Lake) -> None:
    """A master key that the catalog does not allow is refused; AllowedKeysOfTablesTest has all that is."""
    other = hive.insert(hive.create("other", key="k2"), [1])
    log = hive.sql(f"SELECT file FROM {other}.metadata_log_entries")
    limited = hive.with_options({"encryption.allowed-key-ids": "k1, x-*"})
    told = ("encryption.key-id is 'k2'", "k1, x-*", "encryption.allowed-key-ids")
    new, existing = (f"{limited.namespace}.{name}" for name in ("t", "other"))
    for statement, name in (
        (f"CREATE TABLE {limited.table()} USING iceberg {{key}} AS SELECT 1 AS id", new),
        (f"SELECT * FROM {limited.table('other')}", existing),
        (
            f"CREATE OR REPLACE TABLE {limited.table('other')} USING iceberg AS SELECT 1 AS id",
            existing,
        ),
        (f"CALL {limited.catalog}.system.register_table('{new}', '{log[-1].file}')", new),
    ):
        key = "TBLPROPERTIES ('encryption.key-id'='k2')"
        limited.refused(statement.replace("{key}", key), name, *told)
    assert hive.ids(other) == [1]


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
