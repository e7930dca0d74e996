"""The MAC of metadata as docs/metadata-authentication.md describes it, in another language.

Nothing here is shared with the Java code that wrote the vectors (`MacVectorsTest`).
"""

from __future__ import annotations

import hmac
import json
import re
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "vectors" / "metadata-macs.json"
VECTORS = json.loads(FILE.read_text(encoding="ascii"))
LABEL = b"io.icebergcrypto table metadata authentication v3"
MEMBER = b'"encryption.metadata-mac":"'


def place(file: str) -> bytes:
    folder, name = file.rsplit("/", 1)
    folder = re.sub(r"^(?:hdfs|viewfs)://[^/]*", "", folder)
    folder = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:", "", folder)
    encoded = re.sub(r"^/+", "/", folder).encode()
    return version(name).to_bytes(4, "big") + len(encoded).to_bytes(4, "big") + encoded


def version(name: str) -> int:
    found = re.match(r"(\d{1,9})-|v(\d{1,9})\.", name)
    assert found is not None
    return int(found[1] or found[2])


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda one: one["what"])
def test_vector(vector: dict[str, str]) -> None:
    signed = vector["signed"].encode()
    value = json.loads(signed)["properties"]["encryption.metadata-mac"]
    prefix = f"{VECTORS['format']}.{version(vector['file'].rsplit('/', 1)[1])}."
    assert value.startswith(prefix) and value.endswith(".kek")
    at = signed.index(MEMBER) + len(MEMBER) + len(prefix)
    assert signed[at : at + 64].decode() == value[len(prefix) :][:64]
    content = place(vector["file"]) + signed[:at] + b"0" * 64 + signed[at + 64 :]
    kek, context = bytes.fromhex(vector["kek"]), vector["table-uuid"].encode()
    key = hmac.digest(kek, b"\0\0\0\1" + LABEL + b"\0" + context + b"\0\0\1\0", "sha256")
    assert hmac.digest(key, content, "sha256").hex() == value[len(prefix) :][:64]


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda one: one["what"])
def test_nothing_but_the_mac_was_changed(vector: dict[str, str]) -> None:
    signed, before = (json.loads(vector[which]) for which in ("signed", "document"))
    for document in (signed, before):
        del document["properties"]["encryption.metadata-mac"]
    assert signed == before
