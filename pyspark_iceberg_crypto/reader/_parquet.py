"""Parquet files, which pyarrow decrypts (Parquet's modular encryption): opened, checked, and their errors explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet.encryption as pe
from pyarrow.fs import FSSpecHandler, PyFileSystem
from pyiceberg.io import InputFile

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.local._files import GCM
from pyspark_iceberg_crypto.local._thrift import MalformedError
from pyspark_iceberg_crypto.reader import _crypto_metadata
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import DecryptedFile, reading

_TAIL = 8  # the footer's length and the magic
_AT_ONCE = 16 << 10  # most footers are shorter, so that one read gets all
_BUFFER = 8 << 20
_PART = 32 << 20  # bytes, before compression, that are read at a time

# What pyarrow says where bytes do not decrypt, or a module is not what the footer says it is.
_WRONG_TAG = (
    "Failed decryption finalization",
    "ciphertext length",
    "Deserializing page header failed",
    "Couldn't deserialize thrift",
)


class ParquetFile:
    """A Parquet file whose footer was read.

    Attributes:
        schema: its columns, with field ids.
    """

    def __init__(self, fragment: Any, file: ExpectedFile) -> None:
        self._fragment = fragment
        self._file = file
        with _explained(file, fragment):
            self.schema: pa.Schema = fragment.physical_schema

    def batches(self, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows that meet a condition, in the file's order."""
        with _explained(self._file, self._fragment):
            for part in self._parts():
                scanner = ds.Scanner.from_fragment(
                    part, schema=self.schema, filter=condition, columns=columns
                )
                yield from scanner.to_batches()

    def _parts(self) -> list[Any]:
        """A large file in parts of row groups: Arrow keeps what it reads of a fragment until its end."""
        parts: list[list[int]] = []
        size = _PART
        for group in self._fragment.row_groups:
            if size >= _PART:
                parts.append([])
                size = 0
            parts[-1].append(group.id)
            size += group.total_byte_size
        if len(parts) < 2:
            return [self._fragment]
        return [self._fragment.subset(row_group_ids=part) for part in parts]


@contextmanager
def opened(
    table: str, stored: InputFile, dictionary_columns: tuple[str, ...] = ()
) -> Iterator[ParquetFile]:
    """Open a Parquet file.

    Raises:
        TamperedError: it has another length than was written.
        PlaintextFoundError: its footer is not encrypted.
        NotSupportedError: its pages are not authenticated.
    """
    if isinstance(stored, DecryptedFile):
        with stored.as_stored() as (stream, file):
            with reading(file):
                source = _Source(_footer(stream, file), stream)
            key = stored.key
            properties = pe.create_decryption_properties(key.key, aad_prefix=key.aad_prefix or None)
            format_ = _format(dictionary_columns, properties)
            yield ParquetFile(format_.make_fragment("", PyFileSystem(source)), file)
    else:
        file = ExpectedFile(table, stored.location)
        with reading(file):
            stream = stored.open()
        with stream:
            yield ParquetFile(_format(dictionary_columns).make_fragment(stream), file)


def _format(dictionary_columns: tuple[str, ...], properties: Any = None) -> Any:
    options = ds.ParquetFragmentScanOptions(
        pre_buffer=True, buffer_size=_BUFFER, decryption_properties=properties
    )
    read = ds.ParquetReadOptions(dictionary_columns=list(dictionary_columns))
    return ds.ParquetFileFormat(read_options=read, default_fragment_scan_options=options)


class _Source(FSSpecHandler):  # type: ignore[misc]
    """What pyarrow opens: for the footer the bytes that were checked, not what the storage has by then; then the file.

    Both are opened once. Pages have no other place than the footer's word, and no other key, so that a file that was
    exchanged in between has none that decrypt.
    """

    def __init__(self, footer: bytes, stored: Any) -> None:
        self._next = pa.BufferReader(b"PARE" + footer)  # a file without pages
        self._stored = stored if isinstance(stored, pa.NativeFile) else pa.PythonFile(stored, "r")

    def open_input_file(self, path: str) -> Any:
        opened, self._next = self._next, self._stored
        return opened


def _footer(stream: Any, file: ExpectedFile) -> bytes:
    """Read a footer, with the length and the magic behind it, and check that it and the pages are authenticated.

    How the pages are encrypted is not: under AES_GCM_CTR_V1, changed bits of them give other rows, without an error.
    """
    length = file.length or 0
    end = _read(stream, max(0, length - _AT_ONCE), length)
    if end[-4:] == b"PAR1":
        raise file.with_plaintext_footer()
    start = length - _TAIL - int.from_bytes(end[-_TAIL:-4], "little")
    if end[-4:] != b"PARE" or not 0 < start < length - _TAIL:
        raise file.malformed("it does not end like an encrypted Parquet file")
    if start < length - len(end):
        end = _read(stream, start, length - len(end)) + end
    footer = end[start - length :]
    if not _is_gcm(footer):
        raise file.not_authenticated(
            "is not encrypted with AES_GCM_V1, or its footer could be taken to say otherwise: under AES_GCM_CTR_V1 "
            "pages are not authenticated, so nothing shows whether they were changed"
        )
    return footer


def _read(stream: Any, start: int, end: int) -> bytes:
    stream.seek(start)
    return bytes(stream.read(end - start))


def _is_gcm(footer: bytes) -> bool:
    try:
        crypto, _ = _crypto_metadata.read(footer)
    except MalformedError:
        return False
    return GCM in crypto["algorithm"]


@contextmanager
def _explained(file: ExpectedFile, fragment: Any) -> Iterator[None]:
    """Say of pyarrow's errors which file they are about, and what they mean."""
    try:
        yield
    except IcebergCryptoError:
        raise
    except Exception as error:
        raise _meaning(error, file, fragment) from error


def _meaning(error: Exception, file: ExpectedFile, fragment: Any) -> IcebergCryptoError:
    text = str(error)
    if not any(known in text for known in _WRONG_TAG):
        return file.unreadable(error)
    writer = _other_writer(fragment)
    if writer:
        return file.of_other_version(
            f"{writer} wrote it with page version 2, whose encrypted pages pyarrow does not read"
        )
    return file.wrong_tag()


def _other_writer(fragment: Any) -> str | None:
    """Who wrote pages of version 2 as pyarrow does not read them, by the footer; None if nobody did.

    Arrow encrypts the levels of such pages, and Parquet's Java writer does not. No field of the footer that pyarrow
    shows gives the version, but Java uses these encodings with it alone.
    """
    try:
        footer = fragment.metadata
    except Exception:  # noqa: BLE001 (the footer does not decrypt either)
        return None
    if not str(footer.created_by).startswith("parquet-mr"):
        return None
    chunks = (
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
    of_version_2 = any(
        encoding == "RLE_DICTIONARY" or encoding.startswith("DELTA_")
        for chunk in chunks
        for encoding in chunk.encodings
    )
    return str(footer.created_by) if of_version_2 else None
