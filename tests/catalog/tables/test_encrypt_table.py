"""encrypt_table: a plaintext table is encrypted in place, with all that it shows."""

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER, changed, path_of, untouched
from harness.lake import Lake
from harness.world import World
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import repair_table, verify_table
from pyspark_iceberg_crypto.doctor import diagnose_tables


def plain(lake: Lake, name: str = "t", **properties: str) -> str:
    return lake.create(name, key=None, **properties)


def insert(lake: Lake, table: str, ids: list[int], part: str = "p") -> str:
    """As Lake.insert, into a table that is plaintext."""
    values = ", ".join(f"({i}, '{MARKER}-{i}', '{part}')" for i in ids)
    lake.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    return table


def encrypt(lake: Lake, table: str = "t", key: str = "k1", **arguments: Any) -> Any:
    more = "".join(f", {name} => {value}" for name, value in arguments.items())
    name = f"{lake.namespace}.{table}"
    [row] = lake.sql(
        f"CALL {lake.catalog}.system.encrypt_table(table => '{name}', key_id => '{key}'{more})"
    )
    return row


def assert_proved(lake: Lake, table: str) -> None:
    with verify_table(lake.spark, table, deep=True) as report:
        assert report.ok, str(report)


@pytest.mark.catalogs("rest")
def test_a_table_is_encrypted_in_place(lake: Lake) -> None:
    table = insert(lake, plain(lake, partition="part", format__version="2"), [1, 2, 3], "p")
    values = ", ".join(f"({i}, '{MARKER}-{i}', 'q{i}')" for i in range(4, 12))
    lake.sql(f"INSERT INTO {table} VALUES {values}")
    dry = encrypt(lake, dry_run="true")
    assert (dry.dry_run, dry.committed, dry.files, dry.copied_files) == (True, False, 9, 9)
    part = encrypt(lake, max_bytes=1)
    assert (part.dry_run, part.committed, part.copied_files, part.files_left) == (0, 0, 1, 8)
    assert part.kms_calls == dry.kms_calls == 4
    assert part.seconds > 2 > dry.seconds, "eight times as long as the first file"
    assert f"and at this call's rate the rest takes about {part.seconds} s" in part.message
    row = encrypt(lake)
    assert (row.committed, row.files, row.copied_files, row.rows) == (True, 9, 8, 11)
    assert (row.dry_run, row.seconds) == (False, None)
    assert lake.ids(table) == [*range(1, 12)]
    assert lake.value(f"SELECT count(*) FROM {table} WHERE part = 'p'") == 3
    assert_proved(lake, table)
    lake.sql(f"INSERT INTO {table} VALUES (12, '{MARKER}-12', 'r')")
    assert lake.ids(table) == [*range(1, 13)]


def rows(lake: Lake, table: str, of: str = "") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(f"SELECT * FROM {table} {of}"))


def row_ids(lake: Lake, table: str) -> list[tuple[int, int]]:
    query = f"SELECT id, _row_id FROM {table} ORDER BY id"
    return [(row.id, row._row_id) for row in lake.sql(query)]


def schema_of(lake: Lake, table: str) -> Any:
    return lake.spark.table(table).schema


