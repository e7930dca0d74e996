"""decrypt_table: an encrypted table is made plaintext in place, if that is said."""

from collections.abc import Iterator
from contextlib import contextmanager
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


class LosesAnswers(FaultProxy):
    """The server takes the commit without a key id, and nobody hears of it."""

    def ask(self, request: Any, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        answer = super().ask(request, body)
        lost = b'"remove-properties"' in body and b'"encryption.key-id"' in body
        return (502, [], b"") if lost else answer


@pytest.mark.catalogs("rest")
def test_a_commit_without_an_answer_keeps_its_files(lake: Lake) -> None:
    if lake.kind != "rest":
        pytest.skip("only there a server answers")
    lake.insert(lake.create(), [1, 2])
    port = urlparse(lake.world.ours("rest")["uri"]).port
    assert port is not None
    proxy = LosesAnswers(port).start()
    try:
        through = lake.with_options({"uri": proxy.url})
        with pytest.raises(Exception, match="CommitStateUnknown"):
            decrypt_table(lake.spark, through.table(), confirm=True)
        assert any(request.startswith("POST") for request in proxy.requests)
    finally:
        proxy.stop()
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table()) == [1, 2]
    with pytest.raises(NotEncryptedError):
        decrypt_table(lake.spark, fresh.table(), confirm=True)
