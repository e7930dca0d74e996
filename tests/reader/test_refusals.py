"""What the reader refuses: the attacks of tests/tamper on tables that a test writes.

Each error names table and file.
"""

from __future__ import annotations

import base64
import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from harness.encrypted_tables import File, OwnKms, Writer
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _ags1, _settings, open_table
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from reader.golden import Golden

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "note", StringType(), required=False),
)
ROWS = [{"id": i, "note": f"note {i}"} for i in range(100)]
NOISE = [{"id": i, "note": random.Random(i).randbytes(2048).hex()} for i in range(1500)]


@pytest.fixture
def victim(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    return writer


def read(writer: Writer, **properties: str) -> Any:
    given = {key.replace("_", "-"): value for key, value in properties.items()}
    options = {f"encryption.{key}": value for key, value in given.items()}
    return open_table(writer.location, kms=writer.kms, properties=options).scan().to_arrow()


def refused(
    writer: Writer, kind: type[Exception], path: Path, match: str | None = None, **p: str
) -> str:
    with pytest.raises(kind, match=match) as info:
        read(writer, **p)
    message = str(info.value)
    assert f"Table {writer.location}" in message
    assert path.as_uri() in message
    return message


def flip(at: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return change


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "a bit at the start": flip(10),
    "a bit in the middle": lambda data: flip(len(data) // 2)(data),
    "a bit of the footer or the last tag": lambda data: flip(len(data) - 12)(data),
    "cut inside": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-1],
    "cut to nothing": lambda _: b"",
    "a byte appended": lambda data: data + b"\0",
    "a block appended": lambda data: data + data[8:],
    "zeros": lambda data: data[:40] + bytes(40) + data[80:],
}


def files(writer: Writer) -> dict[str, Path]:
    manifest = next((writer.folder / "metadata").glob("*-m0.avro"))
    data = next(one for one in (writer.folder / "data").iterdir())
    return {"list": writer.list, "manifest": manifest, "data": data}


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_changed_bytes(tmp_path: Path, form: str) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, form=form)
    writer.append(ROWS)
    for path in files(writer).values():
        data = path.read_bytes()
        for name, attack in ATTACKS.items():
            path.write_bytes(attack(data))
            try:
                refused(writer, errors.TamperedError, path, "is not what was written")
            except pytest.fail.Exception:
                pytest.fail(f"{name} of {path} was not noticed")
        path.write_bytes(data)
    assert len(read(writer)) == len(ROWS)


def test_a_stream_that_is_cut_behind_a_block(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, form="avro")
    file = writer.append(NOISE)
    assert file.length > _ags1.stored_length(_ags1.BLOCK)
    data = file.path.read_bytes()
    file.path.write_bytes(data[: _ags1.stored_length(_ags1.BLOCK)])
    refused(writer, errors.TamperedError, file.path, "it was cut off")
    block = _ags1.BLOCK + _ags1.OVERHEAD
    file.path.write_bytes(data[:8] + data[8 + block :] + data[8 : 8 + block])
    refused(writer, errors.TamperedError, file.path)


def test_a_swapped_file(tmp_path: Path) -> None:
    writer, other = Writer(tmp_path / "t", SCHEMA), Writer(tmp_path / "o", SCHEMA)
    for one in (writer, other):
        one.append(ROWS)
    for name, path in files(writer).items():
        own = path.read_bytes()
        theirs = files(other)[name].read_bytes()
        for swapped in (theirs, (theirs + bytes(len(own)))[: len(own)]):
            path.write_bytes(swapped)
            refused(writer, errors.TamperedError, path)
        path.write_bytes(own)


def test_plaintext_in_place_of_a_file(victim: Writer) -> None:
    path = files(victim)["data"]
    length = path.stat().st_size
    pq.write_table(read(victim), path)
    refused(victim, errors.TamperedError, path)
    path.write_bytes(path.read_bytes()[:-4].ljust(length - 4, b"\0")[: length - 4] + b"PAR1")
    refused(victim, errors.PlaintextFoundError, path, "has a footer that is not encrypted")


def test_a_file_without_a_key(tmp_path: Path) -> None:
    for form in ("parquet", "avro"):
        writer = Writer(tmp_path / form, SCHEMA, form=form)
        writer.append(ROWS)
        file = writer.append([{"id": 1000, "note": None}], encrypted=False)
        refused(writer, errors.PlaintextFoundError, file.path, "the table has no key for it")
        assert len(read(writer, plaintext_files="allow")) == len(ROWS) + 1