@pytest.mark.nightly
def test_old_formats_deletes_and_specs(hadoop: Lake) -> None:
    """Version 1 with Avro, ORC and Parquet and two specs; version 2 with deletes of both kinds of writers."""
    one = insert(hadoop, plain(hadoop, "one", format__version="1"), [1, 2])
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


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.nightly
@pytest.mark.since(
    "Iceberg 1.11 writes no row to a table once a column of a former sort order is dropped",
    iceberg="1.12",
)
def test_columns_that_older_specs_and_sort_orders_had(hadoop: Lake, version: str) -> None:
    """Partition fields are dropped, then their columns: files of the older specs are copied, too."""
    table = hadoop.create(
        key=None,
        format__version=version,
        columns="id BIGINT, note STRING, a INT, b STRING, c TIMESTAMP, d STRUCT<e: DATE>",
        partition="a",
    )
    values = f"'{MARKER}', 7, 'b', TIMESTAMP '2026-01-02 03:04:05', struct(DATE '2026-01-02')"
    fields = ("bucket(4, a)", "days(c)", "truncate(2, b)", "months(d.e)", "b")
    for i, field in enumerate(fields):
        hadoop.sql(f"INSERT INTO {table} VALUES ({i}, {values})")
        hadoop.sql(f"ALTER TABLE {table} ADD PARTITION FIELD {field}")
    hadoop.sql(f"ALTER TABLE {table} WRITE ORDERED BY a, b, bucket(8, c)")
    # Iceberg itself cannot read a dropped column of text that was an identity partition, so the tag is before that
    hadoop.sql(f"ALTER TABLE {table} CREATE TAG whole")
    hadoop.sql(f"INSERT INTO {table} VALUES (5, {values})")
    hadoop.sql(f"ALTER TABLE {table} WRITE UNORDERED")
    for field in ("a", *fields):
        hadoop.sql(f"ALTER TABLE {table} DROP PARTITION FIELD {field}")
    for column in "abcd":
        hadoop.sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    before, tagged = rows(hadoop, table), rows(hadoop, table, "VERSION AS OF 'whole'")
    encrypt(hadoop)
    assert rows(hadoop, table) == before and len(before) == 6
    assert rows(hadoop, table, "VERSION AS OF 'whole'") == tagged and len(tagged[0]) == 6
    assert_proved(hadoop, table)
    hadoop.sql(f"INSERT INTO {table} VALUES (9, '{MARKER}')")
    assert hadoop.ids(table) == [*range(6), 9]


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_a_tag_older_than_a_column_of_the_partitions_and_of_the_order(lake: Lake) -> None:
    """It is read with a schema that does not have them: when it is encrypted, and when it is decrypted."""
    table = insert(lake, plain(lake, format__version="2"), [1, 2])
    lake.sql(f"ALTER TABLE {table} CREATE TAG q1")
    lake.sql(f"ALTER TABLE {table} ADD COLUMNS (day DATE, hour INT)")
    lake.sql(f"ALTER TABLE {table} ADD PARTITION FIELD day")
    lake.sql(f"ALTER TABLE {table} WRITE ORDERED BY hour")
    lake.sql(f"INSERT INTO {table} VALUES (3, '{MARKER}-3', 'p', DATE '2026-01-02', 4)")

    def shown() -> Any:
        described = lake.sql(f"DESCRIBE EXTENDED {table}")
        of_table = [row for row in described if row.col_name in ("# Partitioning", "Part 0", "day")]
        order = lake.properties(table)["sort-order"]
        return rows(lake, table), rows(lake, table, "VERSION AS OF 'q1'"), of_table, order

    before = shown()
    assert [len(one) for one in before[:2]] == [3, 2]
    assert encrypt(lake, dry_run="true").files == 2
    encrypt(lake)
    assert shown() == before
    assert_proved(lake, table)
    name = f"table => '{lake.namespace}.t'"
    lake.sql(f"CALL {lake.catalog}.system.purge_plaintext({name})")
    lake.sql(f"CALL {lake.catalog}.system.decrypt_table({name}, confirm => true)")
    assert shown() == before


@pytest.mark.nightly
@pytest.mark.catalogs("hadoop")
def test_row_ids_of_version_3_stay(lake: Lake) -> None:
    table = plain(lake, format__version="3", write_delete_mode="merge-on-read")
    insert(lake, table, [1, 2, 3])
    insert(lake, table, [4, 5])
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    lake.sql(f"UPDATE {table} SET part = 'u' WHERE id = 4")
    before, all_rows = row_ids(lake, table), rows(lake, table)
    encrypt(lake)
    assert row_ids(lake, table) == before and rows(lake, table) == all_rows
    lake.sql(f"INSERT INTO {table} VALUES (6, '{MARKER}-6', 'p')")
    ids = [row_id for _, row_id in row_ids(lake, table)]
    assert len(set(ids)) == len(ids) == 5
    assert_proved(lake, table)


