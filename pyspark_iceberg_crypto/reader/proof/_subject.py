"""What is verified, and how: the part of a report that does not depend on what is found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from platform import python_version
from typing import TYPE_CHECKING, Any, cast

from pyspark_iceberg_crypto import __version__
from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.reader import _document
from pyspark_iceberg_crypto.reader._checks import Loaded, Trust
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader._settings import METADATA_AUTHENTICATION, Settings
from pyspark_iceberg_crypto.reader.proof import _named
from pyspark_iceberg_crypto.reader.proof._check import DEEP, exists
from pyspark_iceberg_crypto.reader.proof._named import Document
from pyspark_iceberg_crypto.reader.proof._problems import StorageError
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

    from pyspark_iceberg_crypto.kms import KeyManagementClient

_MOST_SNAPSHOTS = 1000


@dataclass(frozen=True)
class _AllowedKms:
    """What unwraps keys of older metadata: with the master keys alone that the catalog allows."""

    of: Subject

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        self.of.settings.allowed_key_ids.check(self.of.loaded.table, [key_id])
        return bytes(self.of.client.unwrap_key(wrapped, key_id))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of.client, name)


@dataclass(frozen=True)
class Subject:
    """A table, loaded and checked.

    Attributes:
        loaded: its metadata.
        keys: its keys; None: it has none, and its catalog no KMS.
        kms: what the KMS is, and where; None: the table is not encrypted.
        storage: where its files are stored, of which none is decrypted.
        trust: what vouches for its metadata.
        settings: how its catalog reads tables.
        client: what unwraps its keys.
        reload: loads it again.
    """

    loaded: Loaded
    keys: TableKeys
    kms: str | None
    storage: FileIO
    trust: Trust
    settings: Settings
    client: Any = field(repr=False)
    reload: Callable[[], Subject] = field(repr=False)

    @property
    def document(self) -> Document:
        """Its metadata, as JSON."""
        return self.loaded.document

    def keys_with(self, older: list[Mapping[str, Any]]) -> TableKeys:
        """Return its keys, and those of older metadata for the files that only these name.

        Nothing authenticates older metadata: the KMS is asked for no other master keys than the allowed ones.
        """
        if not older:
            return self.keys
        entries = [*older, *(self.document.get("encryption-keys") or [])]
        return TableKeys(
            self.loaded.table,
            {"encryption-keys": entries},
            cast("KeyManagementClient", _AllowedKms(self)),
            self.keys.entries,
        )

    def is_same(self, other: Subject) -> bool:
        """Whether the other is the same version of the metadata."""
        return self.loaded.location == other.loaded.location and all(
            self.document.get(name) == other.document.get(name)
            for name in ("table-uuid", "last-updated-ms")
        )


def told(of: Subject, depth: str, all_snapshots: bool) -> dict[str, Any]:
    """Return what a report says of a table, as JSON has it."""
    document, loaded = of.document, of.loaded
    snapshots = _named.snapshots_newest_first(document)
    checked = snapshots if all_snapshots else _named.snapshots_of_refs(document)
    authenticated, detail = _authentication(of)
    refs = document.get("refs") or {}
    return {
        "schema_version": 1,
        "table": loaded.table,
        "key_id": loaded.key_id,
        "kms": None if loaded.key_id is None else of.kms,
        "format_version": document.get("format-version"),
        "table_uuid": document.get("table-uuid"),
        "location": document.get("location"),
        "metadata_location": loaded.location or None,
        "metadata_sha256": _sha256(of),
        "metadata_authenticated": authenticated,
        "metadata_authentication": detail,
        "deep": depth == DEEP,
        "depth": depth,
        "sample": 1.0,
        "seed": 0,
        "strays": False,
        "resume": None,
        "all_snapshots": all_snapshots,
        "snapshots": len(checked),
        "branches": _refs(refs, "branch"),
        "tags": _refs(refs, "tag"),
        "current_snapshot_id": _named.current_snapshot_id(document),
        "snapshot_ids": [one["snapshot-id"] for one in checked[:_MOST_SNAPSHOTS]],
        "snapshot_history": [_history(one) for one in snapshots[:_MOST_SNAPSHOTS]],
        "plaintext_metadata": loaded.properties.get(_named.PLAINTEXT_METADATA),
        "versions": {
            "iceberg_crypto": __version__,
            "pyiceberg": metadata.version("pyiceberg"),
            "python": python_version(),
        },
    }


def _authentication(of: Subject) -> tuple[bool, str]:
    """Say whether the metadata is authenticated, and by what, or why not."""
    if of.loaded.key_id is None:
        return False, "the table is not encrypted"
    if of.trust is Trust.SERVER:
        return False, "the REST server writes the metadata, and is trusted with it"
    if of.trust is Trust.HIVE and of.loaded.hive_hash is None:
        return False, "the Hive metastore has no hash of it"
    if of.trust is Trust.HIVE:
        return True, "each load checks the hash that the Hive metastore has of it"
    if of.trust is Trust.NOTHING:
        return False, "this is not done for this kind of catalog"
    if of.settings.authenticates is False:
        return False, f"the catalog has {METADATA_AUTHENTICATION}=off"
    return True, "each load checks its MAC, made with a KEK"


def _sha256(of: Subject) -> str | None:
    """Return the stored file's; None when the catalog does not say where that is, or commits removed it."""
    if of.loaded.stored is not None:
        return hashlib.sha256(of.loaded.stored).hexdigest()
    if not of.loaded.location:
        return None
    stored = of.storage.new_input(of.loaded.location)
    try:
        with StoredFile(stored) as file:
            _document.require_length(of.loaded.location, file.length)
            return hashlib.sha256(file.read(0, file.length)).hexdigest()
    except Exception as error:
        if isinstance(error, StorageError) and not exists(stored, error):
            return None
        raise IcebergCryptoError(
            f"Table {of.loaded.table}: its metadata file {of.loaded.location} could not be read: "
            f"{error.__cause__ or error}",
            "Check that the storage is up, and that its credentials allow reading this file.",
        ) from error


def _refs(refs: Mapping[str, Any], kind: str) -> list[str]:
    return sorted(name for name, ref in refs.items() if ref.get("type") == kind and name != "main")


def _history(snapshot: Document) -> dict[str, Any]:
    summary = snapshot.get("summary") or {}
    return {
        "snapshot_id": snapshot["snapshot-id"],
        "timestamp": time(snapshot["timestamp-ms"] / 1000),
        "files": _total(summary.get("total-data-files")),
        "bytes": _total(summary.get("total-files-size")),
    }


def _total(value: Any) -> int | None:
    """Return a sum that the writer kept in the snapshot's summary; None when it did not."""
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def time(seconds: float) -> str:
    """Say a time, in seconds since the epoch, in ISO 8601 and UTC."""
    moment = datetime.fromtimestamp(round(seconds, 3), timezone.utc)
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
