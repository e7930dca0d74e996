"""An encrypted table as PyIceberg's `Table`: it reads and writes encrypted files, and refuses the rest."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import ALWAYS_TRUE, FileScanTask
from pyiceberg.table.inspect import InspectTable
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.typedef import EMPTY_DICT, Properties

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError, TableNotFoundError
from pyspark_iceberg_crypto.reader import _commit, _filters, _mac, _pyiceberg, _write
from pyspark_iceberg_crypto.reader._io import refuse_pickling, refuse_writing
from pyspark_iceberg_crypto.reader._plan import Planner
from pyspark_iceberg_crypto.reader._pyiceberg import (
    Found,
    LocalAppends,
    LocalScan,
    Table,
    TableMetadata,
    TrackedTransaction,
)
from pyspark_iceberg_crypto.reader._rows import Rows

if TYPE_CHECKING:
    import polars as pl
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.table.update.schema import UpdateSchema

    from pyspark_iceberg_crypto.reader._checks import Loaded
    from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
    from pyspark_iceberg_crypto.reader._keys import EncryptedKey, TableKeys
    from pyspark_iceberg_crypto.reader._load import Tables
    from pyspark_iceberg_crypto.reader._pyiceberg import Pointer

_LINEAGE = {"_row_id", "_last_updated_sequence_number"}
_WRITES = (
    *("dynamic_partition_overwrite", "upsert", "add_files", "update_spec", "update_sort_order"),
    *("update_statistics", "manage_snapshots"),
)
_OF_OTHER_READERS = ("to_daft", "to_bodo", "__datafusion_table_provider__")


class OpenedTable(Table):
    """A table that `open_table` opened.

    Attributes:
        io: the `FileIO` of its files.
        loaded: its metadata as it was loaded and checked.
    """

    io: Any
    loaded: Loaded

    def __init__(
        self,
        identifier: tuple[str, ...],
        metadata: TableMetadata,
        metadata_location: str,
        io: FileIO,
        catalog: Catalog,
        config: dict[str, str] = EMPTY_DICT,
        *,
        tables: Tables,
        loaded: Loaded,
    ) -> None:
        """Make a table; arguments as of PyIceberg's, and what loads it again."""
        super().__init__(identifier, metadata, metadata_location, io, catalog, config)
        self.loaded = loaded
        self._tables = tables
        self._lock = threading.RLock()  # one commit or refresh at a time

    def refresh(self) -> Table:
        """Load and check the table's metadata again; see `open_table` for errors."""
        with self._lock:
            self._become(self._again())
        return self

    def _become(self, fresh: OpenedTable) -> None:
        # at once: other threads take all of it as it is
        names = ("io", "config", "loaded", "metadata", "metadata_location")
        vars(self).update({name: getattr(fresh, name) for name in names})

    def _again(self) -> OpenedTable:
        """Load it again, and refuse another table, and what is not the same kind of table any more."""
        return self._of_same_kind(self._tables.load())

    def _of_same_kind(self, fresh: OpenedTable | None) -> OpenedTable:
        if (
            fresh is not None
            and fresh.metadata.table_uuid != self.metadata.table_uuid
            # else PyIceberg made one up
            and all("table-uuid" in one.loaded.document for one in (self, fresh))
        ):
            raise NotSupportedError(
                f"Table {self.loaded.table} was dropped or renamed since it was opened, and there is another one of "
                "its name",
                "Nothing was committed. Open it again.",
            )
        if fresh is None or type(fresh) is not type(self):
            raise self._is_another()
        return fresh

    def _is_another(self) -> NotSupportedError:
        raise NotImplementedError


class PlaintextTable(OpenedTable):
    """A table without a key id, as PyIceberg has it, until it is encrypted: then it is not written as this one."""

    def transaction(self) -> Transaction:
        """Begin a transaction, unless the table is encrypted by now."""
        self._again()
        return PlaintextTransaction(self)

    def _again(self) -> OpenedTable:
        fresh = None
        try:
            fresh = self._tables.load()
        except TableNotFoundError:
            raise
        except ConfigurationError:
            if self._tables.kms is not None:  # else it is encrypted, and nothing unwraps its keys
                raise
        return self._of_same_kind(fresh)

    def _do_commit(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...]
    ) -> None:
        with _commit.before_the_commit():
            self._again()
        super()._do_commit(updates, requirements)

    def _is_another(self) -> NotSupportedError:
        return NotSupportedError(
            f"Table {self.loaded.table} was encrypted since it was opened, or is another one now",
            "Nothing was committed. Open it again with open_table.",
        )