@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_branches_and_tags(lake: Lake) -> None:
    """Each shows what it did: a tag with columns that are gone, a branch with rows of its own."""
    table = insert(lake, plain(lake, format__version="2"), [1, 2])
    lake.sql(f"ALTER TABLE {table} CREATE TAG first RETAIN 100 DAYS")
    insert(lake, table, [3])
    lake.sql(f"ALTER TABLE {table} CREATE BRANCH side WITH SNAPSHOT RETENTION 7 SNAPSHOTS")
    lake.sql(f"INSERT INTO {table}.branch_side VALUES (4, '{MARKER}-4', 's')")
    lake.sql(f"DELETE FROM {table} WHERE id = 1")
    lake.sql(f"ALTER TABLE {table} DROP COLUMN part")
    lake.sql(f"INSERT INTO {table} VALUES (5, '{MARKER}-5')")
    lake.sql(f"ALTER TABLE {table} CREATE TAG again")  # which comes before the others
    names = ("again", "first", "side", "main")
    shown = {ref: rows(lake, table, f"VERSION AS OF '{ref}'") for ref in names}
    query = f"SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep FROM {table}.refs ORDER BY name"
    refs = lake.sql(query)
    row = encrypt(lake)
    assert row.refs == 4
    for ref, expected in shown.items():
        assert rows(lake, table, f"VERSION AS OF '{ref}'") == expected, ref
    assert len(shown["first"][0]) == 3
    assert lake.sql(query) == refs
    with verify_table(lake.spark, table, deep=True) as report:
        assert report.ok
    lake.sql(f"INSERT INTO {table}.branch_side VALUES (6, '{MARKER}-6')")
    assert lake.ids(table, "VERSION AS OF 'side'") == [1, 2, 3, 4, 6]


@pytest.mark.nightly
@pytest.mark.catalogs("hadoop")
def test_an_empty_table(lake: Lake) -> None:
    table = plain(lake)
    assert encrypt(lake).files == 0
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    assert lake.ids(table) == [1]
    assert_proved(lake, table)
    emptied = insert(lake, plain(lake, "emptied"), [1])
    lake.sql(f"ALTER TABLE {emptied} CREATE TAG before")
    lake.sql(f"DELETE FROM {emptied}")
    assert encrypt(lake, "emptied").rows == 0
    assert lake.ids(emptied) == []
    assert lake.ids(emptied, "VERSION AS OF 'before'") == [1]


def test_what_is_refused(hadoop: Lake) -> None:
    hadoop.create("done")
    table = insert(hadoop, plain(hadoop), [1])
    call = f"CALL {hadoop.catalog}.system.encrypt_table(table => '{hadoop.namespace}"
    with untouched(hadoop.warehouse):
        refused(hadoop, f"{call}.t', key_id => 'none')", table, "none")
        refused(hadoop, f"{call}.t', key_id => ' ')", table, "key id is empty")
        refused(hadoop, f"{call}.done', key_id => 'k1')", "is already encrypted")
        refused(hadoop, f"{call}.none', key_id => 'k1')", "none does not exist")
        refused(hadoop, f"{call}.t.files', key_id => 'k1')", "files of its own")
        with hadoop.configured("spark.iceberg-crypto.encrypt.files-per-group", "none"):
            refused(hadoop, f"{call}.t', key_id => 'k1')", "files-per-group is 'none'")
    hadoop.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.parquet.page-version'='v2')")
    with untouched(hadoop.warehouse):
        refused(hadoop, f"{call}.t', key_id => 'k1')", "page-version", table)


def refused(lake: Lake, statement: str, *words: str, hint: bool = True) -> None:
    with pytest.raises(Exception) as caught:
        lake.sql(statement)
    text = str(caught.value)
    missing = [word for word in (*words, *(("hint:",) if hint else ())) if word not in text]
    assert not missing, f"{statement}: no {missing} in {text[:3000]}"


