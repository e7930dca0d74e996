"""A table that is refreshed while others use it, and files whose listed length is not theirs."""

import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness.encrypted_tables import Writer
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import decrypt_file, open_table
from pyspark_iceberg_crypto.reader._table import EncryptedTable

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


def test_threads_that_scan_beside_a_refresh(tmp_path: Path) -> None:
    """Each sees one of the states that there were, and later ones later; never the files of one with another's keys."""
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    writer.append([{"id": 0}])
    table = open_table(tmp_path / "t", kms=writer.kms)
    ended = threading.Event()

    def scans(_: int) -> list[int]:
        seen = []
        while not ended.is_set() or not seen:
            ids = table.scan().to_arrow()["id"].to_pylist()
            assert sorted(ids) == list(range(len(ids)))
            seen.append(len(ids))
        return seen

    with ThreadPoolExecutor(4) as threads:
        running = threads.map(scans, range(4))
        try:
            for i in range(1, 9):
                writer.append([{"id": i}])
                table.refresh()
        finally:
            ended.set()
        seen = list(running)
    assert all(one == sorted(one) for one in seen)
    assert len(table.scan().to_arrow()) == 9


@pytest.mark.parametrize(
    "look",
    [
        lambda table: table.scan().to_arrow(),
        lambda table: table.incremental_append_scan().to_arrow(),
        lambda table: table.inspect.files(),
    ],
    ids=["scan", "appends", "inspect"],
)
def test_a_refresh_between_metadata_and_keys(tmp_path: Path, look: Callable[[Any], Any]) -> None:
    """A snapshot that expired with its key by then is read with the keys of its metadata."""

    class Refreshed(EncryptedTable):
        @property
        def metadata(self) -> Any:
            found = vars(self)["metadata"]
            table._become(fresh)
            return found

    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    writer.append([{"id": 0}])
    table: Any = open_table(tmp_path / "t", kms=writer.kms)
    expired = writer.document["snapshots"][0]["key-id"]
    writer.append([{"id": 1}])
    for name in ("snapshots", "encryption-keys"):
        kept = [one for one in writer.document[name] if one["key-id"] != expired]
        writer.document[name] = kept
    writer.write()
    fresh = open_table(tmp_path / "t", kms=writer.kms)
    table.__class__ = Refreshed
    assert len(look(table)) == 1
    assert table.io is fresh.io


def test_a_refresh_that_finds_another_table(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    writer.append([{"id": 1}])
    table = open_table(tmp_path / "t", kms=writer.kms)
    shutil.move(tmp_path / "t", tmp_path / "gone")
    other = Writer(tmp_path / "t", SCHEMA, hadoop=True, kms=writer.kms)
    other.append([{"id": 2}])
    with pytest.raises(errors.NotSupportedError, match="was dropped or renamed since"):
        table.refresh()
    assert len(open_table(tmp_path / "t", kms=writer.kms).scan().to_arrow()) == 1


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("listed", ["stored", "content", "less", "more"])
def test_a_file_is_decrypted_if_its_listed_length_fits(
    tmp_path: Path, lengths: bool, listed: str
) -> None:
    """iceberg-rust lists the length of the content; any other one is refused, and nothing is written."""
    writer = Writer(tmp_path / "t", SCHEMA, form="avro", lengths=lengths)
    file = writer.file([{"id": 1}])
    content = file.length - 36
    file.length = {"stored": file.length, "content": content, "less": 9, "more": 10**15}[listed]
    writer.commit(file)
    target = tmp_path / "plain.avro"

    def decrypt() -> None:
        found = decrypt_file(
            file.path.as_uri(),
            target,
            writer.location,
            kms=writer.kms,
            properties={"encryption.files-without-length": "accept"},
        )
        assert found.length_checked

    if listed in ("stored", "content"):
        decrypt()
        assert len(target.read_bytes()) == content
        return
    with pytest.raises(errors.TamperedError, match=re.escape(file.path.as_uri())):
        decrypt()
    assert not target.exists()
