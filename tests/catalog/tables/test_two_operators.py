"""Two operators call the same operation at the same time: nothing is lost, and both are told what became of it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from harness.files import ENCRYPTED_MAGIC, MARKER, magic, path_of
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    IcebergCryptoError,
    NotEncryptedError,
    decrypt_table,
    encrypt_table,
    purge_plaintext,
    reencrypt_table,
    verify_table,
)

pytestmark = pytest.mark.nightly


def table_of_three(lake: Lake, key: str | None) -> str:
    table = lake.create(key=key, format__version="3")
    for i in range(3):
        lake.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ {i}L, '{MARKER}', 'p'")
    return table


def at_once(work: Callable[[], Any]) -> tuple[list[Any], list[Exception]]:
    """What two threads have done, and their errors."""
    done: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 (it is looked at below)
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(error, IcebergCryptoError) for error in errors), errors
    return done, errors


def assert_proved(lake: Lake, table: str) -> None:
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [0, 1, 2]
    with verify_table(lake.spark, table, deep=True, all_snapshots=True) as report:
        assert report.problem_count == 0, str(report)


def test_encrypt_table(lake: Lake) -> None:
    table = table_of_three(lake, None)
    with lake.configured("spark.iceberg-crypto.encrypt.files-per-group", "1"):
        [done], [error] = at_once(lambda: encrypt_table(lake.spark, table, "k1"))
    assert done.committed and "is already encrypted, with key 'k1'" in str(error)
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [0, 1, 2]
    with verify_table(lake.spark, table, deep=True) as report:
        assert report.ok, str(report)
    purge_plaintext(lake.spark, table)
    with verify_table(lake.spark, table, deep=True, strays=True) as report:
        assert report.ok, str(report)
    assert list((lake.folder / "t" / "metadata").glob("_encryption-*/*")) == []


def test_decrypt_table(lake: Lake) -> None:
    """The copy of the one who comes second is deleted."""
    table = table_of_three(lake, "k1")
    done, errors = at_once(lambda: decrypt_table(lake.spark, table, confirm=True))
    assert len(done) == 1 and done[0].files == 3, (done, errors)
    assert isinstance(errors[0], NotEncryptedError), str(errors[0])
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [0, 1, 2]
    used = {path_of(row.file_path) for row in lake.sql(f"SELECT file_path FROM {table}.files")}
    data = {path for path in lake.files() if path.suffix == ".parquet"}
    assert {path for path in data if magic(path) not in ENCRYPTED_MAGIC} == used


def test_reencrypt_table(lake: Lake) -> None:
    """Iceberg refuses the commit of the one who comes second, or lets it rewrite what the first one wrote."""
    table = table_of_three(lake, "k1")
    before = {path for path in lake.files() if path.suffix == ".parquet"}
    done, errors = at_once(lambda: reencrypt_table(lake.spark, table))
    assert done and all(one.ok for one in done)
    assert all(table in str(error) for error in errors), errors
    used = {path_of(row.file_path) for row in lake.sql(f"SELECT file_path FROM {table}.files")}
    assert not used & before
    assert_proved(lake, table)
