"""Metadata that someone made to do harm: it is refused by an error that names the table, and costs little."""

import copy
import dataclasses
import gzip
import io
import json
import os
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from harness.encrypted_tables import _LIST, Writer, _avro_bytes
from harness.refused import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import (
    _ags1,
    _avro_end,
    _bounded_avro,
    _document,
    _keys,
    open_table,
    verify_table,
)
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import _number
from pyspark_iceberg_crypto.reader.proof._named import Named
from pyspark_iceberg_crypto.reader.proof._tree import Tree

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


def avro(value: bytes, length: int) -> bytes:
    """A manifest list of one manifest, whose path says that it is so long."""
    fields = [("manifest_length", 501, "long"), ("manifest_path", 500, "string")]
    return _avro_of(fields, b"\x0a" + _number(length) + value)


def _avro_of(fields: list[tuple[str, int, Any]], record: bytes) -> bytes:
    """A file of one record, not compressed."""

    def part(content: bytes) -> bytes:
        return _number(len(content)) + content

    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": name, "field-id": id_, "type": kind} for name, id_, kind in fields],
    }
    head = part(b"avro.schema") + part(json.dumps(schema).encode())
    head += part(b"avro.codec") + part(b"null")
    return b"Obj\x01\x04" + head + b"\0" + bytes(16) + b"\x02" + part(record) + bytes(16)


@pytest.mark.parametrize("over", [1, 100, 70_000, 1 << 30, 1 << 62])
def test_a_plaintext_manifest_list_whose_lengths_lead_beyond_it(victim: Writer, over: int) -> None:
    """What lies behind it in memory is nobody's path: not in a proof, and not where plaintext is read."""
    old = victim.metadata
    evil = victim.metadata_folder / "evil.avro"
    start = evil.as_uri().encode()
    evil.write_bytes(avro(start, len(start)))
    told = Named("manifest list", evil.as_uri(), "avro", -1, None, True)
    tree = Tree("t", PyArrowFileIO(), None)  # type: ignore[arg-type]
    assert [(one.path, one.length) for one in tree.manifests(told)] == [(evil.as_uri(), 5)]
    whole = evil.read_bytes()
    header = whole.index(bytes(17)) + 17
    for cut in range(len(whole)):
        evil.write_bytes(whole[:cut])
        with nullcontext() if cut == header else pytest.raises(ValueError):
            assert not tree.manifests(told)
    evil.write_bytes(avro(start, len(start) + over))
    with pytest.raises(ValueError, match=r"it says that \d+ bytes follow"):
        tree.manifests(told)

    keys = open_table(victim.metadata, kms=victim.kms).io.keys
    keyed = Tree("t", PyArrowFileIO(), keys)
    allowed = {"encryption.plaintext-files": "allow"}
    with pytest.MonkeyPatch.context() as patch:  # below what is authenticated it would only be slow
        patch.setattr(_bounded_avro, "BoundedAvroFile", None)
        key_id = victim.document["snapshots"][-1]["key-id"]
        told = Named("manifest list", victim.list.as_uri(), "avro", -1, key_id, False)
        (manifest,) = keyed.manifests(told)
        (file,) = keyed.files(manifest)
        table = open_table(victim.metadata, kms=victim.kms, properties=allowed)
        assert len(table.scan().to_arrow()) == 1
        of_plaintext = dataclasses.replace(manifest, authentic=False)
        with pytest.raises(TypeError, match="NoneType"):
            keyed.files(of_plaintext)
    assert keyed.files(of_plaintext) == [file]

    document = json.loads(old.read_text())
    forged = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": evil.as_uri()}
    old.write_text(json.dumps({**document, "snapshots": [forged], "refs": {}}))
    victim.document["metadata-log"] = [{"metadata-file": old.as_uri(), "timestamp-ms": 1}]
    victim.append([{"id": 2}])
    (found,) = verify_table(victim.location, kms=victim.kms, all_snapshots=True).problems
    assert (found.path, found.code) == (evil.as_uri(), "plaintext")

    evil.write_bytes(_avro_bytes(_LIST, victim.manifests, {})[:-1])
    listed = victim.document["snapshots"][-1]
    del listed["key-id"]
    listed["manifest-list"] = evil.as_uri()
    victim.write()
    table = open_table(victim.location, kms=victim.kms, properties=allowed)
    refused(
        errors.IcebergCryptoError,
        lambda: table.scan().to_arrow(),
        f"Table {victim.location}: {evil.as_uri()} could not be read: it says that 16 bytes follow where it has 15",
    )