class PlaintextTransaction(TrackedTransaction):
    """A transaction that leaves no plaintext of rows when the table was encrypted meanwhile."""

    def commit_transaction(self) -> Table:
        """Commit; see `pyiceberg.table.Transaction.commit_transaction`.

        Raises:
            NotSupportedError: the table was encrypted, or is another one; the files of this change were deleted.
            CommitStateUnknownException: it is, since the catalog said no, perhaps to a request that it got twice.
        """
        try:
            return super().commit_transaction()
        except NotSupportedError as error:
            was_sent = self.has_changes and (self.was_refused or not _commit.is_before(error))
            if was_sent and _pyiceberg.type_of(self.table.catalog) != "jdbc":
                made = self.snapshots()
                raise _commit.unknown_of_plaintext(
                    self.table.loaded.table, error.message, made, self.written()
                ) from error
            left = [one for one in self.written() if not _commit.delete(self.table.io, one)]
            if not left:
                raise
            these = f"Delete {', '.join(left)}, which have rows in plaintext."
            raise type(error)(error.message, f"{error.hint} {these}") from error


class EncryptedTable(OpenedTable):
    """An encrypted table, whose `io` is the `EncryptedFileIO` that decrypts."""

    io: EncryptedFileIO

    @property
    def keys(self) -> TableKeys:
        """The table's keys."""
        return self.io.keys

    @property
    def stored(self) -> FileIO:
        """How its files are read and written as they are stored."""
        return self.io.stored

    def transaction(self) -> Transaction:
        """Begin a transaction; what is wrong with writing this table is found out before anything is written."""
        self._committer()
        return _write.EncryptedTransaction(self)

    def update_schema(
        self, allow_incompatible_changes: bool = False, case_sensitive: bool = True
    ) -> UpdateSchema:
        """Change columns, in a transaction of its own; see `pyiceberg.table.Table.update_schema`."""
        self._committer()
        transaction = _write.EncryptedTransaction(self, autocommit=True)
        return transaction.update_schema(allow_incompatible_changes, case_sensitive)

    def writing_kek(self) -> EncryptedKey:
        """Return the KEK of a commit; see `TableKeys.for_writing`."""
        length = _write.data_key_length(self.loaded.table, self.metadata.properties)
        days = self.io.settings.kek_max_age_days
        return self.keys.for_writing(self.loaded.key_id or "", length, days)

    def location_provider(self) -> LocationProvider:
        """Say where files are written: manifests are not in the folder of authenticated metadata."""
        properties = dict(self.metadata.properties)
        if path := properties.get(_mac.METADATA_PATH):
            properties[_mac.METADATA_PATH] = _mac.folder_of_manifests(
                path, str(self.metadata.table_uuid), self.metadata.location
            )
        return load_location_provider(self.metadata.location, properties)

    def loaded_again(self, at: Pointer, stored: bytes | None) -> OpenedTable:
        """Make the table of other metadata, after the same checks, without reading it."""
        if at.io is None:
            at = replace(at, io=self.stored, config=self.config)
        return self._of_same_kind(self._tables.made(Found(at, self.loaded.table, stored)))

    def as_it_is(self) -> EncryptedTable:
        """Return a table of the same metadata and keys, which stay what they are when this one is loaded again."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def again(self) -> EncryptedTable:
        """Load the table again, and leave this one as it is."""
        return cast("EncryptedTable", self._again())

    def _committer(self) -> _commit.Committer:
        _write.check_writable(self, self.io.settings)
        committer = self._tables.source.committer(self.loaded.table, self.io.settings)
        committer.check(self)
        return committer

    def _do_commit(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...]
    ) -> None:
        with self._lock:
            with _commit.before_the_commit():
                committer = self._committer()
                changes = _commit.changes_of(self, updates, self.keys)
                finish = committer.prepare(self, changes, requirements)
            self._become(finish())

    def has_schema(self, schema: Schema) -> bool | None:
        """Refresh; say whether the table has the schema of a commit without snapshots that was refused.

        Returns:
            None if that cannot be told, as of a former schema.
        """
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 (the error that led here counts)
            return None
        if self.schema() == schema:
            return True
        return None if schema in self.schemas().values() else False

    def has_any(self, made: Sequence[Snapshot], before: TableMetadata) -> bool | None:
        """Refresh; say whether the table has one of the snapshots of a commit that was refused.

        A server may list the heads of branches alone, and snapshots expire. So one that is not listed is not there only
        if its sequence number is another's, or was not given yet, and if all snapshots since then are listed.

        Args:
            made: the snapshots.
            before: the metadata that they were made for.

        Returns:
            None if that cannot be told.
        """
        try:
            self.refresh()
        except Exception:  # noqa: BLE001 (the error that led here counts)
            return None
        now: Any = self.metadata
        listed = {one.snapshot_id: one for one in now.snapshots}
        taken = {one.sequence_number for one in now.snapshots}
        is_told = all(
            (one.sequence_number or 0) > now.last_sequence_number or one.sequence_number in taken
            for one in made
        )
        ours = {one.snapshot_id for one in made}
        known = {one.snapshot_id for one in before.snapshots}
        ends = [*listed, *(one.snapshot_id for one in now.refs.values())]
        while ends:
            at = ends.pop()
            if at in ours:
                return True
            if at in known:
                continue
            known.add(at)
            if at not in listed:
                is_told = False
            elif (parent := listed[at].parent_snapshot_id) is not None:
                ends.append(parent)
        return False if is_told else None

    def _is_another(self) -> NotSupportedError:
        return NotSupportedError(
            f"Table {self.loaded.table} is not encrypted any more", "Open it again."
        )

    def scan(
        self,
        row_filter: str | BooleanExpression = ALWAYS_TRUE,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        options: Properties = EMPTY_DICT,
        limit: int | None = None,
    ) -> EncryptedScan:
        """Scan the table; see `pyiceberg.table.Table.scan`. Planning is local, also on a REST catalog."""
        state = self.as_it_is()  # else the metadata may be older than a refresh, and the keys newer
        return EncryptedScan(
            table_metadata=state.metadata,
            io=state.io,
            row_filter=row_filter,
            selected_fields=selected_fields,
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
            options=options,
            limit=limit,
        )

    def incremental_append_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        row_filter: str | BooleanExpression = ALWAYS_TRUE,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        options: Properties = EMPTY_DICT,
        limit: int | None = None,
    ) -> EncryptedIncrementalScan:
        """Scan what was appended; see `pyiceberg.table.Table.incremental_append_scan`."""
        state = self.as_it_is()
        return EncryptedIncrementalScan(
            table_metadata=state.metadata,
            io=state.io,
            row_filter=row_filter,
            selected_fields=selected_fields,
            case_sensitive=case_sensitive,
            from_snapshot_id=from_snapshot_id_exclusive,
            to_snapshot_id=to_snapshot_id_inclusive,
            options=options,
            limit=limit,
        )

    def to_polars(self) -> pl.LazyFrame:
        """Read the table lazily: Polars tells which columns it needs, and gets batches of them."""
        import polars as pl
        from polars.io.plugins import register_io_source

        def batches(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            count: int | None,
            _batch_size: int | None,
        ) -> Iterator[pl.DataFrame]:
            scan = self.scan(
                selected_fields=tuple(columns or ("*",)),
                limit=count if predicate is None else None,
            )
            for batch in scan.to_arrow_batch_reader():
                frame = pl.DataFrame(pa.table(batch))
                yield frame if predicate is None else frame.filter(predicate)

        empty = pl.DataFrame(
            schema_to_pyarrow(self.schema(), include_field_ids=False).empty_table()
        )
        return register_io_source(batches, schema=empty.schema)

    @property
    def inspect(self) -> InspectTable:
        """Look into the metadata, as it is now; see `pyiceberg.table.Table.inspect`."""
        return InspectTable(self.as_it_is())

    @property
    def maintenance(self) -> NoReturn:
        """Refused: it writes."""
        refuse_writing(self.loaded.table)

    def __reduce__(self) -> NoReturn:
        refuse_pickling(f"Table {self.loaded.table}")


def _refused(name: str) -> Any:
    def refuse(self: EncryptedTable, *_: Any, **__: Any) -> NoReturn:
        if name in _WRITES:
            refuse_writing(self.loaded.table)
        raise NotSupportedError(
            f"Table {self.loaded.table}: {name} reads files without their keys",
            "Use scan().to_arrow(), to_arrow_batch_reader(), to_pandas(), to_polars() or to_duckdb().",
        )

    refuse.__name__, refuse.__doc__ = name, "Refused."
    return refuse


for _name in (*_WRITES, *_OF_OTHER_READERS):
    setattr(EncryptedTable, _name, _refused(_name))


class EncryptedScan(LocalScan):
    """A scan of one snapshot of an encrypted table."""

    def planner(self) -> Planner:
        """Make what plans it."""
        return _planner(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in vars(self).items() if name != "_manifest_planner"}

    def read_task(self, task: FileScanTask) -> pa.Table:
        """Read the rows of one planned task, perhaps in another process; at most as many as the scan's limit."""
        return _rows(self).to_table([task])

    def to_arrow(self, dictionary_columns: tuple[str, ...] = ()) -> pa.Table:
        """Read all rows; see `pyiceberg.table.DataScan.to_arrow`."""
        return _rows(self, dictionary_columns).to_table(self.plan_files())

    def to_arrow_batch_reader(
        self, dictionary_columns: tuple[str, ...] = ()
    ) -> pa.RecordBatchReader:
        """Read batches of rows; see `pyiceberg.table.DataScan.to_arrow_batch_reader`."""
        return _batch_reader(self, dictionary_columns)

    def count(self) -> int:
        """Count the rows; files without deletes whose rows all match are not read."""
        counted, read = 0, []
        for task in self.plan_files():
            if isinstance(task.residual, AlwaysTrue) and not task.delete_files:
                counted += task.file.record_count
            else:
                read.append(task)
        batches = _rows(self.update(limit=None)).to_record_batches(read)
        return counted + sum(len(batch) for batch in batches)