@pytest.mark.nightly
def test_plaintext_that_is_still_there_is_named(hadoop: Lake) -> None:
    """By verify, doctor and repair, also when no metadata file of the log leads to it any more."""
    table = insert(hadoop, plain(hadoop), [1])
    kept = encrypt(hadoop).plaintext_metadata
    hadoop.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='1')"
    )
    hadoop.sql(f"INSERT INTO {table} VALUES (2, '{MARKER}-2', 'p')")
    purge = f"CALL {hadoop.catalog}.system.purge_plaintext(table => '{table}', dry_run => true)"
    with verify_table(hadoop.spark, table) as report:
        assert report.ok and report.plaintext_metadata == kept
        assert f"allfilesthat{kept}reaches" in "".join(str(report).split())
    row, *_ = hadoop.sql(f"CALL {hadoop.catalog}.system.verify_encryption('{hadoop.namespace}.t')")
    assert row.encrypted and row.problem is None
    assert kept in row.hint and purge in row.hint
    with verify_table(hadoop.spark, table, all_snapshots=True) as report:
        plaintext = {path_of(one.path) for one in report.problems if one.code == "plaintext"}
        assert plaintext == {path for path in hadoop.plaintext_files() if path.suffix != ".json"}
        assert all(
            one.hint.startswith("Anyone who can read the storage") for one in report.problems
        )
    [left] = repair_table(hadoop.spark, table, confirm=True).left
    assert left.kind == "plaintext left" and kept in left.problem and purge in left.hint
    [found] = diagnose_tables(hadoop.spark, table).findings
    assert found.kind == "plaintext left" and kept in found.problem and purge in found.hint
    hadoop.sql(purge.replace(", dry_run => true", ""))
    assert hadoop.plaintext_files() == []
    assert "PLAINTEXT" not in str(verify_table(hadoop.spark, table, strays=True))
    assert repair_table(hadoop.spark, table).ok and diagnose_tables(hadoop.spark, table).ok


@pytest.mark.nightly
def test_the_plaintext_stays_until_it_is_purged(lake: Lake) -> None:
    table = insert(lake, plain(lake, format__version="2", gc_enabled="true"), [1, 2])
    insert(lake, table, [3])
    name = f"{lake.namespace}.t"
    lake.sql(f"CALL {lake.catalog}.system.compute_table_stats(table => '{name}')")
    first = lake.value(f"SELECT min_by(snapshot_id, committed_at) FROM {table}.snapshots")
    kept = encrypt(lake).plaintext_metadata
    lake.sql(f"INSERT INTO {table} VALUES (4, '{MARKER}-4', 'p')")
    reader = lake.spark.read.format("iceberg").option("versionAsOf", str(first))
    assert sorted(row.id for row in reader.load(kept).collect()) == [1, 2]
    plain_files = lake.plaintext_files()
    listed, *paths = lake.sql(
        f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}', dry_run => true)"
    )
    assert not listed.deleted and listed.files == len(paths) > len(plain_files)
    assert {str(path) for path in plain_files} <= {row.path.removeprefix("file:") for row in paths}
    assert lake.plaintext_files() == plain_files
    with verify_table(lake.spark, table, strays=True) as report:
        assert not report.ok
    done, *_ = lake.sql(f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}')")
    assert done.deleted and done.files == listed.files
    assert lake.plaintext_files() == [] and not Path(kept.removeprefix("file:")).exists()
    assert lake.ids(table) == [1, 2, 3, 4]
    properties = lake.properties(table)
    assert properties["gc.enabled"] == "true"
    assert not any("plaintext" in key or "previous-versions" in key for key in properties)
    with verify_table(lake.spark, table, deep=True, strays=True) as report:
        assert report.ok, str(report)
    refused(lake, f"CALL {lake.catalog}.system.purge_plaintext(table => '{name}')", "was purged")


