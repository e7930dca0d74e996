"""decrypt_table: an encrypted table is made plaintext in place, if that is said."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import pytest
from doubles.faults import FaultProxy
from harness.files import (
    ENCRYPTED_MAGIC,
    MARKER,
    changed,
    files_below,
    flipped,
    magic,
    path_of,
    untouched,
)
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    NotEncryptedError,
    TableNotFoundError,
    decrypt_table,
    encrypt_table,
    verify_table,
)


@pytest.mark.nightly
@pytest.mark.catalogs("hive")
def test_there_and_back(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part"), [1, 2, 3], "p")
    lake.run(f"ALTER TABLE {table} CREATE TAG before")
    lake.insert(table, [4], "q")
    lake.run(f"DELETE FROM {table} WHERE id = 2")
    before = lake.sql(f"SELECT *, _row_id FROM {table} ORDER BY id")
    with untouched(lake.folder), pytest.raises(ConfigurationError, match="confirm => true"):
        decrypt_table(lake.spark, table)

    old = set(files_below(lake.folder))
    done = decrypt_table(lake.spark, table, confirm=True)
    assert (done.old_key_id, done.files) == ("k1", 3)  # one with its delete file and without
    assert lake.sql(f"SELECT *, _row_id FROM {table} ORDER BY id") == before
    assert lake.ids(table, "VERSION AS OF 'before'") == [1, 2, 3]
    new = set(files_below(lake.folder)) - old
    assert new and not any(magic(file) in ENCRYPTED_MAGIC for file in new)
    fresh = lake.with_options({})
    with lake.seen_by(fresh.catalog):
        fresh.sql(f"INSERT INTO {fresh.table()} VALUES (5, '{MARKER}-5', 'p')")
        assert fresh.ids(fresh.table()) == [1, 3, 4, 5]
    with pytest.raises(NotEncryptedError):
        decrypt_table(lake.spark, table, confirm=True)

    encrypt_table(lake.spark, table, "k2")
    assert lake.ids(table) == [1, 3, 4, 5]
    with verify_table(lake.spark, table) as report:
        assert report.ok, str(report)


@pytest.mark.nightly
def test_a_run_that_fails_leaves_no_plaintext(hadoop: Lake) -> None:
    """Files of two partition specs are copied one spec after the other, and one of them is damaged."""
    table = hadoop.insert(hadoop.create(), [1])
    first = set(hadoop.files())
    hadoop.run(f"ALTER TABLE {table} ADD PARTITION FIELD part")
    hadoop.insert(table, [2])
    files = [path for path in hadoop.files() if path.suffix == ".parquet"]
    told = []
    for damaged in (min, max):
        file = damaged(files, key=lambda path: path in first)
        damage = {file: flipped(file.read_bytes(), 40)}
        with changed(damage), untouched(hadoop.folder), pytest.raises(IcebergCryptoError):
            decrypt_table(hadoop.spark, table, confirm=True)
        with changed(damage), faulty_data(hadoop), pytest.raises(IcebergCryptoError) as caught:
            decrypt_table(hadoop.spark, table, confirm=True)
        told.append("could not be deleted" in str(caught.value))
    assert any(told)  # once rows had been copied before
    left = [path for path in hadoop.files() if magic(path) not in ENCRYPTED_MAGIC]
    assert {path.suffix for path in left} == {".parquet", ".avro"}  # something names what is left
    with verify_table(hadoop.spark, table, strays=True) as report:
        assert {path_of(problem.path) for problem in report.problems} == set(left)
    assert hadoop.ids(table) == [1, 2]
    done = decrypt_table(hadoop.spark, table, confirm=True)
    assert done.files == 2 and hadoop.ids(table) == [1, 2]


@contextmanager
def faulty_data(lake: Lake) -> Iterator[None]:
    """No data file can be deleted for a while."""
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.failDeletes(str(lake.folder / "t" / "data"), 1000)
    try:
        yield
    finally:
        storage.heal()


def test_a_job_that_fails_leaves_no_plaintext(hadoop: Lake) -> None:
    """One job copies six files, the last of which is damaged: all other tasks have ended, but for one perhaps."""
    table = hadoop.create()
    hadoop.run(
        f"INSERT INTO {table} SELECT id, concat('{MARKER}-', id), 'p' FROM range(0, 6, 1, 6)"
    )
    last = max(path for path in hadoop.files() if path.suffix == ".parquet")
    with (
        changed({last: flipped(last.read_bytes(), 40)}),
        pytest.raises(IcebergCryptoError, match="strays => true finds it"),
    ):
        decrypt_table(hadoop.spark, table, confirm=True)
    hadoop.await_tasks()
    left = hadoop.plaintext_files()
    assert len(left) <= 1, left  # of a task that ended at that moment
    assert hadoop.ids(table) == [*range(6)]


def commits_key_id(body: bytes) -> bool:
    return b'"updates"' in body and b'"encryption.key-id"' in body


@contextmanager
def proxied(lake: Lake, proxy: type[FaultProxy] = FaultProxy) -> Iterator[tuple[Lake, FaultProxy]]:
    """The lake by way of a proxy before its REST server."""
    if lake.kind != "rest":
        pytest.skip("only there a server answers")
    port = urlparse(lake.world.ours("rest")["uri"]).port
    assert port is not None
    started = proxy(port).start()
    try:
        yield lake.with_options({"uri": started.url}), started
    finally:
        started.stop()


@pytest.mark.catalogs("rest")
def test_a_commit_that_is_refused_leaves_nothing(lake: Lake) -> None:
    """The server takes the changed key id from nobody who has this login."""
    error = {"message": "no grant", "type": "ForbiddenException", "code": 403}
    forbidden: Any = ("status", 403, {}, json.dumps({"error": error}))
    lake.insert(lake.create(), [1, 2])
    plain = lake.create("plain", key=None)
    lake.sql(f"INSERT INTO {plain} VALUES (1, '{MARKER}', 'p')")
    with proxied(lake) as (through, proxy):
        proxy.rule = lambda _, body: forbidden if commits_key_id(body) else "pass"
        with (
            untouched(lake.folder),
            pytest.raises(IcebergCryptoError, match=r"cannot be decrypted: .*no grant") as caught,
        ):
            decrypt_table(lake.spark, through.table(), confirm=True)
        assert "The table is as it was." in caught.value.hint
        snapshots = set(lake.folder.glob("plain/metadata/snap-*"))
        with pytest.raises(IcebergCryptoError, match=r"its commit failed: .*no grant"):
            encrypt_table(lake.spark, through.table("plain"), "k1")
    assert set(lake.folder.glob("plain/metadata/snap-*")) == snapshots
    assert list(lake.folder.glob("plain/metadata/plaintext-*")) == []
    assert lake.ids(lake.table()) == [1, 2]
    assert encrypt_table(lake.spark, plain, "k1").copied_files == 0
    assert lake.ids(plain) == [1]


@pytest.mark.catalogs("rest")
def test_an_outage_right_after_the_commit_does_not_deny_it(lake: Lake) -> None:
    plain = lake.create("plain", key=None)
    lake.sql(f"INSERT INTO {plain} VALUES (1, '{MARKER}', 'p')")
    error = {"message": "out of order", "type": "InternalServerError", "code": 500}
    answer: Any = ("status", 500, {}, json.dumps({"error": error}))
    made = []

    def fails_then(request: str, body: bytes) -> Any:
        if commits_key_id(body):
            made.append(request)
        return answer if made and request.startswith("GET") else "pass"

    with proxied(lake) as (through, proxy):
        proxy.rule = fails_then
        with pytest.raises(IcebergCryptoError) as caught:
            encrypt_table(lake.spark, through.table("plain"), "k1")
    assert "was encrypted by this call" in caught.value.hint, str(caught.value)
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table("plain")) == [1]
    with verify_table(lake.spark, fresh.table("plain")) as report:
        assert report.ok, str(report)


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
@pytest.mark.since("Iceberg 1.11 loses the keys of deletion vectors", iceberg="1.12")
def test_encrypted_rows_that_another_client_adds_at_that_moment(lake: Lake) -> None:
    """The server takes them on a branch of their own. The next call decrypts them as well, as the hint says."""
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2])
    statements = [
        f"ALTER TABLE {table} CREATE BRANCH work",
        f"DELETE FROM {table}.branch_work WHERE id = 1",
    ]

    def interfere(_: str, body: bytes) -> Any:
        while statements and commits_key_id(body):
            lake.sql(statements.pop(0))
        return "pass"

    with proxied(lake) as (through, proxy):
        proxy.rule = interfere
        with pytest.raises(IcebergCryptoError, match="while the table was decrypted") as caught:
            decrypt_table(lake.spark, through.table(), confirm=True)
    assert "encryption.plaintext-files=allow" in caught.value.hint
    assert "delete the copy" not in caught.value.hint  # main has it
    other = lake.with_options({"encryption.plaintext-files": "allow"})
    assert other.ids(other.table()) == [1, 2]
    assert other.ids(other.table(), "VERSION AS OF 'work'") == [2]
    decrypt_table(lake.spark, other.table(), confirm=True)
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table()) == [1, 2]
    assert fresh.ids(fresh.table(), "VERSION AS OF 'work'") == [2]
    assert "encryption.key-id" not in fresh.properties(fresh.table())


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_an_outage_before_the_commit_leaves_no_plaintext(lake: Lake) -> None:
    lake.insert(lake.create(), [1, 2])
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    with proxied(lake) as (through, proxy):

        def go_down() -> None:
            storage.awaitHeld()
            proxy.mode = "down"
            storage.release()

        storage.hold(str(lake.folder / "t" / "data"), ".parquet", 1)
        thread = threading.Thread(target=go_down)
        thread.start()
        with (
            untouched(lake.folder),
            pytest.raises(IcebergCryptoError, match="cannot be decrypted") as caught,
        ):
            decrypt_table(lake.spark, through.table(), confirm=True)
        thread.join()
        assert proxy.mode == "down"
        assert "The table is as it was." in caught.value.hint
    assert lake.ids(lake.table()) == [1, 2]


def test_tags_of_one_snapshot_are_compared_once(hadoop: Lake) -> None:
    table = hadoop.insert(hadoop.create(), [1])
    [file] = [path for path in hadoop.files() if path.suffix == ".parquet"]
    for tag in ("a", "b", "c", "d"):
        hadoop.run(f"ALTER TABLE {table} CREATE TAG {tag}")
    jvm: Any = hadoop.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.holdOpened(str(file), ".parquet", 1000)
    decrypt_table(hadoop.spark, table, confirm=True)
    assert storage.counted() < 5, "when it is copied, and when it is compared"
    for tag in ("a", "d"):
        assert hadoop.ids(table, f"VERSION AS OF '{tag}'") == [1]


def test_a_copy_that_is_deleted_before_the_commit(hadoop: Lake) -> None:
    """While the rows of main are compared, another client deletes the copy of a tag's, which no table has."""
    table = hadoop.insert(hadoop.create(), [1])
    first = set(hadoop.files())
    hadoop.run(f"ALTER TABLE {table} CREATE TAG old")
    hadoop.run(f"INSERT OVERWRITE {table} VALUES (2, '{MARKER}-2', 'p')")
    second = next(path for path in set(hadoop.files()) - first if path.suffix == ".parquet")
    jvm: Any = hadoop.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    deleted = []

    def delete() -> None:
        storage.awaitHeld()  # the rows were copied
        storage.meet(second.name, 2)
        storage.release()
        ends = time.monotonic() + 60
        while not storage.met() and time.monotonic() < ends:
            time.sleep(0.01)
        for path in hadoop.plaintext_files():
            if path.suffix == ".parquet" and f"{MARKER}-1".encode() in path.read_bytes():
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink()
                deleted.append(path)
        path = jvm.org.apache.hadoop.fs.Path(str(second))
        path.getFileSystem(hadoop.spark.sparkContext._jsc.hadoopConfiguration()).open(path).close()

    storage.hold(str(hadoop.folder / "t" / "metadata"), ".avro", 3)  # after two manifests
    thread = threading.Thread(target=delete)
    thread.start()
    try:
        with untouched(hadoop.folder), pytest.raises(IcebergCryptoError, match="copy is gone"):
            decrypt_table(hadoop.spark, table, confirm=True)
    finally:
        thread.join()
        storage.meet("/", 0)
    assert len(deleted) == 1
    assert hadoop.ids(table) == [2] and hadoop.ids(table, "VERSION AS OF 'old'") == [1]


