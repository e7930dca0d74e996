"""encrypt_table: a plaintext table is encrypted in place, with all that it shows."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.files import ENCRYPTED_MAGIC, MARKER, magic, untouched
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


def rows(lake: Lake, table: str, of: str = "") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(f"SELECT * FROM {table} {of}"))


def row_ids(lake: Lake, table: str) -> list[tuple[int, int]]:
    query = f"SELECT id, _row_id FROM {table} ORDER BY id"
    return [(row.id, row._row_id) for row in lake.sql(query)]


def schema_of(lake: Lake, table: str) -> Any:
    return lake.spark.table(table).schema


def test_old_formats_deletes_and_specs(hadoop: Lake) -> None:
    """Version 1 with Avro, ORC and Parquet and two specs; version 2 with deletes of both kinds of writers."""
    one = plain(hadoop, "one", format__version="1")
    insert(hadoop, one, [1, 2])
    hadoop.sql(f"ALTER TABLE {one} SET TBLPROPERTIES ('write.format.default'='avro')")
    insert(hadoop, one, [3])
    hadoop.sql(f"ALTER TABLE {one} ADD PARTITION FIELD part")
    insert(hadoop, one, [4, 5], "q")
    hadoop.sql(f"ALTER TABLE {one} SET TBLPROPERTIES ('write.format.default'='orc')")
    insert(hadoop, one, [6], "r")
    hadoop.sql(f"ALTER TABLE {one} RENAME COLUMN note TO remark")
    hadoop.sql(f"ALTER TABLE {one} ADD COLUMN more map<string, struct<a: int, b: array<string>>>")
    hadoop.sql(
        f"INSERT INTO {one} VALUES (7, '{MARKER}-7', 's', map('x', named_struct('a', 1, 'b', array('y'))))"
    )
    before, schema = hadoop.sql(f"SELECT * FROM {one} ORDER BY id"), schema_of(hadoop, one)
    encrypt(hadoop, "one")
    assert hadoop.sql(f"SELECT * FROM {one} ORDER BY id") == before
    assert schema_of(hadoop, one) == schema
    specs = {
        (r.spec_id, r.file_format)
        for r in hadoop.sql(f"SELECT spec_id, file_format FROM {one}.files")
    }
    assert specs == {(0, "PARQUET"), (0, "AVRO"), (1, "AVRO"), (1, "PARQUET")}
    assert_proved(hadoop, one)

    two = plain(
        hadoop, "two", partition="part", format__version="2", write_delete_mode="merge-on-read"
    )
    insert(hadoop, two, [1, 2, 3])
    insert(hadoop, two, [4, 5, 6], "q")
    hadoop.sql(f"DELETE FROM {two} WHERE id IN (2, 5)")
    assert hadoop.value(f"SELECT count(*) FROM {two}.delete_files") > 0
    encrypt(hadoop, "two")
    assert hadoop.ids(two) == [1, 3, 4, 6]
    assert hadoop.value(f"SELECT count(*) FROM {two}.delete_files") == 0
    hadoop.sql(f"DELETE FROM {two} WHERE id = 1")
    assert hadoop.ids(two) == [3, 4, 6]
    ids = [row_id for _, row_id in row_ids(hadoop, two)]
    assert len(set(ids)) == 3 and None not in ids
    assert_proved(hadoop, two)


def test_row_ids_of_version_3_stay(hadoop: Lake) -> None:
    table = plain(hadoop, format__version="3", write_delete_mode="merge-on-read")
    insert(hadoop, table, [1, 2, 3])
    insert(hadoop, table, [4, 5])
    hadoop.sql(f"DELETE FROM {table} WHERE id = 2")
    hadoop.sql(f"UPDATE {table} SET part = 'u' WHERE id = 4")
    before, all_rows = row_ids(hadoop, table), rows(hadoop, table)
    encrypt(hadoop)
    assert row_ids(hadoop, table) == before and rows(hadoop, table) == all_rows
    hadoop.sql(f"INSERT INTO {table} VALUES (6, '{MARKER}-6', 'p')")
    ids = [row_id for _, row_id in row_ids(hadoop, table)]
    assert len(set(ids)) == len(ids) == 5
    assert_proved(hadoop, table)


def test_branches_and_tags(hadoop: Lake) -> None:
    """Each shows what it did: a tag with columns that are gone, a branch with rows of its own."""
    table = plain(hadoop, format__version="2")
    insert(hadoop, table, [1, 2])
    hadoop.sql(f"ALTER TABLE {table} CREATE TAG first RETAIN 100 DAYS")
    insert(hadoop, table, [3])
    hadoop.sql(f"ALTER TABLE {table} CREATE BRANCH side WITH SNAPSHOT RETENTION 7 SNAPSHOTS")
    hadoop.sql(f"INSERT INTO {table}.branch_side VALUES (4, '{MARKER}-4', 's')")
    hadoop.sql(f"DELETE FROM {table} WHERE id = 1")
    hadoop.sql(f"ALTER TABLE {table} DROP COLUMN part")
    hadoop.sql(f"INSERT INTO {table} VALUES (5, '{MARKER}-5')")
    shown = {
        ref: rows(hadoop, table, f"VERSION AS OF '{ref}'") for ref in ("first", "side", "main")
    }
    query = f"SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep FROM {table}.refs ORDER BY name"
    refs = hadoop.sql(query)
    row = encrypt(hadoop)
    assert row.refs == 3
    for ref, expected in shown.items():
        assert rows(hadoop, table, f"VERSION AS OF '{ref}'") == expected, ref
    assert len(shown["first"][0]) == 3
    assert hadoop.sql(query) == refs
    with verify_table(hadoop.spark, table, depth="deep") as report:
        assert report.ok
    hadoop.sql(f"INSERT INTO {table}.branch_side VALUES (6, '{MARKER}-6')")
    assert hadoop.ids(table, "VERSION AS OF 'side'") == [1, 2, 3, 4, 6]


def test_an_empty_table(hadoop: Lake) -> None:
    table = plain(hadoop)
    assert encrypt(hadoop).files == 0
    hadoop.insert(hadoop.create("other"), [1])
    hadoop.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    assert hadoop.ids(table) == [1]
    assert_proved(hadoop, table)


def test_what_is_refused(hadoop: Lake) -> None:
    hadoop.create("done")
    table = plain(hadoop)
    insert(hadoop, table, [1])
    call = f"CALL {hadoop.catalog}.system.encrypt_table(table => '{hadoop.namespace}"
    with untouched(hadoop.warehouse):
        refused(hadoop, f"{call}.t', key_id => 'none')", table, "none")
        refused(hadoop, f"{call}.t', key_id => ' ')", table, "key id is empty")
        refused(hadoop, f"{call}.done', key_id => 'k1')", "is encrypted already")
        refused(hadoop, f"{call}.none', key_id => 'k1')", "does not exist", hint=False)
        refused(hadoop, f"{call}.t.files', key_id => 'k1')", "metadata of its own")
    hadoop.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.parquet.page-version'='v2')")
    with untouched(hadoop.warehouse):
        refused(hadoop, f"{call}.t', key_id => 'k1')", "page-version", table)


def refused(lake: Lake, statement: str, *words: str, hint: bool = True) -> None:
    with pytest.raises(Exception) as caught:
        lake.sql(statement)
    text = str(caught.value)
    missing = [word for word in (*words, *(("hint:",) if hint else ())) if word not in text]
    assert not missing, f"{statement}: no {missing} in {text[:3000]}"


def plaintext_files(lake: Lake, name: str = "t") -> list[Path]:
    return [path for path in lake.files(name) if magic(path) not in ENCRYPTED_MAGIC]


@pytest.mark.catalogs("jdbc")
def test_the_plaintext_stays_until_it_is_purged(lake: Lake) -> None:
    table = plain(lake, format__version="2", gc_enabled="true")
    insert(lake, table, [1, 2])
    insert(lake, table, [3])
    first = lake.value(f"SELECT min_by(snapshot_id, committed_at) FROM {table}.snapshots")
    kept = encrypt(lake).plaintext_metadata
    lake.sql(f"INSERT INTO {table} VALUES (4, '{MARKER}-4', 'p')")
    reader = lake.spark.read.format("iceberg").option("versionAsOf", str(first))
    assert sorted(row.id for row in reader.load(kept).collect()) == [1, 2]
    name = f"{lake.namespace}.t"
    plain_files = plaintext_files(lake)
    listed, *paths = lake.sql(
        f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}', dry_run => true)"
    )
    assert not listed.deleted and listed.files == len(paths) > len(plain_files)
    assert {str(path) for path in plain_files} <= {row.path.removeprefix("file:") for row in paths}
    assert plaintext_files(lake) == plain_files
    with verify_table(lake.spark, table, strays=True) as report:
        assert not report.ok
    done, *_ = lake.sql(f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}')")
    assert done.deleted and done.files == listed.files
    assert plaintext_files(lake) == [] and not Path(kept.removeprefix("file:")).exists()
    assert lake.ids(table) == [1, 2, 3, 4]
    properties = {row.key: row.value for row in lake.sql(f"SHOW TBLPROPERTIES {table}")}
    assert properties["gc.enabled"] == "true"
    assert not any("plaintext" in key or "previous-versions" in key for key in properties)
    with verify_table(lake.spark, table, depth="deep", strays=True) as report:
        assert report.ok, str(report)
    refused(lake, f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}')", "was purged")


SMALL_GROUPS = ("spark.iceberg-crypto.encrypt.files-per-group", "1")


@pytest.mark.catalogs("rest")
def test_others_read_and_write_meanwhile(lake: Lake) -> None:
    """What was written before the commit is there; what comes after it as plaintext is refused."""
    table = plain(lake, format__version="2")
    for i in range(4):
        insert(lake, table, [i])
    other = lake.with_options({})  # a session that knows the table as plaintext
    written, seen = list(range(4)), []
    done = threading.Event()

    def write() -> None:
        for i in range(100, 104):
            insert(lake, table, [i])
            written.append(i)
            time.sleep(0.5)

    def read() -> None:
        while not done.is_set():
            seen.append(len(lake.ids(table)))

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    with lake.seen_by(other.catalog):
        other.ids(other.table())
    with lake.configured(*SMALL_GROUPS):
        for thread in threads:
            thread.start()
        try:
            row = encrypt(lake)
        finally:
            threads[0].join()
            done.set()
            threads[1].join()
    assert row.committed and len(seen) > 1
    assert seen == sorted(seen) and seen[0] >= 4
    with lake.seen_by(other.catalog):
        with pytest.raises(Exception, match="a file without encryption"):
            insert(other, other.table(), [200])
        insert(other, other.table(), [200])
        assert other.ids(other.table()) == [*written, 200]
    lake.sql(f"REFRESH TABLE {table}")
    assert_proved(lake, table)


@contextmanager
def stopped_after(lake: Lake, groups: int) -> Iterator[None]:
    """Cancels Spark's jobs as soon as so many groups are copied."""
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.01):
            if len(copy_log(lake)) >= groups:
                lake.spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def copy_log(lake: Lake) -> list[Path]:
    return list((lake.folder / "t" / "metadata").glob("encryption-*/group-*.json"))


