"""The private parts of PyIceberg that this package uses: names, methods of its catalogs, and of its scans.

One method of `Table` is beside it, in `_table`; and writers are made of PyIceberg's, in `_manifests` and `_write`.
`tests/unit/test_reader_seams.py` names what moved. What its models drop (`encryption-keys`, a snapshot's `key-id`) is
read from the same bytes that they are made of; no class of PyIceberg is changed.
"""

# Other modules import PyIceberg's names from here.
# ruff: noqa: F401
# mypy: implicit-reexport

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from typing import Any

import pyarrow as pa
import pyarrow.compute as _compute
from pyarrow.fs import FileSelector
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitStateUnknownException, ValidationError
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io import FileIO, InputFile, load_file_io
from pyiceberg.io.pyarrow import (
    ArrowAccessor,
    ArrowProjectionVisitor,
    ArrowScan,
    ParquetFormatModel,
    ParquetFormatWriter,
    bin_pack_arrow_table,
    bin_pack_record_batches,
)
from pyiceberg.io.pyarrow import _check_pyarrow_schema_compatible as check_compatible
from pyiceberg.io.pyarrow import _combine_positional_deletes as combine_positions
from pyiceberg.io.pyarrow import _determine_partitions as partitions
from pyiceberg.io.pyarrow import _get_column_projection_values as missing_values
from pyiceberg.manifest import DATA_FILE_TYPE as _DATA_FILE_TYPE
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    MANIFEST_LIST_FILE_STRUCTS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, visit_with_partner
from pyiceberg.table import (
    DataScan,
    FileScanTask,
    IncrementalAppendScan,
    ManifestGroupPlanner,
    Table,
    Transaction,
    WriteTask,
)
from pyiceberg.table import _parse_row_filter as parse_row_filter
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_between_ids
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update.snapshot import UpdateSnapshot
from pyiceberg.table.update.snapshot import _DeleteFiles as DeleteFiles
from pyiceberg.table.update.snapshot import _FastAppendFiles as FastAppendFiles
from pyiceberg.table.update.snapshot import _MergeAppendFiles as MergeAppendFiles
from pyiceberg.table.update.snapshot import _OverwriteFiles as OverwriteFiles
from pyiceberg.table.update.snapshot import _SnapshotProducer as SnapshotProducer
from pyiceberg.types import NestedField

from pyspark_iceberg_crypto.reader._bounded_avro import kind_of
from pyspark_iceberg_crypto.reader._checks import Trust

VERSION = metadata.version("pyiceberg")

pc: Any = _compute  # which makes its functions as it is imported

_READ_VERSION = 3  # PyIceberg's own reads leave out where a deletion vector is, and row ids
_FIELDS = [one.field_id for one in _DATA_FILE_TYPE[_READ_VERSION].fields]
KEY_OF_FILE = _FIELDS.index(131)
"""Where a data file's record has its key metadata."""
VECTOR_OF_FILE = [_FIELDS.index(one) for one in (143, 144, 145)]
"""Where a delete file's record has the data file that its deletion vector is for, and the blob's offset and length."""
ROW_ID_OF_FILE = _FIELDS.index(142)
"""Where a data file's record has the id of its first row."""
_FIELDS_OF_LISTS = [one.field_id for one in MANIFEST_LIST_FILE_STRUCTS[_READ_VERSION].fields]
KEY_OF_MANIFEST = _FIELDS_OF_LISTS.index(519)
"""Where a manifest's record has its key metadata."""
ROW_ID_OF_MANIFEST = _FIELDS_OF_LISTS.index(520)
"""Where it has the id of its first row."""
MANIFEST_LIST_SCHEMA = MANIFEST_LIST_FILE_SCHEMAS[_READ_VERSION]