def test_a_missing_file_is_no_accusation(victim: Writer) -> None:
    path = files(victim)["data"]
    path.unlink()
    message = refused(victim, errors.IcebergCryptoError, path, "could not be read")
    assert "Nothing indicates that the file was changed" in message


def test_pages_that_are_not_authenticated(victim: Writer) -> None:
    path = files(victim)["data"]
    data = path.read_bytes()
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    assert data[footer : footer + 2] == b"\x1c\x1c"
    path.write_bytes(data[: footer + 1] + b"\x2c" + data[footer + 2 :])  # AES_GCM_CTR_V1
    refused(victim, errors.NotSupportedError, path, "AES_GCM_CTR_V1 pages are not authenticated")


def test_the_block_length_of_a_header_is_bounded(victim: Writer) -> None:
    for size in (2**31, 2**32 - 1, 0, 1, (1 << 20) - 1):
        path = files(victim)["manifest"]
        data = path.read_bytes()
        path.write_bytes(data[:4] + struct.pack("<I", size) + data[8:])
        refused(victim, errors.NotSupportedError, path, f"its header gives blocks of {size} bytes")
        path.write_bytes(data)
    path.write_bytes(b"AGS2" + data[4:])
    refused(victim, errors.NotSupportedError, path, "a later version than AGS1")


def of_key(writer: Writer, key_metadata: bytes) -> File:
    """A file whose manifest has other key metadata."""
    file = writer.file(ROWS)
    file.key = key_metadata
    writer.commit(file)
    return file


@pytest.mark.parametrize(
    ("data", "kind", "match"),
    [
        (b"\1\x7e" + bytes(16), errors.IcebergCryptoError, "a length in it points past its end"),
        (b"\1\xfe\xff\xff\xff\x1f" + bytes(9), errors.IcebergCryptoError, "points past its end"),
        (b"\1\x20" + bytes(16), errors.IcebergCryptoError, "cut off"),
        (b"\1\x22" + bytes(17) + b"\0\0", errors.IcebergCryptoError, "a key of 17 bytes"),
        (b"\1\x20" + bytes(16) + b"\0\2\1", errors.IcebergCryptoError, "a negative length"),
        (b"\1\x20" + bytes(16) + b"\0\0\0", errors.IcebergCryptoError, "more bytes"),
        (b"\2\x20" + bytes(16) + b"\0\0", errors.NotSupportedError, "has version 2"),
        (b"", errors.IcebergCryptoError, "it has no version"),
    ],
)
def test_key_metadata_with_wrong_lengths(
    tmp_path: Path, data: bytes, kind: type[Exception], match: str
) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    file = of_key(writer, data)
    refused(writer, kind, file.path, match)