@pytest.mark.nightly
@pytest.mark.parametrize("renamed", [False, True], ids=["dropped", "renamed"])
def test_a_table_that_is_gone_before_the_commit_leaves_no_plaintext(
    lake: Lake, renamed: bool
) -> None:
    if lake.kind == "hadoop":
        pytest.skip("a table there is its folder")
    table = lake.insert(lake.create(), [1, 2])
    gone = f"ALTER TABLE {table} RENAME TO {lake.namespace}.u" if renamed else f"DROP TABLE {table}"
    other = lake.spark.newSession()
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem

    def be_gone() -> None:
        storage.awaitHeld()
        try:
            other.sql(gone)
        finally:
            storage.release()

    storage.hold(str(lake.folder / "t" / "data"), ".parquet", 1)
    thread = threading.Thread(target=be_gone)
    thread.start()
    with pytest.raises(TableNotFoundError):
        decrypt_table(lake.spark, table, confirm=True)
    thread.join()
    assert lake.plaintext_files() == []
    if renamed:
        assert lake.ids(lake.table("u")) == [1, 2]


class LosesAnswers(FaultProxy):
    """The server takes the commit without a key id, and nobody hears of it."""

    def ask(self, request: Any, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        answer = super().ask(request, body)
        lost = b'"remove-properties"' in body and b'"encryption.key-id"' in body
        return (502, [], b"") if lost else answer


@pytest.mark.catalogs("rest")
def test_a_commit_without_an_answer_is_found(lake: Lake) -> None:
    lake.insert(lake.create(), [1, 2])
    with proxied(lake, LosesAnswers) as (through, proxy):
        decrypt_table(lake.spark, through.table(), confirm=True)
        assert any(request.startswith("POST") for request in proxy.requests)
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table()) == [1, 2]
    with pytest.raises(NotEncryptedError):
        decrypt_table(lake.spark, fresh.table(), confirm=True)


