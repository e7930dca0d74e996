"""Metadata that someone made to do harm: it is refused by an error that names the table, and costs little."""

import copy
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from harness.encrypted_tables import Writer
from harness.refused import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _avro_end, _document, open_table, verify_table
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


LONG, DEEP = "1" * 5000, "[" * 100_000 + "]" * 100_000
VALUES = (
    *("null", "-1", str(2**63), str(10**400), LONG, "1e999", "NaN", "true", "1.5", '""', '"x"'),
    *('"\\ud800"', '"\\u0000"', f'"{LONG}"', "[]", "{}", "[null]", "[{}]", '{"a": 1}'),
    *("[" * 500 + "]" * 500, DEEP, '{"a": 1, "a": 1}'),
)
GONE = ""
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> list[Place]:
    """Where all values of a JSON document are."""
    parts: Any = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    within = [one for name, part in parts for one in places(part, (*place, name))]
    return [place, *within] if place else within


def having(document: dict[str, Any], place: Place, value: str) -> bytes:
    """A document with another value at a place, or none."""
    changed: Any = copy.deepcopy(document)
    within = changed
    for part in place[:-1]:
        within = within[part]
    if value == GONE:
        del within[place[-1]]
    else:
        within[place[-1]] = "here"
    return json.dumps(changed).replace('"here"', value).encode()


def read_or_refused(victim: Writer, **properties: str) -> None:
    """What is not refused by an error that names the table is read, and verified."""
    options = {f"encryption.{name.replace('_', '-')}": told for name, told in properties.items()}
    given: Any = {"kms": victim.kms, "properties": options}
    try:
        open_table(victim.location, **given).scan().to_arrow()
        verify_table(victim.location, **given, all_snapshots=True)
    except errors.IcebergCryptoError as error:
        assert f"Table {victim.location}" in error.message
        assert error.hint


CASES = {
    "not text": b"\xff\xfe{}",
    "not an object": b"[]",
    "nothing": b"",
    "nothing in it": b"{}",
    "nested": b'{"a":' + DEEP.encode() + b"}",
    "two of one name": b'{"format-version": 3, "format-version": 3}',
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_metadata(victim: Writer, name: str) -> None:
    victim.metadata.write_bytes(CASES[name])
    refused(
        errors.IcebergCryptoError,
        lambda: open_table(victim.location, kms=victim.kms),
        f"Table {victim.location}: ",
        "is not the metadata of a table",
    )


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("snapshots",), "-1"),
        (("snapshots", 0, "snapshot-id"), GONE),
        (("snapshots", 0, "key-id"), "[{}]"),
        (("snapshots", 0, "timestamp-ms"), str(10**18)),
        (("snapshots", 0, "timestamp-ms"), GONE),
        (("properties", "encryption.key-id"), "[]"),
        (("properties", "encryption.metadata-mac"), "-1"),
        (("table-uuid",), '"\\ud800"'),
        (("format-version",), GONE),
        (("encryption-keys", 0, "properties", "KEY_TIMESTAMP"), f'"{LONG}"'),
        (("encryption-keys", 0, "encrypted-by-id"), '"\\ud800"'),
        (("refs", "main", "snapshot-id"), str(10**400)),
        (("last-updated-ms",), "NaN"),
    ],
)
def test_values_of_another_form(victim: Writer, place: Place, value: str) -> None:
    victim.metadata.write_bytes(having(victim.document, place, value))
    with pytest.raises(errors.IcebergCryptoError, match=f"Table {victim.location}"):
        open_table(victim.location, kms=victim.kms)  # if nothing else, the MAC differs
    read_or_refused(victim, metadata_authentication="off")


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_value_of_any_form(victim: Writer, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(places(victim.document)))
    value = data.draw(st.sampled_from([GONE, *VALUES]))
    victim.metadata.write_bytes(having(victim.document, place, value))
    read_or_refused(victim, metadata_authentication="off")
