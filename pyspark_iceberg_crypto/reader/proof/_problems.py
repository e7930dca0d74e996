"""What can be wrong with a file of a table: codes for programs, words for people, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_iceberg_crypto.errors import IcebergCryptoError, PlaintextFoundError, TamperedError
from pyspark_iceberg_crypto.local import _files

PLAINTEXT = "plaintext"
MISSING = "missing"
TRUNCATED = "truncated"
APPENDED = "appended"
NO_KEY = "no-key"
NO_LENGTH = "no-length"
WRONG_FORMAT = "wrong-format"
TAMPERED = "tampered"
UNAUTHENTICATED = "unauthenticated"
UNREADABLE = "unreadable"
"""It could not be checked, which says nothing about it."""

NOT_AS_WRITTEN = (TRUNCATED, APPENDED, WRONG_FORMAT, TAMPERED)
"""Its bytes differ from those that were written."""

DATA = "data"
MANIFEST = "manifest"
MANIFEST_LIST = "manifest list"
STATISTICS = "statistics"
PARTITION_STATISTICS = "partition statistics"
METADATA_FILE = "metadata file"


@dataclass(frozen=True)
class FileProblem:
    """What is wrong with a file, or kept it from being checked.

    Attributes:
        code: one of the constants here.
        words: one line, without a hint.
    """

    code: str
    words: str


GONE = FileProblem(MISSING, "it does not exist")


class FoundError(Exception):
    """Bytes are not what was written, or could not be checked; it ends the check of one file, and no more."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.problem = FileProblem(code, words)


class StorageError(Exception):
    """The storage failed, which says nothing about the bytes of the file; its cause may."""


def tampered(words: str) -> FoundError:
    """Say that bytes are not what was written."""
    return FoundError(TAMPERED, words)


def unknown(words: str) -> FoundError:
    """Say that what is as its writer wrote it, as far as tags tell, is unknown here."""
    return FoundError(UNREADABLE, words)


def wrong_tag(what: str) -> FoundError:
    """Say that a part does not have the tag of its key and its place."""
    return tampered(
        f"{what} fails authentication with the file's key: it was changed, or comes from elsewhere"
    )


def of_failure(failure: BaseException, what: str = "") -> FileProblem:
    """Say what a failure comes to: only an error about bytes accuses.

    Args:
        failure: what was raised.
        what: what failed, before the reason.
    """
    if isinstance(failure, FoundError):
        return FileProblem(failure.problem.code, what + failure.problem.words)
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, IcebergCryptoError):
            return FileProblem(_code(cause), what + cause.message)
        cause = cause.__cause__
    return FileProblem(UNREADABLE, what + reason(failure))


def reason(failure: BaseException) -> str:
    """Say why, in one line."""
    while failure.__cause__ is not None:
        failure = failure.__cause__
    said = " ".join(str(failure).split())
    return f"{type(failure).__name__}: {said}" if said else type(failure).__name__


def _code(error: IcebergCryptoError) -> str:
    if isinstance(error, PlaintextFoundError):
        return PLAINTEXT
    return TAMPERED if isinstance(error, TamperedError) else UNREADABLE


def of_magic(kind: str, form: str, magic: str) -> FileProblem | None:
    """Say what is wrong with a file of an encrypted table, by its first bytes.

    Args:
        kind: what it is to the table.
        form: its format as the table's metadata says.
        magic: what its first bytes say.
    """
    if magic == "LATER":
        return FileProblem(UNREADABLE, "it starts like a later version of encrypted files")
    if magic == "EMPTY":
        return FileProblem(TRUNCATED, "it is empty")
    if magic not in _files.ENCRYPTED:
        return FileProblem(PLAINTEXT, f"it is not encrypted: it starts with {magic}")
    # partition statistics are Parquet within an AES GCM stream
    is_parquet = form.lower() == "parquet" and kind != PARTITION_STATISTICS
    expected = "PARE" if is_parquet else "AGS1"
    if magic == expected:
        return None
    return FileProblem(WRONG_FORMAT, f"it starts with {magic}, expected {expected} for {form}")


def of_content(content: int, form: str) -> str:
    """Return the kind of a data or delete file, by Iceberg's code of its content and its format."""
    if content == 1:
        return "deletion vector" if form.lower() == "puffin" else "position deletes"
    return {0: DATA, 2: "equality deletes"}[content]


def hint(code: str, kind: str) -> str:
    """Say what to do about a problem with a file: an instruction that must not cost data."""
    if code == PLAINTEXT:
        return _PLAINTEXT.get(kind, _PLAINTEXT_FILE)
    if code in _HINTS:
        return _HINTS[code]
    return _RESTORE_STATISTICS if kind in (STATISTICS, PARTITION_STATISTICS) else _RESTORE


_RESTORE = (
    "Restore this file from a backup or an object version, and verify again. Until then, expire and rewrite nothing: "
    "what it had may be nowhere else. docs/recovery.md says what is left without a backup."
)
_RESTORE_STATISTICS = (
    "Restore this file from a backup or an object version, or compute the statistics again: no row depends on "
    "them."
)
_HINTS = {
    UNREADABLE: (
        "The check failed, which says nothing about the file. Fix what failed (KMS, storage, permission, library), and "
        "verify again."
    ),
    UNAUTHENTICATED: (
        "Compare its rows with their source: nothing shows whether they were changed. Have its writer use AES_GCM_V1."
    ),
    NO_KEY: (
        "What names this file (the table's metadata or a manifest) has lost its key: restore that from a backup or an "
        "object version. Until then, expire and rewrite nothing: with its key the file can be read."
    ),
    NO_LENGTH: (
        "iceberg-rust wrote it, or another client that records no length; nothing indicates that it was changed. CALL "
        "<catalog>.system.repair_table(table => ..., confirm => true) gives all manifest lists, and the files of the "
        "current snapshot, their lengths; with the catalog property encryption.files-without-length=accept it is not "
        "a problem."
    ),
}
_PLAINTEXT_STATISTICS = (
    "It holds column values, and was written by a client without encryption, or with encryption.statistics=plaintext. "
    "Compute the statistics again with encryption.statistics=encrypt, and remove this entry from the table "
    "(docs/statistics.md)."
)
_PLAINTEXT_FILE = (
    "Find out how it got there. If it stands in the place of an encrypted file, restore that one from a backup or an "
    "object version. If a client without encryption or add_files brought it, its rows are the table's: write them "
    'again through this catalog (docs/guide.md, "Repair changes made by stock clients"), and compare them, before any '
    "snapshot that reaches it expires."
)
_PLAINTEXT = {
    STATISTICS: _PLAINTEXT_STATISTICS,
    PARTITION_STATISTICS: _PLAINTEXT_STATISTICS,
    METADATA_FILE: (
        "Without a table nobody can tell whether it should be encrypted. Find out whose it is, and verify that table."
    ),
}
