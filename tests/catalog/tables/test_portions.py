"""encrypt_table in portions: what a copy that is not finished lives through before the last call."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.files import (
    ENCRYPTED_MAGIC,
    MARKER,
    change,
    changed,
    everything_below,
    magic,
    untouched,
)
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    EncryptReport,
    IcebergCryptoError,
    encrypt_table,
    purge_plaintext,
    verify_table,
)


def table_of(lake: Lake, files: int, **properties: str) -> str:
    """A plaintext table of files of about the same length, with the rows i and 10 + i each."""
    table = lake.create(key=None, **properties)
    for i in range(files):
        insert(lake, i)
    return table


def insert(lake: Lake, i: int) -> None:
    rows = f"({i}, '{MARKER}-{i}', 'p'), (10 + {i}, '{MARKER}-{i}', 'p')"
    lake.sql(f"INSERT INTO {lake.table()} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")


def portion(lake: Lake, files: int) -> EncryptReport:
    """One call that copies so many files together."""
    length = lake.value(f"SELECT min(file_size_in_bytes) FROM {lake.table()}.files")
    return encrypt_table(lake.spark, lake.table(), "k1", max_bytes=files * length - length // 2)


def left(lake: Lake) -> int:
    return encrypt_table(lake.spark, lake.table(), "k1", dry_run=True).files_left


def finish(lake: Lake) -> int:
    """How many files the last call has copied."""
    done = encrypt_table(lake.spark, lake.table(), "k1")
    assert done.committed
    lake.sql(f"REFRESH TABLE {lake.table()}")
    with verify_table(lake.spark, lake.table(), deep=True) as report:
        assert report.ok, str(report)
    return done.copied_files


def log(lake: Lake, name: str = "*") -> list[Path]:
    return sorted((lake.folder / "t" / "metadata").glob(f"_encryption-*/{name}"))


def headers(lake: Lake) -> list[Path]:
    return log(lake, "group-*.json")


def copies(lake: Lake) -> list[Path]:
    return [path for path in lake.files() if magic(path) == b"PARE"]


@pytest.mark.nightly
def test_in_portions(hadoop: Lake) -> None:
    table = table_of(hadoop, 3)
    with pytest.raises(IcebergCryptoError, match="max_bytes is 0"):
        encrypt_table(hadoop.spark, table, "k1", max_bytes=0)
    call = f"CALL {hadoop.catalog}.system.encrypt_table(table => '{hadoop.namespace}.t', key_id => 'k1'"
    for limit in ("throttle => 0", "max_bytes => -1"):
        with pytest.raises(Exception, match=limit.replace("=>", "is")):
            hadoop.sql(f"{call}, {limit})")
    slow = encrypt_table(hadoop.spark, table, "k1", throttle=1, dry_run=True)
    assert slow.seconds == slow.bytes + 1
    start = time.monotonic()
    first = portion(hadoop, 1)
    took = time.monotonic() - start
    assert (first.committed, first.copied_files, first.files_left) == (False, 1, 2)
    assert first.message.startswith("NOT encrypted yet: 1 of 3 data files are copied (33 %)")
    assert first.seconds is not None and 1 < first.seconds < 2.2 * took + 1 and not first.ok
    insert(hadoop, 3)  # it is plaintext still
    assert left(hadoop) == 3
    second = portion(hadoop, 1)
    assert (second.committed, second.copied_files, second.files_left) == (False, 1, 2)
    assert finish(hadoop) == 2
    assert hadoop.ids(table) == [0, 1, 2, 3, 10, 11, 12, 13] and log(hadoop) == []


@pytest.mark.nightly
def test_a_throttle_holds_back_the_second_group(hadoop: Lake) -> None:
    table = table_of(hadoop, 2)
    longest = hadoop.value(f"SELECT max(file_size_in_bytes) FROM {table}.files")
    with hadoop.configured("spark.iceberg-crypto.encrypt.files-per-group", "1"):
        start = time.monotonic()
        assert encrypt_table(hadoop.spark, table, "k1", throttle=longest // 20).committed
    assert time.monotonic() - start > 15, "the first one's bytes take about 20 s"
    assert hadoop.ids(table) == [0, 1, 10, 11]


@pytest.mark.nightly
def test_only_what_changed_or_is_gone_is_copied_again(hadoop: Lake) -> None:
    """A file of a portion is kept, or copied again, by itself."""
    table = table_of(hadoop, 6, format__version="2", write_delete_mode="merge-on-read")
    assert portion(hadoop, 5).copied_files == 5 and left(hadoop) == 1
    assert len(headers(hadoop)) == 1 and len(copies(hadoop)) == 5
    before = 1
    for i in (2, 3):
        hadoop.sql(f"DELETE FROM {table} WHERE id = {i}")
        now = left(hadoop)
        assert now - before in (0, 1)  # that which was not copied may be the one
        before = now
    hadoop.sql(f"ALTER TABLE {table} CREATE TAG later")
    hadoop.sql(f"DELETE FROM {table} WHERE id IN (1, 11)")  # the tag still has that file
    before += 1  # and main a file without rows
    assert left(hadoop) == before
    for path in copies(hadoop)[:2]:
        for content in (path.read_bytes()[:-20], None):
            with changed({path: content}):
                assert left(hadoop) - before in (0, 1), path
    assert finish(hadoop) == before
    assert hadoop.ids(table) == [0, 4, 5, 10, 12, 13, 14, 15]
    assert hadoop.ids(table, "VERSION AS OF 'later'") == [0, 1, 4, 5, *range(10, 16)]
    assert log(hadoop) == []


@pytest.mark.nightly
def test_what_is_lost_of_the_log_is_copied_again(hadoop: Lake) -> None:
    table = table_of(hadoop, 5)
    for _ in range(4):
        portion(hadoop, 1)
    assert left(hadoop) == 1
    first, second, third, fourth = headers(hadoop)
    body = {h: h.parent / json.loads(h.read_text())["body"].split("/")[-1] for h in headers(hadoop)}
    manifest = body[first].with_suffix(".avro")
    for lost in (first, body[first], manifest):
        with changed({lost: None}):
            assert left(hadoop) == 2, lost
    with changed({first: first.read_bytes()[:-9]}):  # as a killed run leaves it
        assert left(hadoop) == 2
    text = second.read_text()
    for content in ("[]", "{}"):
        with changed({second: content.encode()}):
            assert left(hadoop) == 2, content
    with changed({second: text.replace('"layout":2', '"layout":9').encode()}):
        refused(hadoop, second.name, "another version")
    with changed({second: text.replace('"k1"', '"k2"').encode()}):
        refused(
            hadoop, "with key 'k2' has begun", "do not use a key just because it is named there"
        )
    whole = body[third].read_bytes()
    with changed({body[third]: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]}):
        assert left(hadoop) == 2
    body[third].unlink()
    fourth.unlink()
    assert finish(hadoop) == 3
    assert hadoop.ids(table) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14] and log(hadoop) == []


def refused(lake: Lake, *words: str) -> None:
    with pytest.raises(IcebergCryptoError) as caught:
        encrypt_table(lake.spark, lake.table(), "k1")
    assert not [word for word in (lake.table(), *words) if word not in str(caught.value)], str(
        caught.value
    )


@pytest.mark.nightly
def test_orphan_removal_keeps_what_was_copied(hadoop: Lake) -> None:
    """Files that are older than the copy are removed as ever."""
    table = table_of(hadoop, 4)
    data = next(path for path in hadoop.files() if path.suffix == ".parquet").parent
    for name in ("old.parquet", "new.parquet"):
        (data / name).write_bytes(b"PAR1, and of no table")
    os.utime(data / "old.parquet", (0, 0))
    for _ in range(3):
        portion(hadoop, 1)
    five_days_ago = time.time() - 5 * 86400
    for path in everything_below(hadoop.folder / "t") - {data / "old.parquet"}:
        os.utime(path, (five_days_ago, five_days_ago))
    remove = f"CALL {hadoop.catalog}.system.remove_orphan_files(table => '{hadoop.namespace}.t"
    yesterday = hadoop.value("SELECT cast(now() - INTERVAL 25 HOURS AS STRING)")
    older = f", older_than => TIMESTAMP '{yesterday}'"
    for more in ("'", "'" + older, "', prefix_listing => true", ".branch_main'" + older):
        before = set(hadoop.files())
        hadoop.sql(remove + more + ")")
        assert before - set(hadoop.files()) <= {data / "old.parquet"} and left(hadoop) == 1
    assert not (data / "old.parquet").exists() and (data / "new.parquet").exists()
    shutil.rmtree(log(hadoop)[0].parent)  # as the documents say: the copy is given up
    hadoop.sql(f"{remove}')")
    assert copies(hadoop) == [] and not (data / "new.parquet").exists() and left(hadoop) == 4
    assert hadoop.ids(table) == [0, 1, 2, 3, 10, 11, 12, 13]


@pytest.mark.catalogs("rest")
def test_sessions_that_still_have_the_plaintext_table(lake: Lake) -> None:
    """They load it again before they delete anything."""
    if lake.kind == "jdbc":
        pytest.skip("a catalog of another name has other tables")
    table = table_of(lake, 1)
    stale = [lake.with_options({"cache.expiration-interval-ms": "-1"}) for _ in range(4)]
    for one in stale:
        assert one.ids(one.table()) == [0, 10]
    encrypt_table(lake.spark, table, "k1")
    for path in everything_below(lake.folder / "t"):
        os.utime(path, (0, 0))
    of_t, later = f"table => '{lake.namespace}.t'", "older_than => TIMESTAMP '2100-01-01 00:00:00'"
    of_main = f"table => '{lake.namespace}.t.branch_main'"
    calls = (
        f"remove_orphan_files({of_t})",
        f"expire_snapshots({of_t}, {later})",
        f"remove_orphan_files({of_main})",
    )
    with untouched(lake.folder):
        for one, call in zip(stale, calls, strict=False):
            with pytest.raises(Exception, match="GC is disabled"):
                one.sql(f"CALL {one.catalog}.system.{call}")
    assert lake.ids(table) == [0, 10]
    purge_plaintext(lake.spark, table)
    stale[3].sql(f"DROP TABLE {stale[3].table()} PURGE")
    assert not everything_below(lake.folder)


@pytest.mark.catalogs("rest")
@pytest.mark.parametrize(
    ("key", "options", "of"),
    [("k1", {}, ""), (None, {"cache.expiration-interval-ms": "-1"}, ".branch_main")],
)
def test_cached_rows_after_a_procedure(
    lake: Lake, key: str | None, options: dict[str, str], of: str
) -> None:
    """Spark reads them again, also if another client has committed since."""
    one = lake.with_options(options)
    other = one if lake.kind == "jdbc" else lake  # there, another catalog has other tables
    table = one.create(key=key)
    insert(one, 0)
    one.sql(f"CACHE TABLE {table}")
    one.sql(f"CACHE TABLE low AS SELECT * FROM {table} WHERE id < 10")
    try:
        one.sql(f"CALL {one.catalog}.system.ancestors_of('{one.namespace}.t')")
        insert(one, 1)
        assert (one.ids(table), one.ids("low")) == ([0, 1, 10, 11], [0, 1])
        insert(other, 2)
        if of:  # Spark before 4.1 has cached the rows by an instance that the catalog then forgets
            one.sql(f"REFRESH TABLE {table}")
        first = one.value(f"SELECT min_by(snapshot_id, committed_at) FROM {table}.snapshots")
        back = f"'{one.namespace}.t{of}', {first}"
        one.sql(f"CALL {one.catalog}.system.rollback_to_snapshot({back})")
        assert one.ids(table) == [0, 10]
        assert of or one.ids("low") == [0]  # before Spark 4.1 a branch has no part in that
    finally:
        one.sql("DROP VIEW low")
        one.sql(f"UNCACHE TABLE IF EXISTS {table}")


@pytest.mark.parametrize(
    ("file_format", "victims", "copied"),
    [("parquet", "data/*", 3), ("avro", "data/*", 3), ("parquet", "metadata/*-m0.avro", 2)],
)
def test_copies_that_are_deleted_before_the_commit_are_made_again(
    hadoop: Lake, file_format: str, victims: str, copied: int
) -> None:
    """Another commit comes before that of the copies; then another client deletes what no table has."""
    table = table_of(hadoop, 1, write_format_default=file_format)
    jvm: Any = hadoop.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    folder = hadoop.folder / "t"
    hold = (str(folder / "data"), f".{file_format}", 1)
    deleted: list[Path] = []

    def interfere() -> None:
        storage.awaitHeld()
        insert(hadoop, 1)
        storage.release()
        storage.hold(*hold)
        storage.awaitHeld()
        deleted.extend(path for path in folder.glob(victims) if magic(path) in ENCRYPTED_MAGIC)
        for path in deleted:
            path.unlink()
        storage.release()

    storage.hold(*hold)
    thread = threading.Thread(target=interfere)
    thread.start()
    assert encrypt_table(hadoop.spark, table, "k1").copied_files == copied
    thread.join()
    assert len(deleted) == 1
    hadoop.sql(f"REFRESH TABLE {table}")
    assert hadoop.ids(table) == [0, 1, 10, 11]


@contextmanager
def at_the_last_look(lake: Lake, act: Callable[[Any], None]) -> Iterator[Any]:
    """Acts when a call looks for its one copy right before the commit: the verification opens that twice."""
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem

    def interfere() -> None:
        storage.awaitHeld()
        storage.release()
        storage.holdOpened(str(lake.folder / "t" / "data"), ".parquet", 3)
        storage.awaitHeld()
        act(storage)

    # the log has the copy, which is proved
    storage.holdWhole(str(lake.folder / "t" / "metadata"), ".json", 1)
    thread = threading.Thread(target=interfere)
    thread.start()
    yield storage
    thread.join()


def test_a_copy_that_is_deleted_during_the_last_look_for_it(hadoop: Lake) -> None:
    table = table_of(hadoop, 1)
    deleted: list[Path] = []

    def delete(storage: Any) -> None:
        deleted.extend(copies(hadoop))
        for path in deleted:
            path.unlink()
        storage.release()

    with at_the_last_look(hadoop, delete):
        refused(hadoop, "its copy cannot be checked", "The table is as it was")
    assert len(deleted) == 1 and finish(hadoop) == 1
    assert hadoop.ids(table) == [0, 10]


def test_copies_are_looked_for_once_beside_writers(hadoop: Lake) -> None:
    """Another client commits during the last look, which takes long for a large table."""
    table = table_of(hadoop, 1)
    seen: list[Path] = []

    def write(storage: Any) -> None:
        seen.extend(copies(hadoop))
        insert(hadoop, 1)
        storage.release()
        storage.hold(str(hadoop.folder / "t" / "data"), ".parquet", 1)
        storage.awaitHeld()  # what was inserted is copied now
        storage.release()
        storage.holdOpened(str(seen[0]), ".parquet", 1000)

    with at_the_last_look(hadoop, write) as storage:
        assert encrypt_table(hadoop.spark, table, "k1").copied_files == 2
    assert len(seen) == 1 and storage.counted() == 0, "that was not opened again"
    hadoop.sql(f"REFRESH TABLE {table}")
    assert hadoop.ids(table) == [0, 1, 10, 11]


@pytest.mark.nightly
def test_what_another_run_leaves_is_deleted(hadoop: Lake) -> None:
    """A run that is slower than another one leaves a log behind, as one that was killed does."""
    table = table_of(hadoop, 3, format__version="3")
    for _ in range(2):
        portion(hadoop, 1)
    kept = {path: path.read_bytes() for path in log(hadoop)[2:]}
    assert finish(hadoop) == 1 and log(hadoop) == []
    for path, content in kept.items():
        path.write_bytes(content)
    purge_plaintext(hadoop.spark, table)
    assert log(hadoop) == []
    with verify_table(hadoop.spark, table, deep=True, strays=True) as report:
        assert report.ok, str(report)


def test_rows_are_compared_when_they_are_copied(hadoop: Lake) -> None:
    """A file of the table is exchanged as soon as the copy of another one has begun."""
    table = table_of(hadoop, 2)
    first, second = (path for path in hadoop.files() if path.suffix == ".parquet")
    other = second.read_bytes()
    done = threading.Event()

    def exchange() -> None:
        while not done.wait(0.002):
            if copies(hadoop):
                change(first, other)
                return

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        with changed({first: first.read_bytes()}):
            refused(hadoop, "its encrypted copy has different rows", first.name)
    finally:
        done.set()
        thread.join()
    assert headers(hadoop) == [] and left(hadoop) == 2
    assert finish(hadoop) == 2 and hadoop.ids(table) == [0, 1, 10, 11]


@pytest.mark.nightly
def test_a_column_of_imported_files_that_is_added_between_two_portions(hadoop: Lake) -> None:
    """Files without column ids are read by names, and they have a column that the table does not have yet."""
    table, folder = hadoop.create(key=None), hadoop.folder / "imported"
    for i in range(3):
        rows = f"SELECT {i}L AS id, '{MARKER}-{i}' AS note, 'p' AS part, {i}L AS x"
        hadoop.spark.sql(rows).coalesce(1).write.mode("append").parquet(str(folder))
    source = f"source_table => '`parquet`.`{folder}`'"
    hadoop.sql(f"CALL {hadoop.catalog}.system.add_files(table => '{hadoop.namespace}.t', {source})")
    assert portion(hadoop, 2).copied_files == 2
    hadoop.sql(f"ALTER TABLE {table} ADD COLUMN x BIGINT")
    assert [row.x for row in hadoop.sql(f"SELECT x FROM {table} ORDER BY id")] == [0, 1, 2]
    assert left(hadoop) == 3 and finish(hadoop) == 3
    assert [row.x for row in hadoop.sql(f"SELECT x FROM {table} ORDER BY id")] == [0, 1, 2]


def row_ids(lake: Lake, of: str = "") -> list[tuple[int, int]]:
    query = f"SELECT id, _row_id FROM {lake.table()} {of} ORDER BY id"
    return [(row.id, row._row_id) for row in lake.sql(query)]


@pytest.mark.nightly
def test_row_ids_that_rows_get_between_two_portions(hadoop: Lake) -> None:
    """A copy from before the upgrade to format version 3 has no ids, so it is made again."""
    table = table_of(hadoop, 3, format__version="2")
    assert portion(hadoop, 2).copied_files == 2
    hadoop.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
    hadoop.sql(f"DELETE FROM {table} WHERE id = 12")
    insert(hadoop, 3)
    before = row_ids(hadoop)
    assert None not in dict(before).values()
    encrypt_table(hadoop.spark, table, "k1")
    assert row_ids(hadoop) == before


@pytest.mark.nightly
def test_a_file_that_was_cherry_picked_has_other_row_ids(hadoop: Lake) -> None:
    table = table_of(hadoop, 1, format__version="3")
    hadoop.sql(f"ALTER TABLE {table} CREATE BRANCH work")
    hadoop.sql(f"INSERT INTO {table}.branch_work VALUES (5, '{MARKER}-5', 'p')")
    insert(hadoop, 1)
    picked = hadoop.value(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'work'")
    name = f"{hadoop.namespace}.t"
    call = f"CALL {hadoop.catalog}.system.cherrypick_snapshot(table => '{name}'"
    hadoop.sql(f"{call}, snapshot_id => {picked})")
    before = row_ids(hadoop), row_ids(hadoop, "VERSION AS OF 'work'")
    assert dict(before[0])[5] != dict(before[1])[5]
    encrypt_table(hadoop.spark, table, "k1")
    assert (row_ids(hadoop), row_ids(hadoop, "VERSION AS OF 'work'")) == before