class AnswersEarly(FaultProxy):
    """A gateway that answers a change of the key id by itself, before the server has made it."""

    late: Any = None
    body = b""

    def ask(self, request: Any, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.late is not None or not commits_key_id(body):
            return super().ask(request, body)
        headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
        self.late = SimpleNamespace(command="POST", path=request.path, headers=headers)
        self.body = body
        error = {"message": "out of tea", "type": "Teapot", "code": 418}
        return 418, [], json.dumps({"error": error}).encode()

    def arrive(self) -> None:
        assert super().ask(self.late, self.body)[0] == 200


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
@pytest.mark.parametrize("encrypts", [True, False], ids=["encrypt", "decrypt"])
def test_a_commit_that_is_made_late_keeps_its_files(lake: Lake, encrypts: bool) -> None:
    table = lake.create(key=None if encrypts else "k1")
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}', 'p'), (2, '{MARKER}', 'p')")
    with proxied(lake, AnswersEarly) as (through, proxy):
        with pytest.raises(IcebergCryptoError, match="may have made the commit"):
            if encrypts:
                encrypt_table(lake.spark, through.table(), "k1")
            else:
                decrypt_table(lake.spark, through.table(), confirm=True)
        proxy.arrive()  # type: ignore[attr-defined]
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table()) == [1, 2]
    with verify_table(lake.spark, fresh.table()) as report:
        assert report.ok == encrypts


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_plaintext_of_a_commit_that_did_not_arrive_is_named(lake: Lake) -> None:
    """Nobody knows whether it did: the copy is kept, and who is told where it is deletes it."""
    lake.insert(lake.create(), [1, 2])
    with proxied(lake) as (through, proxy):
        proxy.rule = lambda _, body: "refused" if commits_key_id(body) else "pass"
        with pytest.raises(IcebergCryptoError, match="commit may have been made") as caught:
            decrypt_table(lake.spark, through.table(), confirm=True)
    left = lake.plaintext_files()
    assert any(str(path) in caught.value.hint for path in left if path.suffix == ".parquet")
    with verify_table(lake.spark, lake.table(), strays=True) as report:
        assert {path_of(problem.path) for problem in report.problems} == set(left)
    for path in left:
        path.unlink()
    assert lake.ids(lake.table()) == [1, 2]
