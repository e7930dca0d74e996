"""Encrypted Parquet files made module by module: what no writer at hand makes, or only a broken or hostile one.

It writes Thrift and AADs by itself, from parquet.thrift and the Parquet encryption spec.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reader.parquet_files import KEY, PREFIX, File

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
FOOTER, DATA, DICTIONARY, DATA_HEADER, DICTIONARY_HEADER = 0, 2, 3, 4, 5
COLUMN_INDEX, OFFSET_INDEX, BLOOM_HEADER, BLOOM_BITSET = 6, 7, 8, 9
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
UNIQUE = b"a file's"

Fields = Sequence[tuple[int, int, Any]]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def struct(fields: Fields) -> bytes:
    """Number, type and value of each field; a boolean is its type: 1 true, 2 false."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([kind | (number - last) << 4]) + encoded(kind, value)
        last = number
    return out + b"\0"


def encoded(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind == STRUCT:
        return struct(value)
    if kind == LIST:
        of, values = value
        assert len(values) < 15
        return bytes([of | len(values) << 4]) + b"".join(encoded(of, one) for one in values)
    return varint(len(value)) + value if kind == BINARY else zigzag(value)


def page_header(kind: int, length: int, levels: tuple[int, int] = (0, 0)) -> bytes:
    fields: list[tuple[int, int, Any]] = [(1, I32, kind), (2, I32, length), (3, I32, length)]
    if kind == DATA_PAGE_V2:
        of_v2 = [(n, I32, 1) for n in range(1, 5)]
        fields.append((8, STRUCT, [*of_v2, (5, I32, levels[0]), (6, I32, levels[1])]))
    return struct(fields)


@dataclass
class Forger:
    """Writes modules one after another, and then a footer that says where columns are."""

    key: bytes = KEY
    prefix: bytes = PREFIX
    data: bytes = b"PARE"
    chunks: list[list[tuple[int, int, Any]]] = field(default_factory=list)

    def module(self, kind: int, content: bytes, column: int = 0, page: int = -1) -> int:
        """Append a module; returns its length."""
        ordinals = [0, column] + ([page] if kind in (DATA, DATA_HEADER) else [])
        aad = self.prefix + UNIQUE + bytes([kind])
        aad += b"".join(one.to_bytes(2, "little") for one in ordinals)
        sealed = self.sealed(content, aad)
        self.data += sealed
        return len(sealed)

    def sealed(self, content: bytes, aad: bytes) -> bytes:
        nonce = os.urandom(12)
        body = nonce + AESGCM(self.key).encrypt(nonce, content, aad)
        return len(body).to_bytes(4, "little") + body

    def pages(self, column: int = 0, pages: int = 2, dictionary: bool = False) -> tuple[int, int]:
        """A column chunk; returns its start, and where its data pages start."""
        start = len(self.data)
        if dictionary:
            self.module(DICTIONARY_HEADER, page_header(DICTIONARY_PAGE, 40), column)
            self.module(DICTIONARY, b"12345678", column)
        data = len(self.data)
        for page in range(pages):
            self.module(DATA_HEADER, page_header(DATA_PAGE, 39), column, page)
            self.module(DATA, b"1234567", column, page)
        return start, data

    def column(
        self, start: int, data: int, length: int, *more: tuple[int, int, Any], **of: Any
    ) -> None:
        """What the footer says of a column chunk: fields of its metadata, and of the chunk as `chunk`."""
        name = f"c{len(self.chunks)}".encode()
        metadata = [
            *((1, I32, 2), (2, LIST, (I32, [0])), (3, LIST, (BINARY, [name])), (4, I32, 0)),
            *((5, I64, 1), (6, I64, length), (7, I64, length), (9, I64, data)),
            *([(11, I64, start)] if start != data else []),
            *more,
        ]
        crypto = of.get("crypto", [(1, STRUCT, [])])
        chunk = [(2, I64, start), (3, STRUCT, metadata), *of.get("chunk", ())]
        self.chunks.append([*chunk, *([(8, STRUCT, crypto)] if crypto is not None else [])])

    def file(self, algorithm: Fields | None = None, ordinal: int | None = None) -> File:
        """The whole file, with its footer."""
        group: list[tuple[int, int, Any]] = [
            *((1, LIST, (STRUCT, self.chunks)), (2, I64, 1), (3, I64, 1)),
            *([(7, 4, ordinal)] if ordinal is not None else []),
        ]
        metadata = struct(
            [(1, I32, 2), (2, LIST, (STRUCT, [])), (3, I64, 1), (4, LIST, (STRUCT, [group]))]
        )
        settings = [(2, BINARY, UNIQUE), (3, 1, None)] if algorithm is None else algorithm
        crypto = struct([(1, STRUCT, [(1, STRUCT, settings)])])
        footer = crypto + self.sealed(metadata, self.prefix + UNIQUE + bytes([FOOTER]))
        data = self.data + footer + len(footer).to_bytes(4, "little") + b"PARE"
        return File(data, self.key, self.prefix)