_TYPED = ("type", "element", "key", "value")
_OF_NO_TABLE = json.loads(
    new_table_metadata(
        Schema(), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, ""
    ).model_dump_json()
)
# What each of PyIceberg's catalogs makes a table of, once it knows where the metadata is.
_CONVERSIONS = (
    "_convert_orm_to_iceberg",
    "_convert_hive_into_iceberg",
    "_convert_glue_to_iceberg",
)
_TYPES = {
    "SqlCatalog": "jdbc",
    "GlueCatalog": "glue",
    "HiveCatalog": "hive",
    "RestCatalog": "rest",
}
_TRUST: dict[str | None, Trust] = {
    "jdbc": Trust.POINTER,
    "glue": Trust.POINTER,
    "hive": Trust.HIVE,
    "rest": Trust.SERVER,
}


class _Projection(ArrowProjectionVisitor):
    """PyIceberg's, which would make lists and maps of structs that are null into empty ones."""

    def list(self, list_type: Any, list_array: Any, value_array: Any) -> Any:
        return _with_nulls(super().list(list_type, list_array, value_array), list_array)

    def map(self, map_type: Any, map_array: Any, key_result: Any, value_result: Any) -> Any:
        return _with_nulls(super().map(map_type, map_array, key_result, value_result), map_array)


def _with_nulls(made: Any, given: Any) -> Any:
    """Return what was made of an array, null where that is."""
    if made is None or made.null_count == given.null_count:
        return made
    return made.take(pc.if_else(given.is_null(), None, pa.array(range(len(given)), pa.int64())))


def requested(
    schema: Schema, file_schema: Schema, batch: pa.RecordBatch, **options: Any
) -> pa.RecordBatch:
    """Return rows of a file in the columns of another schema; options as of PyIceberg's `_to_requested_schema`."""
    visitor = _Projection(file_schema, **options)
    made: Any = visit_with_partner(schema, batch, visitor, ArrowAccessor(file_schema))
    return pa.RecordBatch.from_struct_array(made)


@dataclass(frozen=True)
class Pointer:
    """What a catalog knows of a table.

    Attributes:
        identifier: its name.
        location: where its metadata file is.
        parameters: what a Hive metastore keeps of it.
        answer: what a REST server says of it: its metadata; None of other catalogs.
        io: the FileIO of its files, of a REST server's configuration for it; None of other catalogs.
        config: that configuration.
    """

    identifier: tuple[str, ...]
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    io: FileIO | None = None
    config: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Found:
    """What a source has of a table.

    Attributes:
        at: what its catalog knows.
        name: its full name.
        stored: the bytes of its metadata file; None if a REST server's answer is what counts.
    """

    at: Pointer
    name: str
    stored: bytes | None = field(repr=False)


def type_of(catalog: Catalog) -> str | None:
    """Return the type of a catalog, as of Spark's; None of other classes than PyIceberg's."""
    names = [one.__name__ for one in type(catalog).__mro__]
    return next((_TYPES[name] for name in names if name in _TYPES), None)


def trust(catalog: Catalog) -> Trust:
    """Return what vouches for the metadata of a catalog's tables."""
    return _TRUST.get(type_of(catalog), Trust.NOTHING)


def with_all_snapshots(catalog: Catalog) -> Catalog:
    """Return a catalog that asks a REST server for all snapshots of a table, whatever the server has as its default."""
    asked = copy.copy(catalog)
    asked.properties = {**catalog.properties, "snapshot-loading-mode": "all"}
    return asked


def pointer(catalog: Catalog, identifier: str | tuple[str, ...]) -> Pointer:
    """Ask a catalog where a table's metadata is, and a REST server what it is. No metadata file is read by that.

    PyIceberg gets the server's answer without the metadata, whose properties would choose the FileIO.
    """
    asked: Any = copy.copy(catalog)
    answers: list[Any] = []

    def put_aside(response: Any, **_: Any) -> None:
        with suppress(ValueError):
            told = json.loads(response.text)
            if isinstance(told, dict) and isinstance(told.get("metadata"), dict):
                answers.append(told["metadata"])
                response._content = json.dumps({**told, "metadata": _OF_NO_TABLE}).encode()

    if trust(catalog) is Trust.SERVER:
        asked._session = session = copy.copy(asked._session)
        session.hooks = {**session.hooks, "response": [*session.hooks.get("response", ())]}
        session.hooks["response"].append(put_aside)
    for name in _CONVERSIONS:
        if hasattr(asked, name):
            setattr(asked, name, _unread)
    found: Any = asked.load_table(identifier)
    if not isinstance(found, Table):
        return _of_entry(Catalog.identifier_to_tuple(identifier), found)
    at = Pointer(found.name(), found.metadata_location or "")
    if not answers:
        return at
    return replace(at, answer=answers[-1], io=found.io, config=found.config)


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


