"""The MAC of a table's metadata (docs/metadata-authentication.md), which catalogs with no more than a pointer need."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Any

from pyspark_iceberg_crypto.reader import _document, _keys

PROPERTY = "encryption.metadata-mac"
_LABEL = b"io.icebergcrypto table metadata authentication v2"
_SYNTAX = re.compile(r"v2\.hmac-sha256\.([0-9]{1,9})\.([0-9a-f]{64})\.(.+)", re.DOTALL)
_METASTORE = re.compile(r"([0-9]{1,9})-.*", re.DOTALL)
_HADOOP = re.compile(r"v([0-9]{1,9})\..*", re.DOTALL)
_MARKED = re.compile(r"(.*)/authenticated-([0-9a-fA-F-]{36})(/[^/]*)?", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where a metadata file is, as far as the catalog's pointer shows.

    Attributes:
        folder: without what clients write in several ways: the scheme, and the server of HDFS.
        version: the number in the file's name; -1 if it has none.
    """

    folder: str
    version: int

    @classmethod
    def of(cls, location: str) -> Place:
        """Return the place of a metadata file."""
        folder, _, name = location.rpartition("/")
        found = _METASTORE.fullmatch(name) or _HADOOP.fullmatch(name)
        folder = re.sub("^(?:hdfs|viewfs)://[^/]*", "", folder)
        folder = re.sub("^[A-Za-z][A-Za-z0-9+.-]*:", "", folder)
        return cls(re.sub("^/+", "/", folder), int(found[1]) if found else -1)


@dataclass(frozen=True)
class Mac:
    """A MAC as the table property has it.

    Attributes:
        version: the number in the name of the metadata file that it was made for.
        mac: 64 hexadecimal digits.
        kek_id: the id of the KEK that its key is derived from.
    """

    version: int
    mac: str
    kek_id: str

    @classmethod
    def parse(cls, value: str | None) -> Mac | None:
        """Read the property; None if it is not one."""
        found = _SYNTAX.fullmatch(value or "")
        return cls(int(found[1]), found[2], found[3]) if found else None

    @classmethod
    def of(cls, document: dict[str, Any], place: Place, key: bytes, kek_id: str) -> Mac:
        """Make the MAC of a document at a place.

        Args:
            document: as `_document.strict` read it, with another MAC or none.
            place: where it is, or will be.
            key: that of `key`.
            kek_id: the id of its KEK.

        Raises:
            ValueError: it has text that is not Unicode.
        """
        properties = document.get("properties")
        if isinstance(properties, dict):
            others = {name: value for name, value in properties.items() if name != PROPERTY}
            document = {**document, "properties": others}
        signed = {
            "file-version": _document.Number(place.version),
            "folder": place.folder,
            "metadata": document,
        }
        data = _document.canonical(signed).encode()
        return cls(place.version, hmac.new(key, data, hashlib.sha256).hexdigest(), kek_id)

    def matches(self, document: dict[str, Any], place: Place, key: bytes) -> bool:
        """Whether it is the MAC of a document at a place."""
        return hmac.compare_digest(self.mac, Mac.of(document, place, key, self.kek_id).mac)

    def __str__(self) -> str:
        return f"v2.hmac-sha256.{self.version}.{self.mac}.{self.kek_id}"


def key(kek: bytes, table_uuid: str) -> bytes:
    """Derive the key of a table's MACs from a KEK."""
    return _keys.derived(kek, _LABEL, table_uuid, 256)


def table_of_folder(location: str) -> str | None:
    """Return the UUID of the table that a metadata file is of, by its folder; None if that does not say."""
    found = _MARKED.fullmatch(location)
    return found[2] if found and found[3] is not None else None
