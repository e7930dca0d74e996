"""What the footer of an encrypted Parquet file says in plaintext (FileCryptoMetaData; Parquet encryption, 5.2)."""

from __future__ import annotations

from typing import Any

from pyspark_iceberg_crypto.local import _thrift
from pyspark_iceberg_crypto.local._files import CRYPTO_METADATA, GCM
from pyspark_iceberg_crypto.local._thrift import BINARY, STRUCT, TRUE, MalformedError


def read(footer: bytes) -> tuple[dict[str, Any], int]:
    """Read it, if it has the one form that Parquet's writers give it: no reader can take it for something else.

    Args:
        footer: the whole footer, or its start.

    Returns:
        the struct, and its length in bytes: there the encrypted module starts.

    Raises:
        MalformedError: it does not parse, or has unknown parts.
    """
    reader = _thrift.CompactReader(footer)
    try:
        found = reader.struct(CRYPTO_METADATA)
    except MalformedError as error:
        raise _malformed("does not parse") from error
    if not found["algorithm"]:
        raise _malformed("does not parse")
    if footer[: reader.position] != _written(found):
        raise _malformed("has unknown parts")
    return found, reader.position


def _malformed(what: str) -> MalformedError:
    return MalformedError(f"its file crypto metadata {what}")


def _written(crypto: dict[str, Any]) -> bytes:
    """Write it again, as Parquet's writers do."""
    kind, settings = next(iter(crypto["algorithm"].items()))
    written = bytes([STRUCT | 1 << 4, STRUCT | (1 if kind == GCM else 2) << 4])
    written += _fields(
        [(1, settings.get("aad_prefix")), (2, settings.get("aad_file_unique"))],
        settings.get("supply_aad_prefix"),
    )
    # the number of a field is told as the distance from the one before: from 1, here
    return written + b"\0" + _fields([(1, crypto.get("key_metadata"))], None)


def _fields(binaries: list[tuple[int, bytes | None]], boolean: bool | None) -> bytes:
    """Write a struct of binaries, and one boolean as its third field."""
    written, last = b"", 0
    for number, value in binaries:
        if value is not None:
            written += bytes([BINARY | (number - last) << 4]) + _varint(len(value)) + value
            last = number
    if boolean is not None:
        written += bytes([(TRUE if boolean else _thrift.FALSE) | (3 - last) << 4])
    return written + b"\0"


def _varint(value: int) -> bytes:
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])
