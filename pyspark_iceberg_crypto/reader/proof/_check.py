"""The check of one file of an encrypted table, as deep as asked: it raises nothing, and says what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reader import _ags1
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof import _parquet, _problems
from pyspark_iceberg_crypto.reader.proof._problems import FileProblem, FoundError, StorageError
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile

if TYPE_CHECKING:
    from pyiceberg.io import InputFile

MAGIC, STRUCTURE, DEEP = "magic", "structure", "deep"
"""How much of each file is read: its first and last bytes; its header, layout, footer and length; every byte."""
_IT = ExpectedFile("", "it")  # the file, in a report that names it elsewhere


@dataclass
class Found:
    """What a check found about one file.

    Attributes:
        magic: what its first bytes say; None: they could not be read.
        length: its length in bytes as stored; the expected one when the storage was not asked, -1 when neither is
            known.
        problem: what is wrong, or why it could not be checked; None: nothing is.
    """

    magic: str | None
    length: int
    problem: FileProblem | None = None

    @property
    def encrypted(self) -> bool:
        """Whether its first bytes say that it is encrypted."""
        return self.magic in _files.ENCRYPTED

    @property
    def unchecked(self) -> bool:
        """Whether it could not be checked, which says nothing about it."""
        return self.problem is not None and self.problem.code == _problems.UNREADABLE


class FileCheck:
    """Checks files; any number of threads can use it."""

    def __init__(self, depth: str, any_length: bool = False) -> None:
        """Make a check.

        Args:
            depth: how much of each file it reads.
            any_length: whether nothing is wrong with a stream whose length nothing gives.
        """
        self.depth, self._any_length = depth, any_length

    def check(
        self,
        kind: str,
        form: str,
        stored: InputFile,
        expected: int,
        key: bytes | None,
    ) -> Found:
        """Check a file.

        Args:
            kind: what it is to the table.
            form: its format as the table's metadata says: parquet, avro, puffin.
            stored: the file as its storage has it, not decrypted.
            expected: its length in bytes as the table's metadata says; -1 when it does not.
            key: its key metadata, not encrypted; None when the table has none. The depth magic needs none.
        """
        result = Found(None, expected)
        try:
            if self.depth == MAGIC:
                _check_magic(kind, form, stored, result)
            else:
                self._check_whole(kind, form, stored, key, result)
        except Exception as error:  # noqa: BLE001 (it is the finding)
            result.problem = _of_failure(error, stored)
        return result

    def _check_whole(
        self,
        kind: str,
        form: str,
        stored: InputFile,
        key: bytes | None,
        result: Found,
    ) -> None:
        expected = result.length
        with StoredFile(stored, self.depth == DEEP) as file:
            result.length = file.length
            result.magic, _ = _files.magic_of(file.head(_files.HEAD))
            result.problem = _problems.of_magic(kind, form, result.magic)
            if result.problem is None and key is None:
                result.problem = FileProblem(_problems.NO_KEY, "the table has no key for it")
            if result.problem is None and key is not None:
                metadata = _decoded(bytes(key))
                result.problem = self._problem(file, result.magic, expected, metadata)

    def _problem(
        self, file: StoredFile, magic: str, expected: int, key: KeyMetadata
    ) -> FileProblem | None:
        is_stream = magic == "AGS1"
        if problem := _wrong_length(file.length, expected, key.length, is_stream):
            return problem
        self._check_content(file, is_stream, key)
        fits = _ags1.fits_listed(expected, file.length) if is_stream else expected >= 0
        if key.length is not None or fits or self._any_length:
            return None
        return FileProblem(
            _problems.NO_LENGTH,
            "its key metadata gives no length, as when iceberg-rust wrote it, so bytes could be missing at its end",
        )

    def _check_content(self, file: StoredFile, is_stream: bool, key: KeyMetadata) -> None:
        if not is_stream:
            told = _files.footer(file.bytes_at, file.length, file.location)
            if self.depth == DEEP:
                _parquet.check(file, key, told["footer_length"])
            return
        layout = _files.blocks(file.head(_files.HEAD), file.length, file.location)
        if layout["block_size"] != _ags1.BLOCK:
            raise _problems.unknown(
                f"its header gives blocks of {layout['block_size']} bytes, which only another program writes: "
                f"Iceberg's have {_ags1.BLOCK}"
            )
        if self.depth == DEEP:
            _check_blocks(file, key, layout)


def _check_blocks(file: StoredFile, key: KeyMetadata, layout: Mapping[str, int]) -> None:
    """Read an AES GCM stream from start to end, block by block, and keep none (AES GCM Stream spec)."""
    cipher = AESGCM(key.key)
    stored, count = layout["block_size"] + _ags1.OVERHEAD, layout["block_count"]
    for block in range(count):
        start = _ags1.HEADER + block * stored
        sealed = file.read(start, min(stored, file.length - start))
        aad = key.aad_prefix + block.to_bytes(4, "little")
        try:
            cipher.decrypt(sealed[: _ags1.NONCE], sealed[_ags1.NONCE :], aad)
        except InvalidTag:
            raise _problems.wrong_tag(f"block {block} of {count}") from None


def _check_magic(kind: str, form: str, stored: InputFile, result: Found) -> None:
    with StoredFile(stored) as file:
        if result.length < 0:
            result.length = file.length
        result.magic, _ = _files.magic_of(file.head(_files.HEAD))
        result.problem = _problems.of_magic(kind, form, result.magic)
        if result.problem is None and result.magic == "PARE" and not _ends_as_parquet(file):
            result.problem = FileProblem(
                _problems.TRUNCATED,
                "it starts with PARE, but does not end with it: it was cut off, or bytes were appended",
            )


def _ends_as_parquet(file: StoredFile) -> bool:
    tail = _files.PARE_TAIL
    return file.length >= tail and bytes(file.read(file.length - 4, 4)) == b"PARE"


def _decoded(key_metadata: bytes) -> KeyMetadata:
    """Read key metadata; what is wrong with it is said in a report, which names the file."""
    try:
        return KeyMetadata.decode(key_metadata, _IT)
    except IcebergCryptoError as error:
        raise _problems.unknown(error.message.removeprefix("Table : ")) from error


def _wrong_length(
    stored: int, expected: int, written: int | None, is_stream: bool
) -> FileProblem | None:
    """The storage's length must be that of the key metadata and of the table's, if they say."""
    length = stored if written is None else written
    # iceberg-rust lists the length of a stream's content
    is_content = is_stream and expected > 0 and _ags1.stored_length(expected) == length == stored
    listed = stored if is_content else expected
    wanted = listed if written is None else written
    if wanted >= 0 and stored != wanted:
        is_shorter = stored < wanted
        how = "it was cut off" if is_shorter else "bytes were appended"
        return FileProblem(
            _problems.TRUNCATED if is_shorter else _problems.APPENDED,
            f"it has {stored} bytes, expected {wanted}: {how}",
        )
    if listed < 0 or listed == wanted:
        return None
    return FileProblem(
        _problems.TAMPERED,
        f"the table's metadata gives its length as {expected} bytes, its key metadata as {wanted}",
    )


def _of_failure(error: Exception, stored: InputFile) -> FileProblem:
    if isinstance(error, FoundError) and error.problem.code != _problems.UNREADABLE:
        return error.problem
    if isinstance(error, FoundError | IcebergCryptoError):
        problem = _problems.of_failure(error)
    else:
        cause = error.__cause__ if isinstance(error, StorageError) and error.__cause__ else error
        problem = _problems.of_failure(cause)
        if problem.words == _problems.reason(cause):
            problem = FileProblem(problem.code, f"it could not be read: {problem.words}")
    if problem.code != _problems.UNREADABLE:
        return problem
    return problem if exists(stored, error) else _problems.GONE


def exists(stored: InputFile, error: BaseException | None = None) -> bool:
    """Whether the storage says that a file is there, when it is asked again after an error.

    Without access, some storages say that a file does not exist, or fail if it does not exist. One that fails again
    is taken at its first word.
    """
    while error is not None and not isinstance(error, FileNotFoundError):
        error = error.__cause__
    try:
        return stored.exists()
    except Exception:  # noqa: BLE001 (it says nothing)
        return error is None
