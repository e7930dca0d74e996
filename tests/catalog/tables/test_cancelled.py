"""Calls that are cancelled end, whatever others commit meanwhile, and commit nothing."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness.files import ENCRYPTED_MAGIC, MARKER, magic
from harness.lake import Lake

from pyspark_iceberg_crypto import CancelledError, decrypt_table, encrypt_table, verify_table

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture
def in_turn(hadoop: Lake) -> Iterator[Lake]:
    """Groups of files are copied one after another, so that it is known which one a file belongs to."""
    with hadoop.configured("spark.iceberg-crypto.encrypt.groups-at-once", "1"):
        yield hadoop


@contextmanager
def held(
    lake: Lake,
    number: int,
    then: Callable[[], object],
    whole: bool = False,
    files: tuple[str, str] = ("data", ".parquet"),
) -> Iterator[list[int]]:
    """Does something while the copy of a table creates a file of this number, which waits until the block ends.

    Args:
        lake: where the table t is.
        number: which of its data files, from 1.
        then: what is done.
        whole: whether that file is written first, and nothing that its task is told stops it then.
        files: the folder of these files, and how their names end.

    Yields:
        a list that has, after the block, how many files the copy has begun, then and later.
    """
    context: Any = lake.spark.sparkContext
    storage = context._jvm.io.icebergcrypto.testing.NoChmodFileSystem
    hold = storage.holdWhole if whole else storage.hold
    hold(str(lake.folder / "t" / files[0]), files[1], number)
    thread = threading.Thread(target=lambda: storage.awaitHeld() and then())
    thread.start()
    begun: list[int] = []
    try:
        yield begun
    finally:
        storage.release()
        thread.join()
        lake.await_tasks()
        begun.append(storage.counted())


def table_of(lake: Lake, key: str | None, files: int) -> str:
    table = lake.create(key=key)
    for i in range(files):
        lake.sql(f"INSERT INTO {table} VALUES ({i}, '{MARKER}-{i}', 'p')")
        lake.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket({i + 2}, id) AS b{i}")
    return table


def test_a_cancelled_job_is_no_lost_race(in_turn: Lake) -> None:
    """Another commit comes first, so that what fails then could be the files of an expired snapshot."""
    table = table_of(in_turn, None, 6)

    def overtaken() -> None:
        in_turn.sql(f"INSERT INTO {table} VALUES (9, '{MARKER}', 'p')")

        in_turn.spark.sparkContext.cancelAllJobs()

    with (
        held(in_turn, 3, overtaken) as begun,
        pytest.raises(CancelledError, match="Job .* cancelled"),
    ):
        encrypt_table(in_turn.spark, table, "k1")
    assert begun == [4]  # with the other commit's file
    assert in_turn.properties(table).get("encryption.key-id") is None
    assert encrypt_table(in_turn.spark, table, "k1").copied_files == 7 - 2
    assert in_turn.ids(table) == [*range(6), 9]
    with verify_table(in_turn.spark, table, deep=True) as report:
        assert report.ok, str(report)


def test_groups_that_are_copied_side_by_side_end_together(hadoop: Lake) -> None:
    table = table_of(hadoop, None, 6)
    with (
        held(hadoop, 3, hadoop.spark.sparkContext.cancelAllJobs) as begun,
        pytest.raises(CancelledError, match="Job .* cancelled"),
    ):
        encrypt_table(hadoop.spark, table, "k1")
    assert begun[0] in (3, 4), "one of the other group, and none after the cancel"
    with (
        held(hadoop, 2, lambda: os.kill(os.getpid(), signal.SIGINT)) as begun,
        pytest.raises(KeyboardInterrupt),
    ):
        encrypt_table(hadoop.spark, table, "k1")
    assert begun[0] in (2, 3)
    assert hadoop.properties(table).get("encryption.key-id") is None
    encrypt_table(hadoop.spark, table, "k1")
    assert hadoop.ids(table) == list(range(6))
    with verify_table(hadoop.spark, table, deep=True) as report:
        assert report.ok, str(report)


def test_plaintext_that_no_manifest_lists_yet_is_deleted(hadoop: Lake) -> None:
    table = table_of(hadoop, "k1", 2)
    before = set(hadoop.files())
    interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    with (
        held(hadoop, 1, interrupt, files=("metadata", "-m0.avro")) as begun,
        pytest.raises(KeyboardInterrupt),
    ):
        decrypt_table(hadoop.spark, table, confirm=True)
    assert begun == [1]
    assert {path for path in set(hadoop.files()) - before if path.suffix == ".parquet"} == set()
    assert hadoop.ids(table) == [0, 1]


@pytest.mark.parametrize("key", [None, "k1"], ids=["encrypt", "decrypt"])
def test_a_job_group_is_cancelled_as_a_whole(hadoop: Lake, key: str | None) -> None:
    """Threads that copy groups of files have the caller's job group: no job of it writes on."""
    table = table_of(hadoop, key, 4)
    before, context = set(hadoop.files()), hadoop.spark.sparkContext
    context.setJobGroup("a statement", "of a server's user")
    try:
        with (
            held(hadoop, 2, lambda: context.cancelJobGroup("a statement")) as begun,
            pytest.raises(CancelledError, match="Job .* cancelled"),
        ):
            if key:
                decrypt_table(hadoop.spark, table, confirm=True)
            else:
                encrypt_table(hadoop.spark, table, "k1")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    assert begun[0] == 2 or (begun[0] == 3 and not key), "one of the other group"
    assert hadoop.properties(table).get("encryption.key-id") == key
    assert hadoop.ids(table) == list(range(4))
    if key:
        assert {path for path in set(hadoop.files()) - before if path.suffix == ".parquet"} == set()


