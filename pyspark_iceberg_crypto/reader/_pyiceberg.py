"""The private names of PyIceberg that this package imports, and the private methods of its catalogs.

Private methods that subclasses override or call are in `_table`, `_plan` and `_rows`. `tests/unit/test_reader_seams.py`
names what moved. What its models drop (`encryption-keys`, a snapshot's `key-id`) is
read from the same bytes that they are made of; no class of PyIceberg is changed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputFile, load_file_io
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _combine_positional_deletes,
    _get_column_projection_values,
    _to_requested_schema,
)
from pyiceberg.manifest import DATA_FILE_TYPE as _DATA_FILE_TYPE
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_STRUCTS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
    read_manifest_list,
)
from pyiceberg.table import DataScan, IncrementalAppendScan, ManifestGroupPlanner, Table
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Snapshot

from pyspark_iceberg_crypto.reader._checks import Trust

__all__ = [
    "DEFAULT_READ_VERSION",
    "KEY_OF_FILE",
    "KEY_OF_MANIFEST",
    "VECTOR_OF_FILE",
    "ArrowScan",
    "DataFile",
    "DataScan",
    "DeleteFileIndex",
    "IncrementalAppendScan",
    "ManifestFile",
    "ManifestGroupPlanner",
    "Pointer",
    "Snapshot",
    "Table",
    "TableMetadata",
    "combine_positions",
    "entries",
    "file_io",
    "missing_values",
    "pointer",
    "read_manifest_list",
    "requested",
    "table_metadata",
    "trust",
    "with_snapshots",
]

VERSION = metadata.version("pyiceberg")

_READ_VERSION = 3  # PyIceberg's own reads leave out where a deletion vector is
_FIELDS = [one.field_id for one in _DATA_FILE_TYPE[_READ_VERSION].fields]
KEY_OF_FILE = _FIELDS.index(131)
"""Where a data file's record has its key metadata."""
VECTOR_OF_FILE = [_FIELDS.index(one) for one in (143, 144, 145)]
"""Where a delete file's record has the data file that its deletion vector is for, and the blob's offset and length."""
KEY_OF_MANIFEST = [
    one.field_id for one in MANIFEST_LIST_FILE_STRUCTS[DEFAULT_READ_VERSION].fields
].index(519)
"""The same of a manifest's."""

combine_positions = _combine_positional_deletes
missing_values = _get_column_projection_values
requested = _to_requested_schema

# What each of PyIceberg's catalogs makes a table of, once it knows where the metadata is.
_CONVERSIONS = (
    "_convert_orm_to_iceberg",
    "_convert_hive_into_iceberg",
    "_convert_glue_to_iceberg",
)
_TRUST = {
    "SqlCatalog": Trust.POINTER,
    "GlueCatalog": Trust.POINTER,
    "HiveCatalog": Trust.HIVE,
    "RestCatalog": Trust.SERVER,
}


@dataclass(frozen=True)
class Pointer:
    """What a catalog knows of a table.

    Attributes:
        identifier: its name.
        location: where its metadata file is.
        parameters: what a Hive metastore keeps of it.
        answer: what a REST server says of it: its metadata; None of other catalogs.
        table: the table as PyIceberg loaded it; None where that would read the metadata file.
    """

    identifier: tuple[str, ...]
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    table: Table | None = None


def trust(catalog: Catalog) -> Trust:
    """Return what vouches for the metadata of a catalog's tables."""
    names = [one.__name__ for one in type(catalog).__mro__]
    return next((_TRUST[name] for name in names if name in _TRUST), Trust.NOTHING)


def pointer(catalog: Catalog, identifier: str | tuple[str, ...]) -> Pointer:
    """Ask a catalog where a table's metadata is, and a REST server what it is. No metadata file is read by that."""
    asked: Any = copy.copy(catalog)
    answers: list[str] = []
    if trust(catalog) is Trust.SERVER:
        asked._session = session = copy.copy(asked._session)
        session.hooks = {**session.hooks, "response": [*session.hooks.get("response", ())]}
        session.hooks["response"].append(lambda response, **_: answers.append(response.text))
    for name in _CONVERSIONS:
        if hasattr(asked, name):
            setattr(asked, name, _unread)
    found: Any = asked.load_table(identifier)
    if not isinstance(found, Table):
        return _of_entry(Catalog.identifier_to_tuple(identifier), found)
    answer = json.loads(answers[-1])["metadata"] if answers else None
    found.catalog = catalog
    return Pointer(found.name(), found.metadata_location or "", {}, answer, found)


def _unread(entry: Any) -> Any:
    return entry


def _of_entry(identifier: tuple[str, ...], entry: Any) -> Pointer:
    """Of a row of SQL, or a table of Hive or Glue."""
    from pyiceberg.catalog import METADATA_LOCATION
    from pyiceberg.exceptions import NoSuchIcebergTableError

    if hasattr(entry, "metadata_location"):
        return Pointer(identifier, entry.metadata_location or "")
    parameters = entry.get("Parameters") if isinstance(entry, dict) else entry.parameters
    parameters = dict(parameters or {})
    kind = parameters.get("table_type", "")
    if kind.lower() != "iceberg" or not parameters.get(METADATA_LOCATION):
        raise NoSuchIcebergTableError(f"{'.'.join(identifier)} is not a table of Iceberg: {kind}")
    return Pointer(identifier, parameters[METADATA_LOCATION], parameters)


def file_io(catalog: Catalog | None, properties: Mapping[str, str], location: str) -> FileIO:
    """Make the FileIO of a catalog's table, with properties that go before the catalog's."""
    if catalog is None or not hasattr(catalog, "_load_file_io"):
        return load_file_io(dict(properties), location)
    made: FileIO = catalog._load_file_io(dict(properties), location)
    return made


def table_metadata(document: bytes) -> TableMetadata:
    """Make PyIceberg's model of a metadata document."""
    return TableMetadataUtil.parse_raw(document.decode("utf-8-sig"))


def entries(manifest: ManifestFile, file: InputFile, discard_deleted: bool) -> list[ManifestEntry]:
    """Read a manifest, with the fields of format version 3."""
    with AvroFile[ManifestEntry](
        file,
        MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as read:
        return [
            _inherit_from_manifest(entry, manifest)
            for entry in read
            if not discard_deleted or entry.status != ManifestEntryStatus.DELETED
        ]


def with_snapshots(
    parsed: TableMetadata, document: Mapping[str, Any], kind: type[Snapshot]
) -> TableMetadata:
    """Return metadata whose snapshots are of a class that keeps their key ids."""
    by_id = {one["snapshot-id"]: one.get("key-id") for one in document.get("snapshots") or []}
    kept = [
        one.model_copy(update={"key_id": by_id.get(one.snapshot_id)}) for one in parsed.snapshots
    ]
    for one in kept:
        object.__setattr__(one, "__class__", kind)  # a tenth of the time that making one takes
    return parsed.model_copy(update={"snapshots": kept})