@pytest.mark.parametrize("older", [True, False], ids=["older metadata", "RSA"])
def test_a_manifest_list_with_a_key_of_anyone(victim: Writer, older: bool) -> None:
    """Anyone may have wrapped the KEK: that the key fits does not say who wrote the list."""
    kek, evil = os.urandom(16), victim.metadata_folder / "evil.avro"
    key = victim._ags1(evil, _avro_bytes(_LIST, victim.manifests, {})[:-1])
    wrapped = _keys.EncryptedKey("evil", victim.kms.wrap_key(kek, "k1"), "k1", {})
    sealed = _keys.EncryptedKey("list", _keys.seal(kek, wrapped, key), "evil", {})
    document = copy.deepcopy(victim.document)
    document["snapshots"][0] |= {"key-id": "list", "manifest-list": evil.as_uri()}
    document["encryption-keys"] += [wrapped.json(), sealed.json()]
    given: Any = {"kms": victim.kms, "properties": {"encryption.metadata-authentication": "off"}}
    if older:
        victim.metadata.write_text(json.dumps(document))
        victim.document["metadata-log"] = [{"metadata-file": victim.location, "timestamp-ms": 1}]
        victim.append([{"id": 2}])
        assert len(open_table(victim.location, **given).scan().to_arrow()) == 2
    else:
        victim.kms.authentic = False
        victim.document = document
        table = open_table(victim.write(), **given)
        with pytest.raises(errors.IcebergCryptoError, match="it says that 16 bytes follow"):
            table.scan().to_arrow()
    (found,) = verify_table(victim.location, **given, all_snapshots=True).problems
    assert found.path == evil.as_uri() and "it says that 16 bytes follow" in str(found)


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "record", "name": "r", "fields": []},
        {"type": "record", "name": "r", "fields": [{"name": "x", "field-id": 3, "type": "null"}]},
    ],
)
def test_an_array_of_elements_without_bytes(items: Any, tmp_path: Path) -> None:
    """Its count would be believed, and fill the memory."""
    path = tmp_path / "evil.avro"
    array = {"type": "array", "element-id": 2, "items": items}
    path.write_bytes(_avro_of([("path", 500, array)], _number(1 << 20) + _number(0)))
    tree = Tree("t", PyArrowFileIO(), None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="an array of nothing"):
        tree.manifests(Named("manifest list", path.as_uri(), "avro", -1, None, True))


@pytest.mark.parametrize(
    "member",
    [
        *(
            f'"statistics": [{{"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": {length}}}]'
            for length in ("1e999", "[" * 100_000 + "]" * 100_000)
        ),
        *(
            f'"encryption-keys": {keys}'
            for keys in (
                "1",
                '[{"key-id": "k"}]',
                '[{"key-id": "k", "encrypted-key-metadata": "!"}]',
            )
        ),
    ],
    ids=["infinite", "deep", "no list", "no key", "no base64"],
)
def test_an_older_metadata_file_that_is_none(victim: Writer, member: str) -> None:
    old = victim.metadata
    victim.document["metadata-log"] = [{"metadata-file": old.as_uri(), "timestamp-ms": 1}]
    victim.append([{"id": 2}])
    old.write_text(old.read_text()[:-1] + f", {member}}}")
    (found,) = verify_table(victim.location, kms=victim.kms, all_snapshots=True).problems
    assert (found.path, found.code) == (old.as_uri(), "tampered")


@pytest.mark.parametrize("depth", [{}, {"structure": True}, {"deep": True}])
def test_a_manifest_without_a_length_that_was_cut_off(
    tmp_path: Path, depth: dict[str, Any]
) -> None:
    """At the end of a block, where its tags are right."""
    writer = Writer(tmp_path / "t", SCHEMA, lengths=False)
    file = writer.file([{"id": 1}])
    file.bounds = {1: (random.Random(1).randbytes(_ags1.BLOCK), b"")}
    writer.commit(file)
    path = next(writer.metadata_folder.glob("*-m0.avro"))
    rules = {"encryption.files-without-length": "accept"}
    assert verify_table(writer.location, kms=writer.kms, properties=rules, **depth).ok
    path.write_bytes(path.read_bytes()[: _ags1.stored_length(_ags1.BLOCK)])
    (found,) = verify_table(writer.location, kms=writer.kms, properties=rules, **depth).problems
    assert (found.path, found.code) == (path.as_uri(), "truncated")


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
