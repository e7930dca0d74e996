"""Tables that this project's Java wrote, read in each of their states; and a file that iceberg-rust wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _ags1
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._manifests import EncryptedDataFile
from reader.golden import KINDS, VECTORS, Golden


@pytest.mark.parametrize("kind", KINDS)
def test_each_state_of_a_golden_table(tmp_path: Path, kind: str) -> None:
    golden = Golden.unpacked(kind, tmp_path)
    table, answers = golden.opened(), golden.answers

    def rows(scan: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = scan.to_arrow().sort_by("id").to_pylist()
        assert scan.count() == len(found)
        return found

    assert rows(table.scan()) == answers["rows"]
    for name in ("first", "work"):
        assert rows(table.scan().use_ref(name)) == answers[name]
    for snapshot, expected in answers["snapshots"].items():
        assert rows(table.scan(snapshot_id=int(snapshot))) == expected
    filtered = [one for one in answers["rows"] if one["part"] == "q" and one["id"] > 3]
    assert rows(table.scan("part = 'q' and id > 3")) == filtered
    assert len(table.inspect.entries()) > len(table.inspect.files()) > 0


def test_a_manifest_list_of_iceberg_rust() -> None:
    key = KeyMetadata(
        bytes.fromhex("5bb3b37709a50a8ea8b7165034f77a77"),
        bytes.fromhex("f726dcbf98e79dcedf353a0904104294"),
        None,
    )
    with (VECTORS / "iceberg-rust-manifest-list.avro").open("rb") as stored:
        length = len(stored.read())
        stream = _ags1.DecryptedStream(stored, key, ExpectedFile("t", "list", length))
        digest = hashlib.sha256(stream.read()).hexdigest()
    assert digest == "0e5275412c60ba163e9510f2c3faad8411f9472bfe429de9827255ae7539cfab"


@pytest.mark.parametrize("path", sorted((VECTORS / "made_rust").glob("*.ags1")), ids=str)
def test_streams_of_iceberg_rust(path: Path) -> None:
    bits, size = (int(part) for part in path.stem[1:].split("_"))
    key = KeyMetadata(bytes(range(bits)), bytes(range(0xA0, 0xB0)), None)
    file = ExpectedFile("t", str(path), path.stat().st_size)
    with path.open("rb") as stored:
        plaintext = _ags1.DecryptedStream(stored, key, file).read()
    assert plaintext == bytes((i * 31 + (i >> 11)) & 255 for i in range(size))


def test_a_deletion_vector_is_where_its_manifest_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Puffin file may have vectors of other data files, and those that others have replaced."""
    table = Golden.unpacked("hadoop", tmp_path).opened()
    stock = EncryptedDataFile.vector.fget
    assert stock is not None

    def listed(change: Callable[[str, int, int], tuple[str, int, int]]) -> None:
        def vector(file: EncryptedDataFile) -> tuple[str, int, int] | None:
            told = stock(file)
            return None if told is None else change(*told)

        monkeypatch.setattr(EncryptedDataFile, "vector", property(vector))

    with_deletes = table.scan().to_arrow().num_rows
    listed(lambda path, offset, length: (f"{path}.another", offset, length))
    assert table.scan().to_arrow().num_rows > with_deletes
    listed(lambda path, offset, length: (path, offset + 1, length))
    with pytest.raises(errors.TamperedError, match="no deletion vector where its manifest says"):
        table.scan().to_arrow()
