"""What a local file is, by its bytes, without a JVM: the same answers as Java's ``FileInspector``.

It reads 64 bytes at the start and, of an encrypted Parquet file, 8 at the end and up to 4096 of its footer.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from pyspark_iceberg_crypto.errors import AccessDeniedError, ConfigurationError, TamperedError
from pyspark_iceberg_crypto.local._thrift import (
    BINARY,
    STRUCT,
    TRUE,
    CompactReader,
    MalformedError,
    Wanted,
)

HEAD = 64
MAGICS = {
    b"PARE": ("PARE", "parquet"),
    b"PAR1": ("PAR1", "parquet"),
    b"AGS1": ("AGS1", "aes-gcm-stream"),
    b"Obj\x01": ("AVRO", "avro"),
    b"PFA1": ("PUFFIN", "puffin"),
    b"ORC": ("ORC", "orc"),
}
ENCRYPTED = ("PARE", "AGS1")
_LATER = re.compile(b"AGS[2-9]|PAR[2-9A-Z]")  # encrypted files of later versions, by their magic

# AES GCM stream: magic and block length; each block has a nonce and a tag around its ciphertext.
AGS1_HEADER, AGS1_OVERHEAD = 8, 28
AGS1_SHORTEST = AGS1_HEADER + AGS1_OVERHEAD
ICEBERG_BLOCK, LARGEST_BLOCK = 1 << 20, 64 << 20
MOST_BLOCKS = 2**31 - 1

# Encrypted Parquet: magic, pages, footer, its length, magic. The footer ends with a module: length, nonce, tag.
PARE_MAGIC, PARE_TAIL, PARE_MODULE = 4, 8, 4 + 12 + 16
PARE_PARSED = 4096

# What the footer says in plaintext: FileCryptoMetaData (Parquet encryption, 5.2).
GCM, CTR = "AES_GCM_V1", "AES_GCM_CTR_V1"
_SETTINGS = {
    1: Wanted("aad_prefix", BINARY),
    2: Wanted("aad_file_unique", BINARY),
    3: Wanted("supply_aad_prefix", TRUE),
}
_ALGORITHM = {1: Wanted(GCM, STRUCT, _SETTINGS), 2: Wanted(CTR, STRUCT, _SETTINGS)}
CRYPTO_METADATA = {
    1: Wanted("algorithm", STRUCT, _ALGORITHM, required=True, is_union=True),
    2: Wanted("key_metadata", BINARY),
}

DAMAGED_HINT = (
    "The file was cut off, overwritten or changed after it was written. Restore this file from a backup or an object "
    "version, and verify again. Until then, expire and rewrite nothing: what it had may be nowhere else. "
    "docs/recovery.md says what is left without a backup."
)


Read = Callable[[int, int], bytes]
"""Returns bytes of a file: from which position on, and how many."""


def local_path(location: str) -> str | None:
    """Return the path of a location without a scheme, or with `file:`; None for any other."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme.lower() == "file":
        return "/" + rest.lstrip("/") if rest.startswith("/") else rest
    has_scheme = colon and len(scheme) > 1 and scheme[0].isalpha() and scheme.isalnum()
    return None if has_scheme and rest.startswith("/") else location


def inspect(location: str) -> dict[str, Any]:
    """Identify a local file, in the form of Java's ``FileInspection.toJson``.

    Raises:
        ConfigurationError: there is no such file, or it is not a regular one.
        AccessDeniedError: it may not be read.
        TamperedError: it says it is encrypted, but its structure is broken.
    """
    path = local_path(location)
    if path is None:
        raise ConfigurationError(f"{location} is not a local path", "give a Spark session")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 (a pipe would wait for ever)
            raise ConfigurationError(f"{location} is not a file", "give the path of a file")
        with Path(path).open("rb") as file:
            return _inspect(file, location)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise ConfigurationError(
            f"there is no file {location}",
            "check the path; one in another storage starts with its scheme, such as s3://",
        ) from error
    except PermissionError as error:
        raise AccessDeniedError(
            f"cannot read {location}: permission denied", "let this user read it"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {location}: {error.strerror}", "check the storage"
        ) from error


def _inspect(file: BinaryIO, location: str) -> dict[str, Any]:
    length = os.fstat(file.fileno()).st_size

    def read(position: int, count: int) -> bytes:
        file.seek(position)
        data = file.read(count)
        if len(data) < count:
            raise TamperedError(
                f"{location} ends after {position + len(data)} bytes, expected {length}, the length that its "
                "storage gives",
                "The file was replaced while it was read, or the storage is not consistent. Try again.",
            )
        return data

    return identified(read, length, location)


def identified(read: Read, length: int, location: str) -> dict[str, Any]:
    """Do the same to a file of any storage.

    Raises:
        TamperedError: it says it is encrypted, but its structure is broken.
    """
    head = read(0, min(HEAD, length))
    magic, form = magic_of(head)
    told = {"path": location, "length": length, "magic": magic, "format": form}
    told["encrypted"] = magic in ENCRYPTED
    if magic == "AGS1":
        return {**told, **blocks(head, length, location)}
    if magic == "PARE":
        return {**told, **footer(read, length, location)}
    return told


def magic_of(head: bytes) -> tuple[str, str]:
    """Recognize a file by its first bytes, 64 or all that it has: a word, and the format in lower case."""
    if not head:
        return "EMPTY", "empty"
    for prefix, found in MAGICS.items():
        if head.startswith(prefix):
            return found
    if head.lstrip(b" \t\r\n").startswith(b"{"):
        return "JSON", "json"
    return ("LATER", "later") if _LATER.match(head) else ("OTHER", "unknown")


