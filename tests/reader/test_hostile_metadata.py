"""Metadata that someone made to do harm: it is refused by an error that names the table, and costs little."""

import gzip
import io
from pathlib import Path

import pytest
from harness.encrypted_tables import Writer
from harness.refused import refused
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _avro_end, _document, open_table
from pyspark_iceberg_crypto.reader._expected import ExpectedFile

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


@pytest.fixture
def victim(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append([{"id": 1}])
    return writer


def test_a_metadata_file_that_would_fill_the_memory(
    victim: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = victim.metadata.read_bytes()
    with victim.metadata.open("wb") as file:
        file.truncate(10 << 30)  # a sparse one
    bomb = victim.metadata.with_name("00002-bomb.gz.metadata.json")
    bomb.write_bytes(gzip.compress(whole) + gzip.compress(bytes(2 << 20)))  # two members

    def load(path: Path, words: str) -> None:
        refused(
            errors.IcebergCryptoError,
            lambda: open_table(path, kms=victim.kms),
            f"Table {path}: ",
            words,
        )

    load(victim.metadata, "is not read: it holds more than 512 MiB")
    load(bomb, "is not the metadata of a table")
    monkeypatch.setattr(_document, "MOST", 1 << 20)
    load(bomb, "is not read: it holds more than 1 MiB")
    victim.metadata.write_bytes(whole)
    assert len(open_table(victim.metadata, kms=victim.kms).scan().to_arrow()) == 1


@pytest.mark.parametrize(
    "number", [b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 99]
)
def test_an_avro_header_of_huge_counts_and_lengths(number: bytes) -> None:
    """It is looked at no longer than it is."""
    for header in (number, b"\x02" + number, b"\x01\x02" + number):
        stream: io.RawIOBase = io.BytesIO(b"Obj\x01" + header + bytes(range(50)))  # type: ignore[assignment]
        with pytest.raises(errors.TamperedError, match="Table t: f "):
            _avro_end.check(stream, ExpectedFile("t", "f"))