def test_a_run_that_was_stopped_goes_on(hadoop: Lake) -> None:
    table = plain(hadoop, format__version="2")
    for i in range(6):
        insert(hadoop, table, [i])
    hadoop.sql(f"ALTER TABLE {table} CREATE TAG all_of_them")
    copied = []
    with hadoop.configured(*SMALL_GROUPS):
        for groups in (1, 3, 4):
            try:
                with stopped_after(hadoop, groups):
                    copied.append(encrypt(hadoop).copied_files)
                break
            except Exception as error:  # noqa: BLE001 (Spark's)
                assert "cancelled" in str(error), str(error)[:2000]
        hadoop.sql(f"DELETE FROM {table} WHERE id = 2")
        if not copied:
            refused(
                hadoop,
                f"CALL {hadoop.catalog}.system.encrypt_table('{hadoop.namespace}.t', 'k2')",
                "has begun",
                "'k1'",
            )
            copied.append(encrypt(hadoop).copied_files)
    assert copied[0] < 6
    assert hadoop.ids(table) == [0, 1, 3, 4, 5]
    assert hadoop.ids(table, "VERSION AS OF 'all_of_them'") == [0, 1, 2, 3, 4, 5]
    assert not copy_log(hadoop)
    assert_proved(hadoop, table)