def edit(writer: Writer, change: Callable[[dict[str, Any]], Any], sign: bool = False) -> None:
    """Change the metadata in the storage."""
    document = json.loads(writer.metadata.read_text())
    change(document)
    if sign:
        writer.document = document
        writer.sign()
        document = writer.document
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    writer.metadata.write_text(text)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a location": (lambda m: m.update(location="file:/x"), "its MAC does not match"),
    "no keys": (lambda m: m.pop("encryption-keys"), "is not among the keys of 'k1'"),
    "no MAC": (lambda m: m["properties"].pop("encryption.metadata-mac"), "has no encryption.meta"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_metadata(victim: Writer, name: str) -> None:
    change, match = EDITS[name]
    edit(victim, change)
    assert "its metadata is refused" in refused(
        victim, errors.TamperedError, victim.metadata, match
    )


def test_keys_that_are_gone_or_of_another_list(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, signed=False)
    writer.append(ROWS)
    writer.append(ROWS)
    whole = writer.metadata.read_text()

    def read_unchecked(match: str) -> None:
        refused(writer, errors.TamperedError, writer.list, match, metadata_authentication="off")
        writer.metadata.write_text(whole)

    edit(writer, lambda m: m["encryption-keys"].pop())
    read_unchecked("which its snapshot names")
    edit(writer, lambda m: m["encryption-keys"].pop(0))
    read_unchecked("the metadata has no key kek")

    def exchange(m: dict[str, Any]) -> None:
        first, second = m["encryption-keys"][1:]
        second["encrypted-key-metadata"] = first["encrypted-key-metadata"]

    edit(writer, exchange)
    read_unchecked("it is another file|bytes were")

    def flip_sealed(m: dict[str, Any]) -> None:
        one = m["encryption-keys"][-1]
        data = base64.b64decode(one["encrypted-key-metadata"])
        one["encrypted-key-metadata"] = base64.b64encode(flip(20)(data)).decode()

    edit(writer, flip_sealed)
    read_unchecked("does not decrypt with KEK kek")
    edit(writer, lambda m: m["snapshots"][-1].pop("key-id"))
    with pytest.raises(errors.PlaintextFoundError, match="has no key for it"):
        read(writer, metadata_authentication="off")


def test_a_key_id_that_the_catalog_does_not_allow(victim: Writer) -> None:
    assert len(read(victim, allowed_key_ids="k*, other")) == len(ROWS)
    with pytest.raises(errors.AccessDeniedError, match="allows only k2"):
        read(victim, allowed_key_ids="k2")
    assert victim.kms.asked == ["k1"]  # of the first read


def test_an_entry_with_the_id_of_a_master_key_hides_none(victim: Writer) -> None:
    def hide(metadata: dict[str, Any]) -> None:
        [kek] = [one for one in metadata["encryption-keys"] if one["encrypted-by-id"] == "k1"]
        metadata["encryption-keys"].append({**kek, "key-id": "evil"})
        kek["encrypted-by-id"] = "evil"

    edit(victim, hide)
    with pytest.raises(errors.AccessDeniedError, match="is 'evil', and the catalog allows only k1"):
        read(victim, allowed_key_ids="k1", metadata_authentication="off")
    assert victim.kms.asked == []


def test_a_key_whose_kek_is_gone_names_no_master_key(victim: Writer) -> None:
    """Java's KeksTest has more of them."""

    def orphan(by: str) -> Callable[[dict[str, Any]], None]:
        def add(metadata: dict[str, Any]) -> None:
            sealed = metadata["encryption-keys"][0]["encrypted-key-metadata"]
            metadata["encryption-keys"].append(
                {"key-id": f"of {by}", "encrypted-key-metadata": sealed, "encrypted-by-id": by}
            )

        return add

    edit(victim, orphan("q83vASNFZ4mrze8BI0VniQ=="))
    options = {"allowed_key_ids": "k1", "metadata_authentication": "off"}
    assert len(read(victim, **options)) == len(ROWS)
    edit(victim, orphan("k0"))
    with pytest.raises(errors.AccessDeniedError, match="is 'k0', and the catalog allows only k1"):
        read(victim, **options)


def test_names_of_properties_have_no_case_and_are_known(victim: Writer) -> None:
    for properties, match in (
        ({"encryption.Allowed-Key-Ids": "k2"}, "allows only k2"),
        ({"encryption.plaintext-table": "refuse"}, "no property encryption.plaintext-table"),
        (
            {"encryption.Plaintext-Files": "allow", "encryption.plaintext-files": "refuse"},
            "twice, in different case",
        ),
    ):
        with pytest.raises(errors.IcebergCryptoError, match=match):
            open_table(victim.location, kms=victim.kms, properties=properties)


def test_the_properties_that_are_known_are_javas() -> None:
    """Java's table of properties, of which its catalogs accept these."""
    table = Path("jvm/core/src/main/resources/io/icebergcrypto/kms/config/properties.tsv")
    rows = (line.split("\t")[:2] for line in table.read_text().splitlines())
    javas = {name for section, name in rows if section in ("catalog", "rules")}
    of_encryption = {one for one in javas if re.match(r"encryption\.(?!kms)", one)}
    assert of_encryption == _settings._KNOWN


def test_the_version_of_the_hint_is_missing(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    for _ in range(3):
        writer.write()
    writer.metadata.unlink()
    with pytest.raises(errors.IcebergCryptoError, match="version 3, which version-hint.text names"):
        open_table(tmp_path / "t", kms=writer.kms)


def test_a_kek_that_another_kms_wrapped(tmp_path: Path) -> None:
    class Other(OwnKms):
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            return bytes(16)

    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    writer.kms = Other()
    with pytest.raises(errors.TamperedError, match=f"Table {writer.location}"):
        read(writer)


def test_files_without_lengths_of_other_writers(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, lengths=False)
    writer.append(ROWS)
    refused(writer, errors.NotSupportedError, writer.list, "its key metadata gives no length")
    assert len(read(writer, files_without_length="accept")) == len(ROWS)
    data = files(writer)["data"]
    whole = data.read_bytes()
    data.write_bytes(whole + b"\0")  # the manifest has its length
    refused(writer, errors.TamperedError, data, "appended", files_without_length="accept")
    data.write_bytes(whole)
    manifest = files(writer)["manifest"]
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-1])
    refused(writer, errors.TamperedError, manifest, "cut off", files_without_length="accept")


