"""One file looked at: what it is, whether every tag matches its key, and for forensics its content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyiceberg.io import InputFile

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    NotSupportedError,
    PlaintextFoundError,
    TamperedError,
)
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reader._ags1 import DecryptedStream
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KEY_LENGTHS, KeyMetadata
from pyspark_iceberg_crypto.reader.proof import _problems
from pyspark_iceberg_crypto.reader.proof._check import DEEP, FileCheck
from pyspark_iceberg_crypto.reader.proof._problems import FileProblem, FoundError, StorageError
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile
from pyspark_iceberg_crypto.reader.proof._tree import Listed

_CHANGED = (
    "The file was cut off, overwritten or replaced after it was written, or it is not the file that this key is for. "
    "Restore it from a backup or an object version."
)
_COPIED = 1 << 20


def inspected(stored: InputFile) -> dict[str, Any]:
    """Identify a file by its bytes, in the form of Java's ``FileInspection.toJson``.

    Raises:
        TamperedError: it says it is encrypted, but its structure is broken.
        IcebergCryptoError: it cannot be read.
    """
    try:
        with StoredFile(stored) as file:
            return _files.identified(file.bytes_at, file.length, file.location)
    except (StorageError, FoundError) as error:
        raise IcebergCryptoError(
            f"{stored.location} could not be checked: {_problems.reason(error)}",
            "Check that the storage is up and that its credentials allow reading this file.",
        ) from error


def checked(
    stored: InputFile, file: Listed, length_is_known: bool, decrypt_to: str | None
) -> dict[str, Any]:
    """Check every tag of a file.

    Args:
        stored: the file.
        file: what it is, and its key.
        length_is_known: whether anything says how long it was written.
        decrypt_to: a new local file for the content of an AES GCM stream; None: none is written.

    Raises:
        TamperedError: it is not what was written.
        PlaintextFoundError: it is plaintext, or encrypted only in part.
        NotSupportedError: it is Parquet, and to be decrypted.
        IcebergCryptoError: it could not be checked.
    """
    told = inspected(stored)
    found = FileCheck(DEEP).check(file.kind, file.format, stored, file.length, file.key)
    no_length = found.problem is not None and found.problem.code == _problems.NO_LENGTH
    if found.problem is not None and not no_length:
        raise _error(stored.location, found.problem, file.kind)
    if decrypt_to is not None:
        _decrypt(stored, told["magic"], file, found.length, Path(decrypt_to))
    told["tags_checked"] = True
    told["length_checked"] = length_is_known and not no_length
    told["decrypted_to"] = decrypt_to
    return told


def with_key(stored: InputFile, hex_key: str, hex_aad_prefix: str) -> Listed:
    """Take a key from elsewhere. Nobody can tell then whether the file has its whole length.

    Raises:
        ConfigurationError: it is not a key.
    """
    key = _bytes(hex_key, "The DEK")
    if len(key) not in KEY_LENGTHS:
        raise _not_hex("The DEK", ", or not of 16, 24 or 32 bytes")
    prefix = _bytes(hex_aad_prefix, "The AAD prefix")
    form = "parquet" if inspected(stored)["magic"] == "PARE" else "avro"
    encoded = KeyMetadata(key, prefix, None).encode()
    return Listed(_problems.DATA, stored.location, form, len(stored), encoded)


def _bytes(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text.strip())
    except ValueError:
        raise _not_hex(what, "") from None  # whose text quotes the key


def _not_hex(what: str, more: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} is not in hex{more}",
        "Give two hexadecimal digits for each byte, and nothing else.",
    )


def _error(location: str, problem: FileProblem, kind: str) -> IcebergCryptoError:
    """Make the error of a problem: only codes of bytes that differ from those written accuse."""
    words, hint = problem.words, _problems.hint(problem.code, kind)
    if problem.code == _problems.PLAINTEXT:
        return PlaintextFoundError(f"{location}: {words}", hint)
    if problem.code in _problems.NOT_AS_WRITTEN:
        return TamperedError(f"{location} is not what was written: {words}", _CHANGED)
    return IcebergCryptoError(f"{location} could not be checked: {words}", hint)


def _decrypt(stored: InputFile, magic: str, known: Listed, length: int, target: Path) -> None:
    """Write the content of a file, whose length and tags were checked; each is checked once more."""
    if magic != "AGS1":
        raise NotSupportedError(
            f"{stored.location} is encrypted Parquet, which is not decrypted into a file",
            "Its rows are read through its table: SELECT * FROM <table> WHERE _file = '<the file>'.",
        )
    file = ExpectedFile("", stored.location, length)
    key = KeyMetadata.decode(bytes(known.key or b""), file)
    try:
        number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigurationError(
            f"{target} exists, and is not overwritten", "name another file"
        ) from None
    except OSError as error:
        raise _not_written(target, error) from error
    try:
        with os.fdopen(number, "wb") as out, DecryptedStream(stored.open(), key, file) as content:
            while data := content.read(_COPIED):
                out.write(data)
    except BaseException as error:
        target.unlink(missing_ok=True)  # a part would be taken for the whole
        if isinstance(error, OSError):
            raise _not_written(target, error) from error
        raise


def _not_written(target: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{target} could not be written: {error}",
        "Name a file in a folder that is there, writable, and has room.",
    )
