"""What a metadata file holds; strict JSON (RFC 8259), and the canonical form of which reports are signed.

docs/verification.md describes that form.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from pyspark_iceberg_crypto.errors import IcebergCryptoError

MOST = 512 << 20
"""How many bytes a metadata file may have, as it is stored and decompressed: more than any of Iceberg has."""
_AT_ONCE = 1 << 20
_DEEPEST = 201
_YEAR_10000 = 253_402_300_800_000  # in milliseconds since the epoch; Python's times end before it
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Number(str):
    """A number as it was written, which JSON's readers and writers change."""

    __slots__ = ()


def require_length(location: str, length: int) -> None:
    """Refuse a metadata file that would fill the memory, before it is read.

    Args:
        location: the file's.
        length: its bytes.

    Raises:
        IcebergCryptoError: it has more than `MOST`.
    """
    if length > MOST:
        raise IcebergCryptoError(
            f"{location} is not read: it holds more than {MOST >> 20} MiB",
            "No metadata of a table is so long: find out who wrote the file. If it is the table's, expire snapshots in "
            "Spark.",
        )


def text(location: str, stored: bytes) -> bytes:
    """Return the JSON of a metadata file.

    Args:
        location: the file's; its name says whether it is compressed.
        stored: its bytes.

    Raises:
        IcebergCryptoError: it cannot be decompressed, or holds more than `MOST`.
    """
    name = location.rsplit("/", 1)[-1]
    if not name.endswith((".gz.metadata.json", ".metadata.json.gz")):
        return stored
    held = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as file:
            while part := file.read(_AT_ONCE):
                require_length(location, held.tell() + len(part))
                held.write(part)
    except (OSError, EOFError, zlib.error) as error:
        raise IcebergCryptoError(
            f"{location} cannot be decompressed: {error}",
            "A read that ended early looks the same as a file that was cut off: load the table again. If that does not "
            "help, compare the file with a backup or an object version of the same name.",
        ) from error
    return held.getvalue()


def metadata(data: bytes) -> dict[str, Any]:
    """Read a table's metadata, and check the form of what is used of it before PyIceberg has checked the whole.

    Raises:
        ValueError: it is not metadata: not JSON, not of this form, with one name twice, or text that has no UTF-8.
        RecursionError: it nests too deeply.
    """
    document = json.loads(
        data.decode("utf-8-sig"), object_pairs_hook=_members, parse_constant=_no_constant
    )
    if _SURROGATE.search(data):
        json.dumps(document, ensure_ascii=False).encode()
    return formed(document)


def formed(document: Any) -> dict[str, Any]:
    """Return a table's metadata, as `metadata` does, if it is of the form that is checked there.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    properties, snapshots = document.get("properties") or {}, document.get("snapshots") or []
    refs = document.get("refs") or {}
    if not (
        isinstance(properties, dict)
        and all(isinstance(value, str) for value in properties.values())
        and isinstance(snapshots, list)
        and all(map(_is_snapshot, snapshots))
        and isinstance(refs, dict)
        and all(map(_is_ref, refs.values()))
        and isinstance(document.get("current-snapshot-id"), int | None)
        and "current_snapshot_id" not in document  # which PyIceberg would take
        and isinstance(document.get("last-updated-ms", 0), int)
        and all(isinstance(document.get(name, ""), str) for name in ("location", "table-uuid"))
    ):
        raise ValueError("its properties, snapshots or branches are not as they should be")
    return document


def contradiction(document: Mapping[str, Any]) -> str | None:
    """Say which snapshot a table's metadata names and does not list; None: it lists all of them.

    A current snapshot of -1 means that the table has no snapshot.
    """
    listed = {one["snapshot-id"] for one in document.get("snapshots") or []}
    refs, current = document.get("refs") or {}, document.get("current-snapshot-id")
    named = {f"{one['type']} '{name}'": one["snapshot-id"] for name, one in refs.items()}
    if current is not None and current != -1:
        named["the current snapshot"] = current
    for name, one in named.items():
        if one not in listed:
            return f"{name} is {one}, which is not among its snapshots"
    main = refs.get("main", {}).get("snapshot-id", current)
    if main != current:
        return f"branch 'main' is {main}, and the current snapshot is {current}"
    return None


def _is_ref(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("snapshot-id"), int)
        and isinstance(value.get("type"), str)
    )


def _is_snapshot(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("snapshot-id"), int)
        and isinstance(value.get("key-id"), str | None)
        and isinstance(value.get("timestamp-ms"), int)
        and 0 <= value["timestamp-ms"] < _YEAR_10000
    )


def strict(data: bytes) -> dict[str, Any]:
    """Read a document for its MAC, with numbers as they are written.

    Raises:
        ValueError: it is not strict JSON, not an object, has one name twice, or nests too deeply: it has no MAC.
    """
    document = json.loads(
        data.decode("utf-8-sig"),
        object_pairs_hook=_members,
        parse_int=Number,
        parse_float=Number,
        parse_constant=_no_constant,
    )
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    if _depth(document) > _DEEPEST:
        raise ValueError("it is nested too deeply")
    return document


def canonical(value: Any) -> str:
    """Return the canonical form of what `strict` read."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Number):
        return str(value)
    written = json.dumps(value, ensure_ascii=False)
    return written.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("two members have one name")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list)
        ]
    return deepest