def blocks(header: bytes, length: int, location: str) -> Mapping[str, int]:
    """Compute an AES GCM stream's layout."""

    def broken(what: str) -> TamperedError:
        return TamperedError(
            f"Not a whole AES GCM stream: {location}, {length} bytes long: {what}", DAMAGED_HINT
        )

    if length < AGS1_SHORTEST:
        raise broken(
            f"expected at least {AGS1_SHORTEST} bytes, a header of {AGS1_HEADER} and one block of "
            f"{AGS1_OVERHEAD} or more"
        )
    size = int.from_bytes(header[4:8], "little")
    if not 0 < size <= LARGEST_BLOCK:
        raise broken(
            f"its header gives a block length of {size} bytes, expected 1 to {LARGEST_BLOCK} (Iceberg "
            f"writes {ICEBERG_BLOCK})"
        )
    count = block_count(length, size)
    if count is None:
        full, rest = divmod(length - AGS1_HEADER, size + AGS1_OVERHEAD)
        raise broken(
            f"after {full} full blocks of {size + AGS1_OVERHEAD} bytes there are {rest} bytes, expected none or more "
            f"than {AGS1_OVERHEAD} (nonce, tag and at least one byte)"
        )
    if count > MOST_BLOCKS:
        raise broken(
            f"it would have {count} blocks of {size} bytes, expected no more than {MOST_BLOCKS}"
        )
    return {
        "block_size": size,
        "block_count": count,
        "plaintext_length": length - AGS1_HEADER - count * AGS1_OVERHEAD,
    }


def block_count(length: int, size: int) -> int | None:
    """Return how many blocks an AES GCM stream has, by the plaintext bytes of a full one; None: none is this long."""
    body = length - AGS1_HEADER
    full, rest = divmod(body, size + AGS1_OVERHEAD)
    if body < AGS1_OVERHEAD or (0 < rest <= AGS1_OVERHEAD and body != AGS1_OVERHEAD):
        return None
    return full + (rest > 0)  # an empty plaintext is one block


def footer(read: Read, length: int, location: str) -> Mapping[str, Any]:
    """Read what the footer of an encrypted Parquet file says in plaintext."""

    def broken(what: str) -> TamperedError:
        return TamperedError(
            f"Not a whole encrypted Parquet file: {location}, {length} bytes long: {what}",
            DAMAGED_HINT,
        )

    most = length - PARE_MAGIC - PARE_TAIL
    if most <= PARE_MODULE:
        raise broken(f"expected more than {PARE_MAGIC + PARE_TAIL + PARE_MODULE} bytes")
    tail = read(length - PARE_TAIL, PARE_TAIL)
    if tail[4:] != b"PARE":
        raise broken("it starts with PARE, expected it to end with PARE too")
    footer_length = int.from_bytes(tail[:4], "little")
    if not PARE_MODULE < footer_length <= min(most, 2**31 - 1):
        raise broken(
            f"its last bytes give a footer of {footer_length} bytes, expected {PARE_MODULE + 1} to {most}"
        )
    start = length - PARE_TAIL - footer_length
    start_of_it = read(start, min(footer_length, PARE_PARSED))
    reader = CompactReader(start_of_it)
    try:
        crypto = reader.struct(CRYPTO_METADATA)
    except MalformedError as error:
        raise broken(
            f"its footer of {footer_length} bytes does not parse as file crypto metadata"
        ) from error
    _check_module(start_of_it[reader.position :], reader.position, footer_length, broken)
    if not crypto["algorithm"]:
        raise broken("its footer names no known encryption algorithm")
    ((algorithm, settings),) = crypto["algorithm"].items()
    told = {
        "algorithm": algorithm,
        "footer_length": footer_length,
        "aad_prefix_supplied": settings.get("supply_aad_prefix", False),
        "aad_prefix_stored": "aad_prefix" in settings,
        "aad_file_unique_length": len(settings.get("aad_file_unique", b"")),
    }
    key_metadata = crypto.get("key_metadata")
    return told if key_metadata is None else {**told, **_keys_of_columns(algorithm, key_metadata)}


def _check_module(rest: bytes, start: int, footer_length: int, broken: Any) -> None:
    """The encrypted file metadata has to fill the footer to its last byte."""
    expected = footer_length - start - 4
    if expected < PARE_MODULE - 4 or len(rest) < 4:
        raise broken(
            f"after the first {start} bytes of its footer of {footer_length} bytes there is no room for "
            "the encrypted file metadata"
        )
    found = int.from_bytes(rest[:4], "little")
    if found != expected:
        raise broken(
            f"the encrypted file metadata in its footer gives its length as {found} bytes, expected {expected}"
        )


def _keys_of_columns(algorithm: str, key_metadata: bytes) -> Mapping[str, Any]:
    """Tell what a footer's key metadata says, which Iceberg's files have not: Parquet's key tools made the file."""
    try:
        material = json.loads(key_metadata)
        footer_key = unquote(material["masterKeyID"]) if material["internalStorage"] else None
        footer_key = footer_key if isinstance(footer_key, str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        footer_key = None  # in a file beside it, or another program's
    return {
        "pages_authenticated": algorithm == GCM,
        "footer": "encrypted",
        "footer_key": footer_key,
        "unknown": "its footer is encrypted, and this session has no KMS for Parquet files",
    }
