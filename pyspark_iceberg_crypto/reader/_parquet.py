"""Parquet files, which pyarrow decrypts (Parquet's modular encryption): opened, checked, and their errors explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet.encryption as pe
from pyiceberg.io import InputFile

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import DecryptedFile, reading

_TAIL = 8  # the footer's length and the magic
_AT_ONCE = 16 << 10  # most footers are shorter, so that one read gets all
_GCM = b"\x1c\x1c"  # what a footer starts with: in FileCryptoMetaData, field 1; in that, field 1, AES_GCM_V1
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
                _check_footer(stream, file)
            key = stored.key
            properties = pe.create_decryption_properties(key.key, aad_prefix=key.aad_prefix or None)
            yield ParquetFile(_fragment(stream, dictionary_columns, properties), file)
    else:
        file = ExpectedFile(table, stored.location)
        with reading(file):
            stream = stored.open()
        with stream:
            yield ParquetFile(_fragment(stream, dictionary_columns), file)


def _fragment(stream: Any, dictionary_columns: tuple[str, ...], properties: Any = None) -> Any:
    options = ds.ParquetFragmentScanOptions(
        pre_buffer=True, buffer_size=_BUFFER, decryption_properties=properties
    )
    read = ds.ParquetReadOptions(dictionary_columns=list(dictionary_columns))
    return ds.ParquetFileFormat(
        read_options=read, default_fragment_scan_options=options
    ).make_fragment(stream)


def _check_footer(stream: Any, file: ExpectedFile) -> None:
    """Check that footer and pages are authenticated.

    How the pages are encrypted is not: under AES_GCM_CTR_V1, changed bits of them give other rows, without an error.
    """
    length = file.length or 0
    start = max(0, length - _AT_ONCE)
    stream.seek(start)
    end = bytes(stream.read(length - start))
    stream.seek(0)
    if end[-4:] == b"PAR1":
        raise file.with_plaintext_footer()
    footer = length - _TAIL - int.from_bytes(end[-_TAIL:-4], "little")
    if end[-4:] != b"PARE" or not 0 < footer < length - _TAIL:
        raise file.malformed("it does not end like an encrypted Parquet file")
    if footer < start:
        stream.seek(footer)
        first = bytes(stream.read(len(_GCM)))
        stream.seek(0)
    else:
        first = end[footer - start :][: len(_GCM)]
    if first != _GCM:
        raise file.not_authenticated(
            "is not encrypted with AES_GCM_V1: under AES_GCM_CTR_V1 pages are not authenticated, so nothing shows "
            "whether they were changed"
        )


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