class EncryptedIncrementalScan(LocalAppends):
    """A scan of what was appended to an encrypted table."""

    def planner(self) -> Planner:
        """Make what plans it."""
        return _planner(self)

    def read_task(self, task: FileScanTask) -> pa.Table:
        """Read the rows of one planned task; see `EncryptedScan.read_task`."""
        return _rows(self).to_table([task])

    def to_arrow(self) -> pa.Table:
        """Read all rows; see `pyiceberg.table.IncrementalAppendScan.to_arrow`."""
        return _rows(self).to_table(self.plan_files())

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Read batches of rows; see `pyiceberg.table.IncrementalAppendScan.to_arrow_batch_reader`."""
        return _batch_reader(self)


_Scan = TypeVar("_Scan", EncryptedScan, EncryptedIncrementalScan)


def _planner(scan: EncryptedScan | EncryptedIncrementalScan) -> Planner:
    shown = _as_shown(scan)
    return Planner(
        table_metadata=shown,
        io=scan.io,
        row_filter=_filter(scan, shown),
        case_sensitive=scan.case_sensitive,
        options=scan.options,
    )


def _filter(
    scan: EncryptedScan | EncryptedIncrementalScan, shown: TableMetadata
) -> BooleanExpression:
    return _filters.fitting(scan.row_filter, shown.schema(), scan.case_sensitive)


def _as_shown(scan: EncryptedScan | EncryptedIncrementalScan) -> TableMetadata:
    """Return metadata with the columns that a scan shows: a snapshot's are those of its time, and its filter's, too."""
    metadata = scan.table_metadata
    if not isinstance(scan, EncryptedScan) or scan.snapshot_id is None:
        return metadata
    snapshot = metadata.snapshot_by_id(scan.snapshot_id)
    schema_id = None if snapshot is None else snapshot.schema_id
    if schema_id is None or metadata.schema_by_id(schema_id) is None:
        return metadata
    return metadata.model_copy(update={"current_schema_id": schema_id})


def _rows(scan: _Scan, dictionary_columns: tuple[str, ...] = ()) -> Rows:
    if lineage := _LINEAGE.intersection(scan.selected_fields):
        raise NotSupportedError(
            f"{', '.join(sorted(lineage))}: row lineage is not read in Python",
            "Read it with Spark.",
        )
    shown = _as_shown(scan)
    return Rows(
        shown,
        scan.io,
        scan.projection(),
        _filter(scan, shown),
        scan.case_sensitive,
        scan.limit,
        dictionary_columns=dictionary_columns,
    )


def _batch_reader(scan: _Scan, dictionary_columns: tuple[str, ...] = ()) -> pa.RecordBatchReader:
    batches = _rows(scan, dictionary_columns).to_record_batches(scan.plan_files())
    schema = schema_to_pyarrow(scan.projection())
    if dictionary_columns:
        first = next(batches, None)
        if first is not None:
            fields = [
                first.schema.field(one.name) if one.name in dictionary_columns else one
                for one in schema
            ]
            schema = pa.schema(fields, metadata=schema.metadata)
            batches = itertools.chain([first], batches)
    return pa.RecordBatchReader.from_batches(schema, batches).cast(schema)