def file_io(of: Catalog | Mapping[str, str], location: str) -> FileIO:
    """Make the FileIO of a catalog, or of properties.

    Not also of a table's, as PyIceberg does: who can set these would choose where the login to the storage goes.
    """
    return (
        of._load_file_io({}, location)
        if isinstance(of, Catalog)
        else load_file_io(dict(of), location)
    )


def names_in(io: FileIO, folder: str) -> list[str]:
    """Return the names of the files in a folder, which a FileIO does not list; none if there is no folder.

    Raises:
        NotImplementedError: it is a FileIO of neither PyArrow nor fsspec.
    """
    opened: Any = io.new_input(folder)
    if hasattr(opened, "_filesystem"):
        found = opened._filesystem.get_file_info(FileSelector(opened._path, allow_not_found=True))
        return [one.base_name for one in found]
    if not hasattr(opened, "_fs"):
        raise NotImplementedError(f"{type(io).__name__} lists no folders")
    opened._fs.invalidate_cache()  # of another commit's time
    try:
        return [str(one).rpartition("/")[2] for one in opened._fs.ls(folder, detail=False)]
    except FileNotFoundError:
        return []
    finally:
        opened._fs.invalidate_cache()


def table_metadata(document: bytes) -> TableMetadata:
    """Make PyIceberg's model of a metadata document."""
    return TableMetadataUtil.parse_raw(document.decode("utf-8-sig"))


def unknown_types(document: Mapping[str, Any]) -> list[str]:
    """Return the types of columns, also of former schemas, that PyIceberg does not know; it knows none of variant."""
    told = {holder[name] for holder, name in _types_in(document)}
    return sorted(one for one in told if not _is_known(one))


