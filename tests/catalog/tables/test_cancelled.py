"""Calls that are cancelled end, whatever others commit meanwhile, and commit nothing."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from harness.files import ENCRYPTED_MAGIC, MARKER, magic
from harness.lake import Lake

from pyspark_iceberg_crypto import CancelledError, decrypt_table, encrypt_table, verify_table

pytestmark = pytest.mark.slow


@contextmanager
def begun(lake: Lake, first: Callable[[], object], then: Callable[[], object]) -> Iterator[None]:
    """Does something as soon as a file is copied, and something else from then on, while Spark is at work."""
    known = {path for path in lake.files() if path.suffix == ".parquet"}
    done = threading.Event()

    def wait() -> None:
        tracker = lake.spark.sparkContext.statusTracker()
        while not done.wait(0.002):
            new = {path for path in lake.files() if path.suffix == ".parquet"} - known
            if new and tracker.getActiveJobsIds():
                first()
                break
        while not done.wait(0.002):
            then()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def table_of(lake: Lake, key: str | None, files: int) -> str:
    table = lake.create(key=key)
    for i in range(files):
        lake.sql(f"INSERT INTO {table} VALUES ({i}, '{MARKER}-{i}', 'p')")
        lake.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket({i + 2}, id) AS b{i}")
    return table


def key_of(lake: Lake, table: str) -> str | None:
    rows = lake.sql(f"SHOW TBLPROPERTIES {table}")
    return next((row.value for row in rows if row.key == "encryption.key-id"), None)


def test_a_cancelled_job_is_no_lost_race(hadoop: Lake) -> None:
    """Another commit comes first, so that what fails then could be the files of an expired snapshot."""
    table = table_of(hadoop, None, 6)

    def overtaken() -> None:
        hadoop.sql(f"INSERT INTO {table} VALUES (9, '{MARKER}', 'p')")

    cancel = hadoop.spark.sparkContext.cancelAllJobs
    with begun(hadoop, overtaken, cancel), pytest.raises(CancelledError, match="Job .* cancelled"):
        encrypt_table(hadoop.spark, table, "k1")
    assert key_of(hadoop, table) is None
    assert encrypt_table(hadoop.spark, table, "k1").rows == 7
    assert hadoop.ids(table) == [*range(6), 9]
    with verify_table(hadoop.spark, table, depth="deep") as report:
        assert report.ok, str(report)


def test_ctrl_c_ends_the_call_in_the_jvm(hadoop: Lake) -> None:
    """Python does not wait for it any more, and PySpark cancels only the jobs of that moment."""
    table = table_of(hadoop, None, 9)
    interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    with begun(hadoop, interrupt, lambda: None), pytest.raises(KeyboardInterrupt):
        encrypt_table(hadoop.spark, table, "k1")
    at_once = set(hadoop.files())
    time.sleep(2)
    assert key_of(hadoop, table) is None
    later = {path for path in set(hadoop.files()) - at_once if path.suffix == ".parquet"}
    assert len(later) < 4  # of tasks that were at it; there are more files than that to copy
    assert encrypt_table(hadoop.spark, table, "k1").rows == 9
    assert hadoop.ids(table) == list(range(9))


def test_decrypting_tells_of_plaintext_that_is_left(hadoop: Lake) -> None:
    table = table_of(hadoop, "k1", 4)
    before = set(hadoop.files())
    cancel = hadoop.spark.sparkContext.cancelAllJobs
    with (
        begun(hadoop, cancel, cancel),
        pytest.raises(CancelledError, match="strays => true finds it"),
    ):
        decrypt_table(hadoop.spark, table, allow_plaintext=True)
    assert key_of(hadoop, table) == "k1"
    left = set(hadoop.files()) - before
    plain = [p for p in left if p.suffix == ".parquet" and magic(p) not in ENCRYPTED_MAGIC]
    assert len(plain) < 2  # of all groups but the last one it is deleted
    with verify_table(hadoop.spark, table, strays=True) as report:
        assert report.ok == (not plain), str(report)
    assert decrypt_table(hadoop.spark, table, allow_plaintext=True).files == 4
    assert hadoop.ids(table) == list(range(4))
