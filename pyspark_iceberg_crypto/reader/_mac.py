"""The MAC of a table's metadata (docs/metadata-authentication.md), which catalogs with no more than a pointer need."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_iceberg_crypto.reader import _keys

PROPERTY = "encryption.metadata-mac"
METADATA_PATH = "write.metadata.path"
_LABEL = b"io.icebergcrypto table metadata authentication v3"
_SYNTAX = re.compile(r"v3\.hmac-sha256\.([0-9]{1,9})\.([0-9a-f]{64})\.(.+)", re.DOTALL)
_MEMBER = re.compile(rb'"encryption\.metadata-mac":"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ZEROS = b"0" * 64
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

    def matches(self, text: bytes, place: Place, key: bytes) -> bool:
        """Whether it is the MAC of a metadata file at a place, and in the file.

        Args:
            text: what the file holds, decompressed.
            place: where it is.
            key: that of `key`.
        """
        at = _digits(text, self.version)
        return (
            at is not None
            and text[at : at + 64] == self.mac.encode()
            and hmac.compare_digest(self.mac, _made(text, at, place, key))
        )

    def __str__(self) -> str:
        return f"v3.hmac-sha256.{self.version}.{self.mac}.{self.kek_id}"


def sign(text: bytes, place: Place, key: bytes, kek_id: str) -> bytes:
    """Put its MAC into a metadata file.

    Args:
        text: the document without white space, as Iceberg writes it, with any value of the property.
        place: where it will be.
        key: that of `key`.
        kek_id: the id of its KEK.
    """
    found = _MEMBER.search(text)
    if found is None:
        raise ValueError(f"it has no {PROPERTY}")
    unmade = json.dumps(str(Mac(place.version, _ZEROS.decode(), kek_id))).encode()[1:-1]
    unsigned = text[: found.start(1)] + unmade + text[found.end(1) :]
    at = found.start(1) + unmade.index(_ZEROS)
    return unsigned[:at] + _made(unsigned, at, place, key).encode() + unsigned[at + 64 :]


def _made(text: bytes, at: int, place: Place, key: bytes) -> str:
    folder = place.folder.encode()
    start = place.version.to_bytes(4, "big", signed=True) + len(folder).to_bytes(4, "big") + folder
    made = hmac.new(key, start, hashlib.sha256)
    for part in (text[:at], _ZEROS, text[at + 64 :]):
        made.update(part)
    return made.hexdigest()


def _digits(text: bytes, version: int) -> int | None:
    """Where the digits of a MAC are in a document; None if its first MAC is not of this form."""
    start = f"v3.hmac-sha256.{version}.".encode()
    found = _MEMBER.search(text)
    is_here = found is not None and found[1].startswith(start)
    return found.start(1) + len(start) if found is not None and is_here else None


def key(kek: bytes, table_uuid: str) -> bytes:
    """Derive the key of a table's MACs from a KEK."""
    return _keys.derived(kek, _LABEL, table_uuid, 256)


def folder(document: Mapping[str, Any]) -> str:
    """Return the folder of an authenticated table's metadata files, where the catalog keeps a pointer.

    It is in the property `write.metadata.path`, and below the folder that a user set there.
    """
    root = f"{document['location']}/metadata"
    path = document["properties"].get(METADATA_PATH)
    marked = _MARKED.fullmatch(path or "")
    if path and marked is None:
        root = path.rstrip("/")
    elif marked and marked[2] == document["table-uuid"]:
        root = marked[1]
    return f"{root}/authenticated-{document['table-uuid']}"


def folder_of_manifests(path: str, table_uuid: str, location: str) -> str:
    """Return where a table's manifests are, for a value of `write.metadata.path`, but no other table's folder."""
    marked = _MARKED.fullmatch(path)
    if marked is None:
        return path
    return marked[1] if marked[2] == table_uuid else f"{location}/metadata"


def without_anothers(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties of a new table without those that commits of another table made, as in a copy of all of its."""
    own = {name: value for name, value in properties.items() if name != PROPERTY}
    if _MARKED.fullmatch(own.get(METADATA_PATH, "")):
        del own[METADATA_PATH]
    return own


def table_of_folder(location: str) -> str | None:
    """Return the UUID of the table that a metadata file is of, by its folder; None if that does not say."""
    found = _MARKED.fullmatch(location)
    return found[2] if found and found[3] is not None else None