def test_ctrl_c_ends_the_call_in_the_jvm(in_turn: Lake) -> None:
    """It has ended when Python goes on: PySpark cancels only the jobs of that moment."""
    table = table_of(in_turn, None, 9)
    interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    with held(in_turn, 3, interrupt) as begun:
        with pytest.raises(KeyboardInterrupt):
            encrypt_table(in_turn.spark, table, "k1")
        java: Any = in_turn.spark
        api = java._jvm.io.icebergcrypto.python.PythonApi
        assert api.cancel(java._jsparkSession) == 0, "no call is under way"
    assert begun == [3]
    assert in_turn.properties(table).get("encryption.key-id") is None
    assert encrypt_table(in_turn.spark, table, "k1").copied_files == 9 - 2
    assert in_turn.ids(table) == list(range(9))


@pytest.mark.parametrize("whole", [False, True], ids=["begun", "ended"])
def test_decrypting_tells_of_plaintext_that_is_left(in_turn: Lake, whole: bool) -> None:
    """A task that is at work deletes its file; that of one which ended at that moment is left."""
    table = table_of(in_turn, "k1", 4)
    before = set(in_turn.files())
    cancel = in_turn.spark.sparkContext.cancelAllJobs
    with (
        held(in_turn, 3, cancel, whole),
        pytest.raises(CancelledError, match="strays => true finds it"),
    ):
        decrypt_table(in_turn.spark, table, confirm=True)
    assert in_turn.properties(table).get("encryption.key-id") == "k1"
    left = set(in_turn.files()) - before
    plain = [p for p in left if p.suffix == ".parquet" and magic(p) not in ENCRYPTED_MAGIC]
    assert len(plain) == whole, plain
    with verify_table(in_turn.spark, table, strays=True) as report:
        assert report.ok == (not whole), str(report)
        found = [(problem.code, problem.path) for problem in report.problems]
        assert found == [("plaintext", str(path)) for path in plain]
    assert decrypt_table(in_turn.spark, table, confirm=True).files == 4
    assert in_turn.ids(table) == list(range(4))
