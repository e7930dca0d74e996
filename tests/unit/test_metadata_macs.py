"""The canonical form and the MAC of metadata as docs/metadata-authentication.md describes them, in another language.

Nothing here is shared with the Java code that wrote the vectors (`CanonicalFormTest`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[1] / "vectors" / "metadata-macs.json"
VECTORS = json.loads(FILE.read_text(encoding="ascii"))
LABEL = b"io.icebergcrypto table metadata authentication v2"
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def read(text: str) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("two members have one name")
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    document = json.loads(
        text,
        object_pairs_hook=members,
        parse_int=Number,
        parse_float=Number,
        parse_constant=no_constant,
    )
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    return document


def depth(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, children), default=0) if isinstance(value, dict | list) else 0


def quoted(text: str) -> str:
    def escaped(one: str) -> str:
        if one in SHORT:
            return SHORT[one]
        return f"\\u{ord(one):04x}" if one < " " or one in "\u2028\u2029" else one

    return '"' + "".join(map(escaped, text)) + '"'


def utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def canonical(value: Any) -> str:
    if isinstance(value, dict):
        names = sorted(value, key=utf16)
        return "{" + ",".join(f"{quoted(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    return "null" if value is None else str(value).lower()


def signed(document: dict[str, Any], file: str) -> bytes:
    if depth(document) > 201:
        raise ValueError("it is nested too deeply")
    properties = document.get("properties")
    if isinstance(properties, dict):
        properties.pop("encryption.metadata-mac", None)
    folder, name = file.rsplit("/", 1)
    folder = re.sub(r"^(?:hdfs|viewfs)://[^/]*", "", folder)
    folder = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:", "", folder)
    place = {
        "file-version": Number(version(name)),
        "folder": re.sub(r"^/+", "/", folder),
        "metadata": document,
    }
    return canonical(place).encode()


def version(name: str) -> int:
    found = re.match(r"(\d{1,9})-|v(\d{1,9})\.", name)
    assert found is not None
    return int(found[1] or found[2])


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda one: one["what"])
def test_vector(vector: dict[str, str]) -> None:
    content = signed(read(vector["document"]), vector["file"])
    assert content.decode() == vector["canonical"]
    kek = bytes.fromhex(vector["kek"])
    context = vector["table-uuid"].encode()
    key = hmac.digest(kek, b"\0\0\0\1" + LABEL + b"\0" + context + b"\0\0\1\0", "sha256")
    mac = hmac.new(key, content, hashlib.sha256).hexdigest()
    number = version(vector["file"].rsplit("/", 1)[1])
    assert vector["value"] == f"{VECTORS['format']}.{number}.{mac}.kek"


@pytest.mark.parametrize("document", VECTORS["refused"])
def test_refused(document: str) -> None:
    with pytest.raises(ValueError):  # and UnicodeEncodeError, of half a surrogate pair
        signed(read(document), "/t/v1.json")


def test_the_vectors_have_what_is_easily_done_otherwise() -> None:
    documents = " ".join(vector["canonical"] for vector in VECTORS["vectors"])
    for what in ("\\u0000", "\\u001f", "\\b", "\\u2028", "\x7f", "\U0001d11e", "1E2", "-0.0", "{}"):
        assert what in documents
    [names] = [one for one in VECTORS["vectors"] if one["what"].startswith("names by UTF-16")]
    order = list(json.loads(names["canonical"])["metadata"])
    assert order == sorted(order, key=utf16) != sorted(order)
