"""What the metadata files of a table name: manifest lists and statistics, and the metadata files of its log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.reader import _document
from pyspark_iceberg_crypto.reader._keys import STATISTICS_PATH, entries_of
from pyspark_iceberg_crypto.reader.proof import _problems
from pyspark_iceberg_crypto.reader.proof._check import Found, exists
from pyspark_iceberg_crypto.reader.proof._problems import FileProblem, StorageError
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

PLAINTEXT_METADATA = "encryption.plaintext-metadata"
_EMBEDDED = FileProblem(
    _problems.UNREADABLE,
    "it has snapshots without a manifest list, as clients of format version 1 could write them: the manifests that "
    "it lists itself were not checked",
)

_NO_METADATA = (
    *(IcebergCryptoError, ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),  # 1e999 bytes, and arrays in arrays
)

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Named:
    """A file that a table's metadata names.

    Attributes:
        kind: what it is to the table.
        path: its location.
        format: its format as the metadata says: avro, puffin, parquet.
        length: its length in bytes as the metadata says; -1 when it does not say.
        key_id: the id of its entry in `encryption-keys`; None when it has none.
        older: whether only older metadata files name it, so that it may be gone.
    """

    kind: str
    path: str
    format: str
    length: int
    key_id: str | None
    older: bool


@dataclass
class NamedFiles:
    """What is named.

    Attributes:
        files: manifest lists, those of newer snapshots first, and statistics, by their paths.
        versions: the metadata files that were read, by their paths: the one in force and those of its log.
        older_keys: key entries of older metadata files.
    """

    files: dict[str, Named] = field(default_factory=dict)
    versions: dict[str, Found] = field(default_factory=dict)
    older_keys: list[Mapping[str, Any]] = field(default_factory=list)

    def add(
        self, document: Document, older: bool, of: Iterable[Document] | None = None
    ) -> FileProblem | None:
        """Add what a metadata document has.

        Args:
            document: the metadata.
            older: whether it is not the one in force.
            of: the snapshots of which it is added. None: all, and statistics of snapshots that the document does not
                have, too.

        Returns:
            what keeps a part of it from being checked.
        """
        problem, ids = None, set()
        for one in snapshots_newest_first(document) if of is None else of:
            ids.add(one["snapshot-id"])
            if path := one.get("manifest-list"):
                form = "parquet" if path.endswith(".parquet") else "avro"
                self._put(Named(_problems.MANIFEST_LIST, path, form, -1, one.get("key-id"), older))
            else:
                problem = _EMBEDDED
        keys = {
            (one.get("properties") or {}).get(STATISTICS_PATH): one["key-id"]
            for one in document.get("encryption-keys") or []
        }
        for member, kind, form in (
            ("statistics", _problems.STATISTICS, "puffin"),
            ("partition-statistics", _problems.PARTITION_STATISTICS, "parquet"),
        ):
            for one in document.get(member) or []:
                path = one["statistics-path"]
                if of is None or one["snapshot-id"] in ids:
                    length = int(one.get("file-size-in-bytes", -1))
                    self._put(Named(kind, path, form, length, keys.get(path), older))
        return problem

    def _put(self, file: Named) -> None:
        self.files.setdefault(file.path, file)


def snapshots_newest_first(document: Document) -> list[Document]:
    """Return the snapshots of metadata."""
    found = document.get("snapshots") or []
    return sorted(found, key=lambda one: int(one.get("sequence-number", 0)), reverse=True)


def current_snapshot_id(document: Document) -> int | None:
    """Return the id of the current snapshot; None: the table is empty."""
    found = document.get("current-snapshot-id")
    return None if found is None or found == -1 else int(found)


def snapshots_of_refs(document: Document) -> list[Document]:
    """Return the snapshots that can be named without an id: that of main, of other branches, of tags; newest first."""
    ids = {one["snapshot-id"] for one in (document.get("refs") or {}).values()}
    ids.add(current_snapshot_id(document))
    return [one for one in snapshots_newest_first(document) if one["snapshot-id"] in ids]


def of_refs(document: Document, location: str | None) -> NamedFiles:
    """Return what the current snapshot, branches and tags have. No metadata file is read."""
    named = NamedFiles()
    if problem := named.add(document, False, snapshots_of_refs(document)):
        named.versions[location or ""] = Found(None, -1, problem)
    return named


def of_snapshots(document: Document) -> NamedFiles:
    """Return what any snapshot of the metadata in force has. No metadata file is read."""
    named = NamedFiles()
    named.add(document, False)
    return named


def of_log(storage: FileIO, document: Document, location: str | None) -> NamedFiles:
    """Return what any snapshot has that the metadata in force, or a metadata file of its log, has.

    So does the metadata that a table had before it was encrypted in place, until its plaintext is purged.
    """
    named = NamedFiles()
    problem = named.add(document, False)
    logged: list[str] = [location] if location else []
    logged += [one["metadata-file"] for one in document.get("metadata-log") or []]
    plaintext: str | None = (document.get("properties") or {}).get(PLAINTEXT_METADATA)
    paths: list[str] = [*logged, plaintext] if plaintext else logged
    for path in dict.fromkeys(paths):
        found, read = _read(storage, path)
        if path == plaintext and read is not None:
            found, read = _of_table(found, read, document)
        if read is not None and path != location:
            found = replace(found, problem=named.add(read, True))
            named.older_keys += read.get("encryption-keys") or []
        elif read is not None:
            found = replace(found, problem=problem)
        is_purged = path not in logged and found.problem == _problems.GONE
        if not is_purged:
            named.versions[path] = found
    return named


def lacks_snapshots(document: Document) -> bool:
    """Whether metadata names snapshots that it does not list: they expired, or a server lists only some."""
    snapshots = document.get("snapshots") or []
    named = {one["snapshot-id"] for one in document.get("snapshot-log") or []}
    named |= {one.get("parent-snapshot-id") for one in snapshots}
    return not named <= {None, *(one["snapshot-id"] for one in snapshots)}


def with_those_of_file(
    storage: FileIO, document: Document, location: str
) -> tuple[Document, FileProblem | None]:
    """Return a server's answer with the snapshots and keys that only its metadata file has; or why it has not them."""
    if not location:
        return document, FileProblem(_problems.UNREADABLE, "the server does not say where it is")
    found, read = _read(storage, location)
    if read is not None:
        found, read = _of_table(found, read, document)
    if read is None:
        return document, found.problem
    whole = dict(document)
    for member, name in (
        *(("snapshots", "snapshot-id"), ("encryption-keys", "key-id")),
        *(("statistics", "statistics-path"), ("partition-statistics", "statistics-path")),
    ):
        has = document.get(member) or []
        known = {one[name] for one in has}
        whole[member] = [*has, *(one for one in read.get(member) or [] if one[name] not in known)]
    return whole, None


