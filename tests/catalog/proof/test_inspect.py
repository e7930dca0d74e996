"""inspect_file with and without a JVM, and with keys, on what another implementation and this catalog wrote."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from harness import hostile
from harness.files import MARKER, change, flipped, secret_file
from harness.lake import Lake
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    ConfigurationError,
    FileKey,
    NotSupportedError,
    PlaintextFoundError,
    TamperedError,
    inspect_file,
)
from pyspark_iceberg_crypto.verbs.inspection import inspect_local

ROUNDS = int(os.environ.get("ICEBERG_CRYPTO_FUZZ", "2000")) // 8


def told(spark: SparkSession | None, path: Path) -> Any:
    try:
        found = inspect_local(str(path)) if spark is None else inspect_file(spark, str(path))
        return {**found.to_dict(), "path": str(path)}
    except TamperedError as error:
        return error.message.replace(f"file:{path}", str(path)), error.hint


@pytest.mark.nightly
def test_python_and_java_agree(spark: SparkSession, tmp_path: Path) -> None:
    """On whole files of other writers, on hostile ones, and on those at the limits: the same facts, the same words."""
    path = tmp_path / "f"
    valid = hostile.vectors()
    files = [*valid, *hostile.at_the_limits()]
    for number in range(len(files) + ROUNDS):
        seed = hostile.SEED + number - len(files)
        path.write_bytes(files[number] if number < len(files) else hostile.file(seed, valid))
        java, python = told(spark, path), told(None, path)
        assert python == java, f"file {number}, seed {seed}: {path.read_bytes()[:5000].hex()}"


def test_every_file_with_the_key_of_its_table(lake: Lake, tmp_path: Path) -> None:
    lake = lake.with_options({"encryption.statistics": "encrypt"})
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), range(3))
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    lake.call("compute_table_stats")
    lake.call("expire_snapshots", arguments="older_than => TIMESTAMP '2999-01-01 00:00:00'")
    starts = set()
    for number, path in enumerate(lake.files()):
        found = inspect_file(lake.spark, str(path), table=table)
        assert found.tags_checked and found.length_checked, path
        if found.magic == "AGS1":
            target = tmp_path / str(number)
            again = inspect_file(lake.spark, str(path), table=table, decrypt_to=str(target))
            assert again.decrypted_to == str(target)
            assert target.stat().st_size == found.plaintext_length
            assert stat.S_IMODE(target.stat().st_mode) == 0o600
            starts.add(target.read_bytes()[:4])
    assert starts == {b"Obj\1", b"PFA1"}


def test_a_file_that_is_not_what_was_written(hadoop: Lake, tmp_path: Path) -> None:
    table = hadoop.insert(hadoop.create(), [1])
    hadoop.insert(hadoop.create("other"), [1])
    parquet, manifest = (one(hadoop, suffix) for suffix in ("*.parquet", "*-m0.avro"))
    target = tmp_path / "out"
    for victim, elsewhere in (
        (parquet, one(hadoop, "*.parquet", "other")),
        (manifest, one(hadoop, "*-m0.avro", "other")),
    ):
        whole = victim.read_bytes()
        bad = (flipped(whole, len(whole) // 3), whole[:-1])
        attacks = [(content, TamperedError) for content in bad]
        attacks += [(elsewhere.read_bytes(), TamperedError), (b"PAR1..PAR1", PlaintextFoundError)]
        for content, error in attacks:
            change(victim, content)
            with pytest.raises(error) as caught:
                inspect_file(hadoop.spark, str(victim), table=table, decrypt_to=str(target))
            assert victim.name in caught.value.message
            assert caught.value.hint
        change(victim, whole)
    assert not target.exists()
    with pytest.raises(NotSupportedError, match="is not decrypted into a file"):
        inspect_file(hadoop.spark, str(parquet), table=table, decrypt_to=str(target))
    with pytest.raises(ConfigurationError, match="no snapshot of it reaches"):
        inspect_file(hadoop.spark, str(one(hadoop, "*.parquet", "other")), table=table)
    assert not target.exists()
    assert MARKER not in str(inspect_file(hadoop.spark, str(parquet), table=table))


@pytest.mark.nightly
def test_a_manifest_that_cannot_be_read(hadoop: Lake) -> None:
    """It hides no file of another one; but nobody says that there is no such file."""
    table = hadoop.create()
    for number in range(3):
        hadoop.insert(table, [number])
    hadoop.insert(hadoop.create("other"), [1])
    oldest_first = sorted(hadoop.files(), key=lambda path: path.stat().st_mtime_ns)
    first = next(path for path in oldest_first if path.suffix == ".parquet")
    newest = [path for path in oldest_first if path.match("*-m0.avro")][-1]
    change(newest, flipped(newest.read_bytes(), 100))
    assert inspect_file(hadoop.spark, str(first), table=table).tags_checked
    with pytest.raises(TamperedError, match=newest.name):
        inspect_file(hadoop.spark, str(one(hadoop, "*.parquet", "other")), table=table)


def one(lake: Lake, pattern: str, table: str = "t") -> Path:
    (found,) = (path for path in lake.files(table) if path.match(pattern))
    return found


def test_a_key_from_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """What iceberg-rust wrote, with the keys of tests/vectors/README.md."""
    secret = secret_file(tmp_path / "dek", "5bb3b37709a50a8ea8b7165034f77a77\n")
    prefix = "f726dcbf98e79dcedf353a0904104294"
    key = FileKey(file=str(secret), aad_prefix=prefix)
    path, target = str(hostile.VECTORS / "iceberg-rust-manifest-list.avro"), tmp_path / "out"
    found = inspect_file(spark, path, key=key, decrypt_to=str(target))
    assert (found.tags_checked, found.length_checked) == (True, False)
    assert (target.read_bytes()[:4], target.stat().st_size) == (b"Obj\1", 1532)
    with pytest.raises(ConfigurationError, match="is not overwritten"):
        inspect_file(spark, path, key=key, decrypt_to=str(target))
    with pytest.raises(TamperedError, match="block 0 of 1"):
        inspect_file(spark, path, key=FileKey(file=str(secret), aad_prefix="00" * 16))
    for bad, says in (("no hex", "The DEK is not in hex"), ("00", "or not of 16, 24 or 32 bytes")):
        secret.write_text(bad)
        with pytest.raises(ConfigurationError, match=says) as caught:
            inspect_file(spark, path, key=key)
        assert bad not in caught.value.message.replace("not in hex", "")
    with pytest.raises(ConfigurationError, match="Neither key_env nor key_file"):
        inspect_file(spark, path, key=FileKey())
    secret.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others"):
        inspect_file(spark, path, key=key)