def test_the_purge_deletes_no_file_of_another_table(hadoop: Lake) -> None:
    """The old metadata is plaintext: someone has it name the manifest list of another table."""
    table, other = plain(hadoop, gc_enabled="false"), plain(hadoop, "other")
    insert(hadoop, table, [1])
    insert(hadoop, other, [2])
    kept = path_of(encrypt(hadoop).plaintext_metadata)
    forged = json.loads(kept.read_text())
    [forged["snapshots"][0]["manifest-list"]] = [
        str(path) for path in (hadoop.folder / "other" / "metadata").glob("snap-*.avro")
    ]
    call = f"CALL {hadoop.catalog}.system.purge_plaintext(table => '{hadoop.namespace}.t'"
    with changed({kept: json.dumps(forged).encode()}), untouched(hadoop.folder):
        named = ("3 plaintext files", f"{hadoop.namespace}/other/data")
        listed = hadoop.sql(f"{call}, dry_run => true)")
        assert "3 others that the old metadata names" in listed[0].message
        assert any("other/data" in row.path for row in listed if row.message and row.path)
    with untouched(hadoop.folder):  # a clone may have its files
        refused(hadoop, f"{call})", table, "gc.enabled was false", "SET TBLPROPERTIES")
    hadoop.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled'='true')")
    with changed({kept: json.dumps(forged).encode()}), untouched(hadoop.folder):
        refused(hadoop, f"{call})", table, *named)
    hadoop.sql(f"{call})")
    assert hadoop.plaintext_files() == [] and hadoop.ids(other) == [2]
    properties = hadoop.properties(table)
    assert properties["gc.enabled"] == "true"


SMALL_GROUPS = ("spark.iceberg-crypto.encrypt.files-per-group", "1")


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_others_read_and_write_meanwhile(lake: Lake) -> None:
    """What was written before the commit is there; what comes after it as plaintext is refused."""
    table = plain(lake, format__version="2")
    for i in range(4):
        insert(lake, table, [i])
    # a session that knows the table as plaintext, however long this takes
    other = lake.with_options({"cache.expiration-interval-ms": "-1"})
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
        with untouched(lake.folder), pytest.raises(Exception, match="a file without encryption"):
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
    return list((lake.folder / "t" / "metadata").glob("_encryption-*/group-*.json"))


@pytest.mark.nightly
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
            [begun] = repair_table(hadoop.spark, table, confirm=True).left
            assert begun.kind == "encryption begun" and "encrypt_table" in begun.hint
            copied.append(encrypt(hadoop).copied_files)
    assert copied[0] < 6
    assert hadoop.ids(table) == [0, 1, 3, 4, 5]
    assert hadoop.ids(table, "VERSION AS OF 'all_of_them'") == [0, 1, 2, 3, 4, 5]
    assert not copy_log(hadoop)
    assert_proved(hadoop, table)


@pytest.mark.nightly
def test_a_source_file_that_cannot_be_read(hadoop: Lake) -> None:
    table = insert(hadoop, plain(hadoop), [1])
    insert(hadoop, table, [2])
    file = next(path for path in sorted(hadoop.files()) if path.suffix == ".parquet")
    whole = file.read_bytes()
    metadata = set((hadoop.folder / "t" / "metadata").glob("*.metadata.json"))
    call = f"CALL {hadoop.catalog}.system.encrypt_table('{hadoop.namespace}.t', 'k1')"
    corrupt = whole[:4] + b"x" * (len(whole) - 8) + whole[-4:]
    for content, said in ((None, file.name), (whole[:-100], file.name), (corrupt, "footer")):
        with changed({file: content}):
            refused(hadoop, call, table, "its rows cannot be copied", said, "restore it from a")
        assert set((hadoop.folder / "t" / "metadata").glob("*.metadata.json")) == metadata
    assert hadoop.ids(table) == [1, 2]
    assert encrypt(hadoop).rows == 2
    assert_proved(hadoop, table)


@pytest.mark.nightly
def test_files_that_are_replaced_and_expire_in_every_round(hadoop: Lake) -> None:
    """Nothing is damaged, so nobody is told to restore a file from a backup."""
    table = insert(hadoop, plain(hadoop), [0])
    jvm: Any = hadoop.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    done = threading.Event()

    def replace() -> None:
        for i in itertools.count(1):
            if not storage.awaitHeld() or done.is_set():
                return
            old = [path for path in hadoop.files() if path.suffix == ".parquet"]
            hadoop.sql(f"INSERT OVERWRITE {table} VALUES ({i}, '{MARKER}-{i}', 'p')")
            for path in old:
                path.unlink()
            storage.release()
            storage.holdOpened(*held)

    held = (str(hadoop.folder / "t" / "metadata"), ".avro", 1)
    storage.holdOpened(*held)
    thread = threading.Thread(target=replace)
    thread.start()
    call = f"CALL {hadoop.catalog}.system.encrypt_table('{hadoop.namespace}.t', 'k1')"
    try:
        with pytest.raises(Exception, match="was changed 20 times") as caught:
            hadoop.sql(call)
    finally:
        done.set()
        storage.release()
        thread.join()
    assert "restore it from a backup" not in str(caught.value)
    assert "a file of a snapshot was gone" in str(caught.value)
    assert encrypt(hadoop).rows == 1