def read_document(path: str, stored: bytes) -> dict[str, Any]:
    """Read a metadata file as far as it is needed here.

    Raises:
        ValueError: it is not table metadata.
    """
    document = json.loads(_document.text(path, stored))
    if not isinstance(document, dict) or not isinstance(document.get("format-version"), int):
        raise ValueError("it has no format-version")
    if not isinstance(document.get("location"), str):
        raise ValueError("it has no location")
    NamedFiles().add(document, True)  # all that is read later
    entries_of(document)
    return document


def _read(storage: FileIO, path: str) -> tuple[Found, dict[str, Any] | None]:
    stored = storage.new_input(path)
    try:
        with StoredFile(stored) as file:
            _document.require_length(path, file.length)
            data = bytes(file.read(0, file.length))
    except Exception as error:  # noqa: BLE001 (it is the finding)
        is_gone = isinstance(error, StorageError) and not exists(stored, error)
        problem = _problems.GONE if is_gone else _problems.of_failure(error, "it cannot be read: ")
        return Found(None, -1, problem), None
    try:
        return Found("JSON", len(data), None), read_document(path, data)
    except _NO_METADATA as error:
        said = error.message if isinstance(error, IcebergCryptoError) else str(error)
        problem = FileProblem(_problems.TAMPERED, f"it is not table metadata: {said}")
        return Found("JSON", len(data), problem), None


def _of_table(
    found: Found, read: dict[str, Any], table: Document
) -> tuple[Found, dict[str, Any] | None]:
    """Refuse another table's metadata, which a property can name, and which leads astray."""
    uuid = read.get("table-uuid")
    if uuid is not None and uuid == table.get("table-uuid"):
        return found, read
    problem = FileProblem(
        _problems.UNREADABLE,
        "it is metadata of another table, and nothing it names was checked: the property "
        f"{PLAINTEXT_METADATA} or that file was changed",
    )
    return Found(found.magic, found.length, problem), None