def test_what_a_list_says_of_a_length() -> None:
    file = ExpectedFile("t", "f")
    assert _ags1.listed_length(1000, 1000, file) == 1000
    assert _ags1.listed_length(1000, _ags1.stored_length(1000), file) == _ags1.stored_length(1000)
    for blocks in (1, 2):  # the content may be as long, and the file cut off behind a block
        whole = _ags1.stored_length(blocks * _ags1.BLOCK)
        assert _ags1.listed_length(whole, whole, file) is None
    for has in (999, 1001, 1035, 1037):
        with pytest.raises(errors.TamperedError, match="Table t: f is not what was written"):
            _ags1.listed_length(1000, has, file)


def test_avro_without_a_length_that_ends_behind_a_block(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, form="avro", lengths=False)
    file = writer.file(NOISE)
    file.length = 0  # its writer did not tell
    writer.commit(file)
    accept = {"files_without_length": "accept"}
    assert len(read(writer, **accept)) == len(NOISE)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[: _ags1.stored_length(_ags1.BLOCK)])
    refused(writer, errors.TamperedError, file.path, "in the middle of its content", **accept)


def test_what_one_tables_list_says_is_not_taken_for_another_tables(tmp_path: Path) -> None:
    """PyIceberg has one cache of manifests for all tables, by their names."""
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    read(writer)
    manifest = files(writer)["manifest"]
    other = Writer(tmp_path / "o", SCHEMA, kms=writer.kms)
    other.append(ROWS)
    listed = {**other.manifests[0], "manifest_path": manifest.as_uri()}
    other.manifests = [listed]
    other.append([{"id": 1, "note": None}])
    refused(other, errors.TamperedError, manifest, "is not what was written")


def test_pages_of_version_2_by_java_are_no_accusation(victim: Writer) -> None:
    """Its writer says so in the footer; Parquet's Java is not here to write the file."""
    file = victim.append(ROWS, version="2.0")
    assert len(read(victim)) == 2 * len(ROWS)
    assert file.key is not None
    key = KeyMetadata.decode(file.key, ExpectedFile("t", "f"))
    file.path.write_bytes(by_java(file.path.read_bytes(), key))
    refused(victim, errors.NotSupportedError, file.path, "parquet-mr.*page version 2")


def by_java(data: bytes, key: KeyMetadata) -> bytes:
    """The file with another name of its writer, and a page that does not decrypt."""
    start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    footer = data[start:-8]
    at = next(  # the module with the footer follows FileCryptoMetaData, whose length is not told
        at
        for at in range(8, 64)
        if struct.unpack("<I", footer[at : at + 4])[0] == len(footer) - at - 4
    )
    unique = footer[6:14] if len(footer[:at]) > 13 else b""
    nonce, sealed = footer[at + 4 : at + 16], footer[at + 16 :]
    for unique in (footer[i : i + 8] for i in range(at - 7)):
        aad = key.aad_prefix + unique + b"\0"
        try:
            plain = AESGCM(key.key).decrypt(nonce, sealed, aad)
            break
        except Exception:  # noqa: BLE001 (not the file's identifier)
            continue
    name = b"parquet-cpp-arrow version "
    plain = plain.replace(name, b"parquet-mr".ljust(len(name)))
    again = AESGCM(key.key).encrypt(nonce, plain, aad)
    return flip(60)(data[:start]) + footer[: at + 4] + nonce + again + data[-8:]


def test_golden_metadata_that_was_edited(tmp_path: Path) -> None:
    golden = Golden.unpacked("hadoop", tmp_path)
    assert isinstance(golden.opened(), Table)
    path = golden.local(golden.location)
    older = path.with_name("v9.gz.metadata.json").read_bytes()
    path.write_bytes(older)
    with pytest.raises(
        errors.TamperedError, match="version 9 of it was put in place of version 10"
    ):
        golden.opened()
    path.write_bytes(older[:100])
    with pytest.raises(errors.IcebergCryptoError, match="cannot be decompressed"):
        golden.opened()