@pytest.mark.nightly
def test_a_catalog_or_a_server_that_would_refuse_it(spark: SparkSession, world: World) -> None:
    rest = Lake(spark, world, "rest", "enc_rest")
    table = insert(rest, plain(rest), [1])
    call = "CALL {}.system.encrypt_table('{}.t', '{}')"
    strict = rest.with_options({"encryption.plaintext-tables": "refuse"})
    limited = rest.with_options({"encryption.allowed-key-ids": "k2"})
    with untouched(rest.warehouse):
        refused(rest, call.format(strict.catalog, rest.namespace, "k1"), "plaintext-tables=refuse")
        refused(rest, call.format(limited.catalog, rest.namespace, "k1"), "allowed-key-ids")
    server = rest.with_options({"header.X-Refuse": "add-encryption-key 400 BadRequestException"})
    refused(server, call.format(server.catalog, rest.namespace, "k1"), "refused a commit that adds")
    assert rest.ids(table) == [1]
    row = encrypt(rest)
    assert (row.copied_files, row.kms_calls) == (0, 3)


@pytest.mark.nightly
def test_back_to_the_plaintext(lake: Lake) -> None:
    """As docs/encrypting-tables.md says; on Hadoop a table cannot be registered in its place."""
    if lake.kind == "hadoop":
        pytest.skip("a Hadoop catalog deletes the folder of a table that is dropped")
    table = insert(lake, plain(lake, partition="part"), [1, 2])
    insert(lake, table, [3])
    kept = encrypt(lake).plaintext_metadata
    lake.sql(f"DROP TABLE {table}")
    lake.sql(
        f"CALL {lake.catalog}.system.register_table("
        f"table => '{lake.namespace}.t', metadata_file => '{kept}')"
    )
    assert lake.ids(table) == [1, 2, 3]
    assert lake.value(f"SELECT count(*) FROM {table}.snapshots") == 2
    insert(lake, table, [4])
    assert encrypt(lake).rows == 4
    assert lake.ids(table) == [1, 2, 3, 4]
    assert_proved(lake, table)


@pytest.mark.catalogs("jdbc")
@pytest.mark.nightly
def test_the_documents_statements(lake: Lake) -> None:
    """Those of docs/encrypting-tables.md, one after the other."""
    if lake.kind == "hadoop":
        pytest.skip("a table cannot be registered in the place of one that was dropped")
    table = lake.create("orders", key=None)
    insert(lake, table, [1, 2])
    text = (Path(__file__).parents[3] / "docs" / "encrypting-tables.md").read_text()
    statements = [
        statement.strip()
        .replace("lake.", f"{lake.catalog}.")
        .replace("shop.", f"{lake.namespace}.")
        for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        for statement in block.split(";\n")
        if statement.strip() and "s3://" not in statement  # folders that are not here
    ]
    assert len(statements) == 8
    kept = ""
    for statement in statements:
        run = statement.replace("'sales'", "'k1'").replace("<encryption.plaintext-metadata>", kept)
        if "purge_plaintext" in run and "true" in run:  # it has gone back before
            encrypt(lake, "orders")
        if "decrypt_table" in run:
            assert lake.plaintext_files("orders") == []
        lake.sql(run)
        rows_now = lake.sql(f"SHOW TBLPROPERTIES {table}") if "DROP" not in run else []
        kept = next((r.value for r in rows_now if r.key == "encryption.plaintext-metadata"), kept)
    assert lake.ids(table) == [1, 2]
