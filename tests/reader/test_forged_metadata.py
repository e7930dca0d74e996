"""The attacks on metadata of tests/tamper, without Spark: docs/tamper.md says what notices each.

A SQL catalog with MACs has the column of JDBC; without them, what is read is what a REST server would pass on.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from harness.encrypted_tables import OwnKms, Writer
from harness.files import changed
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from tamper.documented import table_of_document
from tamper.metadata_attacks import METADATA_ATTACKS, PLAINTEXT, STRIPPED, Finds

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _keys, _load, open_table
from reader import metastore

SCHEMA = Schema(*(NestedField(i, f"c{i}", LongType(), required=False) for i in (1, 2, 3)))
DOCUMENTED = table_of_document("attack on metadata")
Rows = list[dict[str, Any]]

# What an error says, by which it is told what noticed the attack; the first that fits.
NOTICED = {
    "hash": ("its hash differs", "and the Hive metastore has"),
    "wrapped key": ("cannot be used: ", "could not unwrap"),
    "MAC": (
        "MAC",
        "put in place of version",
        "genuine, but of the table",
        "than the file's folder",
    ),
    "key id": ("encryption.key-id is gone",),
    "list key": ("which its snapshot names", "does not decrypt with KEK"),
    "refused": ("it has no encryption.key-id, and the catalog has",),
    "no key": ("the table has no key for it",),
    "header": ("does not start with AGS1", "it was cut off", "bytes were appended"),
    "file is gone": ("could not be read", "which version-hint.text names, is missing"),
}


class Theirs(OwnKms):
    """An attacker's, whose master key has the same name."""

    @staticmethod
    def _cipher(key_id: str) -> AESGCM:
        return AESGCM(hashlib.sha256(b"theirs" + key_id.encode()).digest())


def rows(start: int) -> Rows:
    return [{"c1": i, "c2": 2 * i, "c3": 3 * i} for i in range(start, start + 3)]


def table(folder: Path, first: int, kind: str, kms: OwnKms, key_id: str | None = "k1") -> Writer:
    writer = Writer(
        folder, SCHEMA, kms=kms, hadoop=kind == "hadoop", signed=kind != "rest", key_id=key_id
    )
    for entry in writer.document["encryption-keys"]:
        entry["key-id"] = writer.kek_id = f"kek-{first}"
        entry["properties"]["KEY_CHECK_VALUE"] = _keys.check_value(writer.kek)
    for i in range(3):
        if kind == "jdbc" and key_id is not None:
            authenticated(writer)
        writer.append(rows(first + 10 * i))
    return writer


def authenticated(writer: Writer) -> None:
    """Have metadata files in the folder that says whose they are."""
    folder = writer.folder / "metadata" / f"authenticated-{writer.document['table-uuid']}"
    if not folder.exists():
        folder.mkdir()
        writer.document["properties"]["write.metadata.path"] = folder.as_uri()
        writer.metadata_folder = folder


class Victim:
    """A table, what an attacker finds, and the rows of the states that it had."""

    def __init__(self, folder: Path, kind: str) -> None:
        kms = OwnKms()
        self.kind = kind
        self.writer = writer = table(folder / "t", 0, kind, kms)
        other = table(folder / "o", 1000, kind, kms)
        own = table(folder / "own", 2000, kind, Theirs())
        plain = table(folder / "plain", 3000, kind, kms, None)
        manifests = [
            Path(one.manifests[0]["manifest_path"].removeprefix("file://"))
            for one in (writer, plain)
        ]
        before = sorted(writer.metadata.parent.glob("*.metadata.json"))[-2]
        self.finds = Finds(
            writer.metadata,
            writer.metadata.read_bytes(),
            before.read_bytes(),
            other.metadata.read_bytes(),
            own.metadata.read_bytes(),
            plain.metadata.read_bytes(),
            manifests[0],
            manifests[1].read_bytes(),
        )
        self.states = {
            "right rows": [*rows(0), *rows(10), *rows(20)],
            "other rows": [*rows(1000), *rows(1010), *rows(1020)],
            "plaintext rows": [*rows(3000), *rows(3010), *rows(3020)],
            "no rows": [],
        }
        self.read = self._opener()

    def _opener(self) -> Callable[..., Any]:
        writer, named = self.writer, "db.t"
        if self.kind == "hadoop":
            return lambda **more: open_table(writer.folder, kms=writer.kms, properties=more)
        catalog: Catalog
        if self.kind == "hive":
            catalog, _ = metastore.hive(metastore.entry(writer))
        else:
            catalog = InMemoryCatalog("lake", uri="sqlite://")
            catalog.create_namespace("db")
            catalog.register_table(named, writer.location)
        off = {"encryption.metadata-authentication": "off"} if self.kind == "rest" else {}
        return lambda **more: open_table(catalog, named, kms=writer.kms, properties={**off, **more})

    def outcome(self, **properties: str) -> str:
        """What a scan gives, or what notices that it must give nothing."""
        try:
            found = self.read(**properties).scan().to_arrow().to_pylist()
        except errors.IcebergCryptoError as error:
            assert error.message.startswith("Table ")
            assert error.hint
            for noticed, phrases in NOTICED.items():
                if any(phrase in error.message for phrase in phrases):
                    return noticed
            return error.message
        found.sort(key=lambda row: min(row.values()))
        for state, expected in self.states.items():
            if found == expected:
                return state
        is_old = found in (rows(0), [*rows(0), *rows(10)])
        return "old rows" if is_old else "other columns"


@pytest.mark.parametrize(
    ("kind", "column"),
    [("hive", "Hive"), ("rest", "REST"), ("jdbc", "JDBC"), ("hadoop", "Hadoop")],
)
def test_attacks_on_metadata(
    tmp_path: Path, kind: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_load, "_LOOK_AGAIN_S", ())
    victim = Victim(tmp_path, kind)
    assert victim.outcome() == "right rows"
    problems = []
    for attack, make in METADATA_ATTACKS.items():
        with changed(make(victim.finds)):
            outcome = victim.outcome()
            refuses = {"encryption.plaintext-tables": "refuse"}
            if attack in (STRIPPED, PLAINTEXT) and outcome in ("no rows", "plaintext rows"):
                assert victim.outcome(**refuses) == "refused"
        expected = DOCUMENTED[attack, column]
        if "MAC" in expected:  # what its check says of a key id that is gone is the same
            expected = {*expected, "key id"}
        if "length" in expected:
            expected = {*expected, "header"}
        if outcome not in expected:
            problems.append(f"{attack}: {outcome}, but docs/tamper.md says {expected}")
    assert not problems, f"{len(problems)} attacks:\n" + "\n".join(problems)
    assert victim.outcome() == "right rows"
    assert json.loads(victim.finds.text)["table-uuid"] == victim.writer.document["table-uuid"]