def with_types(document: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """Return metadata with other types in place of some."""
    made = copy.deepcopy(dict(document))
    for holder, name in _types_in(made):
        holder[name] = types.get(holder[name], holder[name])
    return made


def _types_in(document: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Find names of types: what has them, and by which name."""
    ends = [document.get("schemas"), document.get("schema")]
    while ends:
        one = ends.pop()
        if isinstance(one, list):
            ends += one
        elif isinstance(one, dict):
            ends += [one.get(name) for name in ("fields", *_TYPED) if name in one]
            yield from ((one, name) for name in _TYPED if isinstance(one.get(name), str))


def _is_known(kind: str) -> bool:
    if kind in ("struct", "list", "map"):
        return True
    try:
        NestedField(1, "c", kind, required=False)
    except (ValueError, ValidationError):
        return False
    return True


def read_manifest_list(file: InputFile, authentic: bool) -> Iterator[ManifestFile]:
    """Read a manifest list, with the fields of format version 3; `authentic` as of `entries`."""
    with kind_of(authentic)(
        file,
        MANIFEST_LIST_SCHEMA,
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as read:
        yield from read


def entries(
    manifest: ManifestFile, file: InputFile, discard_deleted: bool, authentic: bool
) -> list[ManifestEntry]:
    """Read a manifest, with the fields of format version 3 and the row ids that data files inherit.

    Args:
        manifest: what its list says of it.
        file: its content.
        discard_deleted: whether files that it deletes are left out.
        authentic: whether its bytes are those of a writer with the table's keys, and what lists it is, too.
    """
    next_row_id: int | None = manifest[ROW_ID_OF_MANIFEST]
    found = []
    with kind_of(authentic)(
        file,
        MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as read:
        for entry in read:
            deleted = entry.status == ManifestEntryStatus.DELETED
            data_file = entry.data_file
            if next_row_id is None:
                data_file[ROW_ID_OF_FILE] = None
            elif data_file[ROW_ID_OF_FILE] is None and not deleted:
                data_file[ROW_ID_OF_FILE] = next_row_id
                next_row_id += data_file.record_count
            if not (deleted and discard_deleted):
                found.append(_inherit_from_manifest(entry, manifest))
    return found


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


class TrackedTransaction(Transaction):
    """A transaction that knows which files were written for what it has not committed yet.

    Attributes:
        was_refused: whether a catalog refused to commit it, and PyIceberg tried again.
    """

    def __init__(self, table: Table) -> None:
        """Begin; nothing is written yet."""
        super().__init__(table)
        self._own: list[str] = []
        self.was_refused = False

    @property
    def table(self) -> Any:
        """The table that it changes."""
        return self._table

    def _register_snapshot_producer(self, producer: Any) -> None:
        super()._register_snapshot_producer(producer)
        of_it = str(producer.commit_uuid)  # in names of files; others were there before
        paths = [one.file_path for one in producer._added_data_files]
        self._own += [one for one in paths if of_it in one.rpartition("/")[2]]

    def commit_transaction(self) -> Table:
        """Commit; then the files are the table's, and the transaction can be used again."""
        committed = super().commit_transaction()
        self._own = []
        self.was_refused = False
        return committed

    def _rebuild_snapshot_updates(self) -> None:
        self.was_refused = True
        super()._rebuild_snapshot_updates()

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._updates)

    def snapshots(self) -> list[int]:
        """Return the ids of the snapshots that are to be committed."""
        return [one._snapshot_id for one in self._snapshot_producers]

    def written(self) -> list[str]:
        """Return data files, manifests and manifest lists."""
        files = list(self._own)
        for one in self._snapshot_producers:
            files += [*one._uncommitted_manifests, *one._written_manifests]
            files += one._written_manifest_lists
        return files


class LocalScan(DataScan):
    """A scan that is planned here, and never by a server, whose plan has no keys."""

    def planner(self) -> ManifestGroupPlanner:
        """Make what plans it."""
        raise NotImplementedError

    @cached_property
    def _manifest_planner(self) -> ManifestGroupPlanner:
        return self.planner()

    def _should_use_server_side_planning(self) -> bool:
        return False


class LocalAppends(IncrementalAppendScan):
    """A scan of what was appended, with a planner of its own."""

    def planner(self) -> ManifestGroupPlanner:
        """Make what plans it."""
        raise NotImplementedError

    def plan_files(self) -> Iterable[FileScanTask]:
        """Plan the files that were added between the snapshots, as PyIceberg does."""
        has_ends = self.from_snapshot_id is not None or self.to_snapshot_id is not None
        if not has_ends and self.table_metadata.current_snapshot() is None:
            return []
        start, end = self._validate_and_resolve_snapshots()
        appends = {
            one.snapshot_id: one
            for one in ancestors_between_ids(start, end, self.table_metadata)
            if one.summary is not None and one.summary.operation == Operation.APPEND
        }
        manifests = {
            manifest
            for one in appends.values()
            for manifest in one.manifests(self.io)
            if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id in appends
        }
        return self.planner().plan_files(
            manifests,
            lambda entry: (
                entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in appends
            ),
        )


class TaskPlanner(ManifestGroupPlanner):
    """A planner that keeps all delete files: minima and maxima may be of columns by which one does not delete."""

    def residual(self, file: DataFile) -> BooleanExpression:
        """Return the rest of the filter for the rows of a file; all of it in a partition of null.

        PyIceberg takes null for a value there, which != and others match.
        """
        values = file.partition or ()
        if any(values[i] is None for i in range(len(values))):
            return self.row_filter
        return self._build_residual_evaluator(file.spec_id)(file).residual_for(file.partition)

    def _build_metrics_evaluator(self) -> Callable[[DataFile], bool]:
        by_metrics = super()._build_metrics_evaluator()
        return lambda file: file.content != DataFileContent.DATA or by_metrics(file)


class TaskReader(ArrowScan):
    """A reader of tasks, with names for what it was made with.

    Attributes:
        table_metadata: the table's.
        files: what opens its files.
        projected: the columns that are asked for.
        row_filter: which rows.
        case_sensitive: whether names of columns have case.
        limit: how many rows at most; None: all.
        dictionary_columns: which columns are encoded as dictionaries.
        projected_ids: the columns that are read, also those of the filter.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        """Make it; arguments as of PyIceberg's."""
        super().__init__(*given, **named)
        self.table_metadata, self.files = self._table_metadata, self._io
        self.projected, self.row_filter = self._projected_schema, self._bound_row_filter
        self.case_sensitive, self.limit = self._case_sensitive, self._limit
        self.dictionary_columns = self._dictionary_columns
        self.projected_ids = self._projected_field_ids

    @property
    def downcasts(self) -> bool:
        """Whether nanoseconds become microseconds: before format 3 there is no type for them."""
        told = self._downcast_ns_timestamp_to_us
        return self.table_metadata.format_version <= 2 if told is None else told


def new_metadata(
    schema: Any, spec: Any, order: Any, location: str, properties: Mapping[str, str]
) -> TableMetadata:
    """Make the metadata of a new table of format version 3."""
    converted = Catalog._convert_schema_if_needed(schema, 3)
    return new_table_metadata(
        converted, spec, order, location, {**properties, "format-version": "3"}
    )


def default_location(catalog: Any, identifier: tuple[str, ...]) -> str:
    """Return where a catalog puts a new table."""
    namespace, name = Catalog.namespace_to_string(identifier[:-1]), identifier[-1]
    return str(catalog._resolve_table_location(None, namespace, name))


def register(catalog: Catalog, identifier: tuple[str, ...], location: str) -> None:
    """Give a SQL catalog a new table; raises `TableAlreadyExistsError` where it has one of this name."""
    asked: Any = copy.copy(catalog)
    asked._convert_orm_to_iceberg = _unread
    asked.register_table(identifier, location)


def swap_pointer(catalog: Any, identifier: tuple[str, ...], old: str, new: str) -> bool:
    """Have a SQL catalog point to another metadata file, if it still points to the old one.

    Returns:
        Whether it did.

    Raises:
        CommitStateUnknownException: it does not say whether it was changed. After another error it was not.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import update

    swap = (
        update(IcebergTables)
        .where(
            IcebergTables.catalog_name == catalog.name,
            IcebergTables.table_namespace == Catalog.namespace_to_string(identifier[:-1]),
            IcebergTables.table_name == identifier[-1],
            IcebergTables.metadata_location == old,
        )
        .values(metadata_location=new, previous_metadata_location=old)
    )
    sent = executed = False
    try:
        with catalog.engine.connect() as connection:
            sent = True
            if connection.execute(swap).rowcount != 1:
                return False
            executed = True
            connection.commit()
    except Exception as error:
        # a driver may commit by itself, and the error come after that
        if executed or (sent and not _points_to(catalog, identifier, old)):
            raise CommitStateUnknownException(str(error)) from error
        raise
    return True


def _points_to(catalog: Any, identifier: tuple[str, ...], location: str) -> bool:
    try:
        return pointer(catalog, identifier).location == location
    except Exception:  # noqa: BLE001 (the error that led here counts)
        return False


def staged(catalog: Any, *given: Any, **properties: Any) -> tuple[Table, list[dict[str, Any]]]:
    """Have a REST server stage a new table; returns it, and the changes that create it."""
    transaction = catalog.create_table_transaction(*given, **properties)
    updates = [json.loads(one.model_dump_json()) for one in transaction._updates]
    return transaction._table, updates


def post_commit(table: Table, changes: Sequence[Any], requirements: Sequence[Any]) -> str:
    """Send changes to a REST server as they are, with what PyIceberg's models drop; returns its answer.

    Raises:
        CommitFailedException: a requirement is not met: nothing was changed.
        CommitStateUnknownException: the server does not say whether it was changed.
    """
    asked: Any = copy.copy(table.catalog)
    asked._session = session = copy.copy(asked._session)
    stock, answers = session.post, []

    def post(url: str, data: bytes, **options: Any) -> Any:
        body = {**json.loads(data), "updates": changes}
        answer = stock(url, data=json.dumps(body).encode(), **options)
        answers.append(answer.text)
        return answer

    session.post = post
    asked.commit_table(table, tuple(requirements), ())
    return str(answers[-1])
