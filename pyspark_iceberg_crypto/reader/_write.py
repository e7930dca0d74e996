"""Changes of an encrypted table: PyIceberg's transactions, whose files are all encrypted.

Each file has a key and an AAD prefix of its own, of the system's random numbers. Parquet's modular encryption encrypts
data files with AES_GCM_V1, footer and columns with the same key; manifests and manifest lists are AES GCM streams.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as _compute
import pyarrow.parquet.encryption as pe
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundNotEqualTo,
    BoundNotNaN,
    NotEqualTo,
    NotNaN,
    NotNull,
    Or,
)
from pyiceberg.expressions.visitors import bind, extract_field_ids, rewrite_not
from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import expression_to_pyarrow, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import ALWAYS_TRUE, TableProperties
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from pyiceberg.transforms import (
    BucketTransform,
    HourTransform,
    IdentityTransform,
    TruncateTransform,
    VoidTransform,
)
from pyiceberg.typedef import EMPTY_DICT, Properties, Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_int

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError
from pyspark_iceberg_crypto.reader import _checks, _commit, _filters, _mac, _pyiceberg
from pyspark_iceberg_crypto.reader._io import refuse_writing, writing
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._manifests import (
    EncryptedDataFile,
    EncryptedManifestListWriter,
    EncryptedManifestWriter,
    EncryptedSnapshot,
)
from pyspark_iceberg_crypto.reader._plan import Planner
from pyspark_iceberg_crypto.reader._pyiceberg import (
    DataFile,
    DeleteFiles,
    FastAppendFiles,
    MergeAppendFiles,
    OverwriteFiles,
    ParquetFormatModel,
    ParquetFormatWriter,
    SnapshotProducer,
    Transaction,
    UpdateSnapshot,
    WriteTask,
)
from pyspark_iceberg_crypto.reader._rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import DataScan
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from pyspark_iceberg_crypto.reader._settings import Settings
    from pyspark_iceberg_crypto.reader._table import EncryptedTable

_Made = TypeVar("_Made", bound="_Encrypted")

pc: Any = _compute  # which makes its functions as it is imported
_READ: WeakSet[pa.RecordBatchReader] = WeakSet()  # rows are in them once
DATA_KEY_LENGTH = "encryption.data-key-length"
_LENGTHS = ("16", "24", "32")
_ROW_ID = NestedField(2147483540, "_row_id", LongType(), required=False)
_UPDATED = NestedField(2147483539, "_last_updated_sequence_number", LongType(), required=False)
_FIELD_ID = b"PARQUET:field_id"
# Types whose defaults are in metadata as Arrow has them.
_FILLED = (BooleanType, IntegerType, LongType, FloatType, DoubleType, StringType)
# PyIceberg fails with these transforms of these types, and names no column.
_FAILING: dict[type, tuple[type, ...]] = {
    BucketTransform: (TimeType,),
    HourTransform: (TimestampNanoType, TimestamptzNanoType),
    IdentityTransform: (TimestampNanoType, TimestamptzNanoType, UUIDType),
    TruncateTransform: (BinaryType,),
}
# Table properties of encryption that do not change how files are written; value keys are for values, not for files.
_HARMLESS = ("encryption.plaintext-", "encryption.value-key.", "encryption.former-key-id")
# What these may be; files are written like that.
_HONOURED = {
    "write.format.default": ("parquet",),
    "write.parquet.page-version": ("v1", "parquet_1_0"),
    "write.parquet.compression-codec": ("zstd", "gzip", "snappy", "lz4", "brotli", "uncompressed"),
    "write.avro.compression-codec": ("gzip", "zstd", "snappy"),
    "write.metadata.compression-codec": ("none", "gzip"),
    "write.location-provider.impl": (),
    "write.py-location-provider.impl": (),
}
_NUMBERS = ("write.metadata.previous-versions-max", "write.summary.partition-limit")
_REFUSED = (
    *("add_files", "upsert", "dynamic_partition_overwrite", "update_spec", "update_sort_order"),
    *("update_statistics", "upgrade_table_version", "set_properties", "remove_properties"),
    "update_location",
)


def check_properties(table: str, properties: Mapping[str, str], settings: Settings) -> None:
    """Check that a table's settings are ones that are honoured here, before anything is written.

    Raises:
        ConfigurationError: the data key length is not one of AES.
        NotSupportedError: files would have to be written in some other way.
    """
    data_key_length(table, properties)
    known = {_checks.KEY_ID, DATA_KEY_LENGTH, _mac.PROPERTY}
    for name, value in properties.items():
        allowed = _HONOURED.get(name, () if name.startswith("encryption.") else None)
        if name in known or name.startswith(_HARMLESS) or allowed is None:
            continue
        if value.lower() not in allowed:
            raise _not_written(table, f"it has {name}={value}")
    for name in _NUMBERS:
        value = properties.get(name, "0")
        if not re.fullmatch("-?[0-9]{1,9}", value):
            raise ConfigurationError(
                f"Table {table}: {name}='{value}' is not a number", "Give one. Nothing was written."
            )
    if settings.manager is not None:
        raise _not_written(table, f"its catalog has encryption.manager-impl={settings.manager}")


def _not_written(table: str, why: str) -> NotSupportedError:
    return NotSupportedError(
        f"Table {table} is not written in Python: {why}",
        "Nothing was written. Change the table with Spark or Flink, which honour that.",
    )


def check_writable(table: EncryptedTable, settings: Settings) -> None:
    """Check that a table can be written here; for errors see `check_properties`."""
    if table.metadata.format_version != 3:
        version = table.metadata.format_version
        raise _not_written(table.loaded.table, f"it has format version {version}, and not 3")
    check_properties(table.loaded.table, table.metadata.properties, settings)


def data_key_length(table: str, properties: Mapping[str, str]) -> int:
    """Return the length of a table's DEKs and KEKs in bytes.

    Raises:
        ConfigurationError: it is not one of AES.
    """
    value = properties.get(DATA_KEY_LENGTH, "16").strip()
    if value not in _LENGTHS:
        raise ConfigurationError(
            f"Table {table}: {DATA_KEY_LENGTH}='{value}' is not an AES key length",
            "Use 16, 24 or 32 (bytes). If another client has set it, repair_table gives the table the length of its "
            "newest KEK.",
        )
    return int(value)


class EncryptedTransaction(Transaction):
    """A transaction of an encrypted table. What it does not write encrypted is refused.

    It is of the table as it was when it began, with the keys of then. It ends with a commit that failed, or of which
    nobody knows whether it was made, and with an error in its `with` block: then nothing more can be done with it, and
    it deletes nothing more.
    """

    _table: Any

    def __init__(self, table: EncryptedTable, autocommit: bool = False) -> None:
        """Begin; a KEK is there before a file is written."""
        super().__init__(table.as_it_is(), autocommit)
        self._of = table
        self._written: list[str] = []
        self._ended: Exception | None = None
        self._table.writing_kek()

    def _scan(
        self, row_filter: str | BooleanExpression = ALWAYS_TRUE, case_sensitive: bool = True
    ) -> DataScan:
        scan: DataScan = self._table.scan(row_filter, case_sensitive=case_sensitive)
        return scan.update(table_metadata=self.table_metadata)

    def update_snapshot(
        self, snapshot_properties: dict[str, str] = EMPTY_DICT, branch: str | None = MAIN_BRANCH
    ) -> EncryptedUpdate:
        """Make a snapshot, of the branch of the others; see `pyiceberg.table.Transaction.update_snapshot`."""
        self._require_open()
        others = {one._target_branch for one in self._snapshot_producers}
        if others - {branch}:
            raise _not_written(
                self._table.loaded.table,
                f"branch {branch} would be the second one of a transaction",
            )
        if branch is None and _commit.snapshots_in(self._updates):
            raise _not_written(
                self._table.loaded.table,
                "a change without a branch would be of two snapshots, of which neither follows the other",
            )
        return EncryptedUpdate(self, self._table.io, branch, snapshot_properties)

    def append(
        self,
        df: pa.Table | pa.RecordBatchReader,
        snapshot_properties: dict[str, str] = EMPTY_DICT,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Append rows; see `pyiceberg.table.Transaction.append`."""
        with self._all_or_nothing():
            self._append(self._checked(df), snapshot_properties, branch)

    def _append(
        self,
        df: pa.Table | pa.RecordBatchReader,
        snapshot_properties: dict[str, str],
        branch: str | None,
    ) -> None:
        with self._append_snapshot_producer(snapshot_properties, branch=branch) as producer:
            for file in self._write(df, producer.commit_uuid):
                producer.append_data_file(file)

    def overwrite(
        self,
        df: pa.Table | pa.RecordBatchReader,
        overwrite_filter: BooleanExpression | str = ALWAYS_TRUE,
        snapshot_properties: dict[str, str] = EMPTY_DICT,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Delete rows and append others; see `pyiceberg.table.Transaction.overwrite`."""
        with self._all_or_nothing():
            df = self._checked(df)
            if overwrite_filter != AlwaysFalse():
                self._delete(
                    overwrite_filter,
                    snapshot_properties,
                    case_sensitive,
                    branch,
                    Operation.OVERWRITE,
                )
            self._append(df, snapshot_properties, branch)

    def delete(
        self,
        delete_filter: str | BooleanExpression,
        snapshot_properties: dict[str, str] = EMPTY_DICT,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        _isolation_operation: Operation | None = None,
    ) -> None:
        """Delete the rows that a scan with this filter shows; see `pyiceberg.table.Transaction.delete`.

        Files with both kinds of rows are written again without those that are deleted, now or before. The other rows
        keep their row ids (specification, "Row Lineage").
        """
        with self._all_or_nothing():
            isolation = _isolation_operation or Operation.DELETE
            self._delete(delete_filter, snapshot_properties, case_sensitive, branch, isolation)

    def _delete(
        self,
        delete_filter: str | BooleanExpression,
        snapshot_properties: dict[str, str],
        case_sensitive: bool,
        branch: str | None,
        isolation: Operation,
    ) -> None:
        properties = self.table_metadata.properties
        if properties.get(TableProperties.DELETE_MODE) == TableProperties.DELETE_MODE_MERGE_ON_READ:
            warnings.warn(
                "Merge on read is not yet supported, falling back to copy-on-write", stacklevel=3
            )
        if isinstance(delete_filter, str):
            delete_filter = _pyiceberg.parse_row_filter(delete_filter)
        schema = self.table_metadata.schema()
        delete_filter = _filters.fitting(delete_filter, schema, case_sensitive)
        planned = _not_of_nulls(rewrite_not(delete_filter), schema, case_sensitive)
        columns = {one.field_id for one in schema.fields}
        is_nested = not extract_field_ids(bind(schema, planned, case_sensitive)) <= columns
        if is_nested:  # PyIceberg does not know of whole files there
            planned = AlwaysFalse()
        update = self.update_snapshot(snapshot_properties, branch)
        with update.delete() as whole:
            whole._isolation_operation = isolation
            whole.delete_by_predicate(planned, case_sensitive)
        replaced: list[Any] = []
        if is_nested or whole.rewrites_needed:
            commit_uuid = uuid.uuid4()
            replaced = self._without(delete_filter, case_sensitive, branch, commit_uuid)
            if replaced:
                with self.update_snapshot(snapshot_properties, branch).overwrite() as producer:
                    producer._isolation_operation = isolation
                    producer._starting_snapshot_id = whole._starting_snapshot_id
                    producer.commit_uuid = commit_uuid
                    producer.delete_by_predicate(planned, case_sensitive)
                    for old, new in replaced:
                        producer.delete_data_file(old)
                        for file in new:
                            producer.append_data_file(file)
        if not replaced and not whole.files_affected:
            warnings.warn("Delete operation did not match any records", stacklevel=3)

    def commit_transaction(self) -> Any:
        """Commit; see `pyiceberg.table.Transaction.commit_transaction`.

        When it is certain that nothing was committed, the files that this transaction wrote are deleted.

        Raises:
            CommitFailedException: the table has been changed since the transaction began: nothing was committed.
            CommitStateUnknownException: nobody knows whether it was committed; the message names its snapshots.
        """
        with self._of._lock:
            self._require_open()
            if self._updates:
                self._commit_staged()
                self._of._become(self._table)
            elif self._snapshot_producers:
                self._check_others()
        return self._of

    def _commit_staged(self) -> None:
        """Commit. From here on only this call may delete the files; it does if nothing was committed for sure."""
        table, before = self._table.loaded.table, self._table.metadata
        made = _commit.snapshots_in(self._updates)
        updates = self._updates
        requirements = (*self._requirements, AssertTableUUID(uuid=before.table_uuid))
        self._ended = _commit.unknown(table, "the commit was interrupted", made)
        written = self._taken()
        try:
            self._table._do_commit(updates, requirements)
        except Exception as error:
            self._ended = self._outcome(error, updates, before, written)
            if self._ended is error:
                raise
            if self._ended is not None:
                raise self._ended from error
        except BaseException as interrupt:
            if sys.version_info >= (3, 11):
                interrupt.add_note(str(self._ended))
            raise
        self._ended = None

    def _outcome(
        self, error: Exception, updates: tuple[TableUpdate, ...], before: Any, written: list[str]
    ) -> Exception | None:
        """Return what to say of an error of a commit, and delete the files if nothing was committed; None: it was."""
        table = self._table.loaded.table
        if not _commit.is_before(error):
            if not _commit.is_refusal(error):
                return error  # it says what is known
            if made := _commit.snapshots_in(updates):
                there = self._of.has_any(made, before)
            else:
                there = self._of.has_schema(update_table_metadata(before, updates).schema())
            if there is None:
                return _commit.unknown(table, error, made)
            if there:  # whoever answered had asked twice
                location = self._table.loaded.location
                self._table._become(self._of)
                return _commit.not_kept(table, made, self._table.loaded.document, location)
        self._remove(written)
        told = _commit.changed(table)
        if isinstance(error, CommitFailedException) and not str(error).startswith(told):
            return CommitFailedException(f"{told}: {error}")
        return error

    def _check_others(self) -> None:
        """Where a delete matched nothing, look whether rows that it would match were added since."""
        before = self._table.loaded
        try:
            super().commit_transaction()
        except Exception as error:
            self._ended = error
            raise
        finally:
            if self._table.loaded is not before:
                self._of._become(self._table)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Commit; or, after an error before the commit, delete the files that were written."""
        if error is None:
            self.commit_transaction()
        elif self._ended is None:
            self._ended = RuntimeError(
                f"Table {self._table.loaded.table}: this transaction ended with an error, and what was staged in "
                "it then was not committed. Begin another one"
            )
            written = self._taken()
            if isinstance(error, Exception):  # after an interrupt files may be written still
                self._remove(written)

    def _apply(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()
    ) -> Transaction:
        self._require_open()
        _commit.refuse_others(self._table.loaded.table, updates)
        return super()._apply(updates, requirements)

    def _require_open(self) -> None:
        if self._ended is not None:
            raise self._ended.with_traceback(None)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Have a change be staged as a whole, or not at all: who catches its error commits no part of it."""
        self._require_open()
        staged = self._updates, self._requirements, list(self._snapshot_producers)
        count = len(self._written)
        try:
            yield
        except BaseException as error:
            self._updates, self._requirements, self._snapshot_producers = staged
            written = self._written[count:]
            del self._written[count:]
            if isinstance(error, Exception):
                self._remove(written)
            raise

    def _taken(self) -> list[str]:
        """Take all that was staged out of the transaction; return the files that were written for it."""
        written, self._written = self._written, []
        self._updates, self._requirements, self._snapshot_producers = (), (), []
        return written

    def _remove(self, written: Iterable[str]) -> None:
        """Delete files of which no commit can have told."""
        for location in written:
            _commit.delete(self._table.stored, location)

    def _checked(self, df: Any) -> Any:
        """Check that rows have the table's columns, and give them the defaults of those that they lack.

        Defaults are those for new rows (specification, "Default values").
        """
        if not isinstance(df, pa.Table | pa.RecordBatchReader):
            raise ValueError(f"Expected pa.Table or pa.RecordBatchReader, got: {df}")
        metadata = self.table_metadata
        schema = metadata.schema()
        if isinstance(df, pa.RecordBatchReader):
            if df in _READ:
                raise ConfigurationError(
                    f"Table {self._table.loaded.table}: this pa.RecordBatchReader was given to another change, which "
                    "took rows out of it",
                    "Make another one of the same rows. Nothing was written.",
                )
            if not metadata.spec().is_unpartitioned():
                raise NotImplementedError(
                    "Rows of a partitioned table are given as a pa.Table, not as a pa.RecordBatchReader"
                )
        filled = _with_defaults(df, self._lacking(df.schema, schema))
        _pyiceberg.check_compatible(schema, filled.schema, format_version=metadata.format_version)
        return filled

    def _lacking(self, arrow: pa.Schema, schema: Schema) -> list[NestedField]:
        """Return the columns that rows lack, and that have defaults, or by which they are partitioned.

        Raises:
            ConfigurationError: one of them has a default that is not written here.
        """
        try:
            given = set(_schema_of(arrow, schema).field_ids)
        except ValueError:  # PyIceberg's check says what is wrong
            return []
        by = {one.source_id for one in self.table_metadata.spec().fields}
        lacking = []
        for column in schema.fields:
            within = Schema(column)
            if column.field_id not in given:
                is_null = not column.required and not by.isdisjoint(within.field_ids)
                if column.write_default is not None or is_null:
                    lacking.append(column)
                continue
            for one in map(within.find_field, set(within.field_ids) - given):
                if one.write_default is not None or one.field_id in by:
                    raise self._not_filled(one)
        for column in lacking:
            if column.write_default is not None and not isinstance(column.field_type, _FILLED):
                raise self._not_filled(column)
        return lacking

    def _not_filled(self, field: NestedField) -> ConfigurationError:
        name = self.table_metadata.schema().find_column_name(field.field_id)
        default = "null" if field.write_default is None else field.write_default
        return ConfigurationError(
            f"Table {self._table.loaded.table}: column {name} is missing, and its default, {default}, is not written "
            "in Python",
            "Add the column to the rows. Nothing was written.",
        )

    def _without(
        self, deleted: BooleanExpression, case_sensitive: bool, branch: str | None, commit_uuid: Any
    ) -> list[tuple[DataFile, list[DataFile]]]:
        """Write the files again that have rows of a filter, without these rows."""
        metadata = self.table_metadata
        schema = metadata.schema()
        shown = expression_to_pyarrow(bind(schema, deleted, case_sensitive), schema)
        kept = ~pc.coalesce(shown, pc.scalar(False))  # also where it is null
        counter = itertools.count()
        replaced: list[tuple[DataFile, list[DataFile]]] = []
        numbered = Schema(*schema.fields, _ROW_ID, _UPDATED)
        snapshot = metadata.snapshot_by_name(branch)  # None: the table or branch is to be made
        io = self._table.io
        # with the table's columns, which a branch may not have had yet
        planner = Planner(metadata, io, deleted, case_sensitive)
        for task in planner.plan_files(snapshot.manifests(io) if snapshot else ()):
            rows = NumberedRows(metadata, io, numbered, AlwaysTrue())
            before = rows.to_table([task])
            after = before.filter(kept)
            if not len(after):
                replaced.append((task.file, []))
            elif len(after) != len(before):
                new = self._write(after, commit_uuid, counter, numbered)
                replaced.append((task.file, list(new)))
        return replaced

    def _write(
        self,
        df: pa.Table | pa.RecordBatchReader,
        commit_uuid: uuid.UUID,
        counter: Iterator[int] | None = None,
        file_schema: Schema | None = None,
    ) -> list[DataFile]:
        """Write rows as data files."""
        metadata = self.table_metadata
        schema, spec = metadata.schema(), metadata.spec()
        target = property_as_int(
            metadata.properties,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT,
        )
        given = file_schema or _schema_of(df.schema, schema)
        numbers, size = counter or itertools.count(), target or 0
        parts: Iterable[tuple[Any, Iterable[list[pa.RecordBatch]]]]
        run: Any = _run
        if isinstance(df, pa.RecordBatchReader):
            run = map  # one file's rows in memory
            parts = [(None, _pyiceberg.bin_pack_record_batches(df, size))]
        elif not len(df):
            parts = []
        elif spec.is_unpartitioned():
            parts = [(None, _pyiceberg.bin_pack_arrow_table(df, size))]
        else:
            parts = self._partitioned(df, size)
        tasks = (
            WriteTask(commit_uuid, next(numbers), given, batches, partition_key=key)
            for key, packed in parts
            for batches in packed
        )
        writer = DataFileWriter(self._table, metadata, file_schema or schema, self._written)
        return list(run(writer.write, tasks))

    def _partitioned(self, df: pa.Table, size: int) -> Iterator[tuple[Any, Any]]:
        """Part rows by their partitions.

        Raises:
            NotSupportedError: PyIceberg has no such partitions, or would lose or double rows: it takes partitions for
                those of equal values, and NaN does not equal itself, and 0.0 equals -0.0.
        """
        left = len(df)
        metadata = self.table_metadata
        for field in metadata.spec().fields:
            failing = _FAILING.get(type(field.transform))
            kind = metadata.schema().find_type(field.source_id) if failing else None
            if failing and isinstance(kind, failing):
                raise NotSupportedError(
                    f"Table {self._table.loaded.table}: partition field {field.name}, {field.transform} of a {kind}, "
                    "is not written in Python",
                    "Nothing was written. Write these rows with Spark, or partition the table by another column.",
                )
        for one in _pyiceberg.partitions(metadata.spec(), metadata.schema(), df):
            rows = one.arrow_table_partition
            left -= len(rows)
            if not len(rows) or left < 0:
                raise NotSupportedError(
                    f"Table {self._table.loaded.table}: a partition of NaN, or of 0.0 and -0.0, is not written in "
                    "Python",
                    "Nothing was written. Write these rows with Spark, or partition the table by another column.",
                )
            yield one.partition_key, _pyiceberg.bin_pack_arrow_table(rows, size)


def _refuse(self: EncryptedTransaction, *_: Any, **__: Any) -> NoReturn:
    """Refused."""
    refuse_writing(self._table.loaded.table)


for _name in _REFUSED:
    setattr(EncryptedTransaction, _name, _refuse)


def _not_of_nulls(
    rewritten: BooleanExpression, schema: Schema, case_sensitive: bool
) -> BooleanExpression:
    """Have != say that null is not meant, as scans have it: PyIceberg would drop a whole file with such rows."""
    match rewritten:
        case And(left=left, right=right) | Or(left=left, right=right):
            parts = (_not_of_nulls(one, schema, case_sensitive) for one in (left, right))
            return type(rewritten)(*parts)
        case NotEqualTo() | NotNaN():
            bound = rewritten.bind(schema, case_sensitive)
            if isinstance(bound, BoundNotEqualTo | BoundNotNaN):
                return And(NotNull(term=rewritten.term), rewritten)
    return rewritten


def _with_defaults(df: Any, fields: list[NestedField]) -> Any:
    """Return rows with these columns, which have their defaults. A reader counts as read from its first row on."""
    more = schema_to_pyarrow(Schema(*fields))
    schema = pa.schema([*df.schema, *more], metadata=df.schema.metadata)

    def filled(rows: Any) -> Any:
        for at, one in enumerate(fields):
            value = pa.scalar(one.write_default, more.field(at).type)
            rows = rows.append_column(more.field(at), pa.repeat(value, len(rows)))
        return rows

    if isinstance(df, pa.Table):
        return filled(df)

    def taken() -> Iterator[pa.RecordBatch]:
        _READ.add(df)
        yield from map(filled, df)

    return pa.RecordBatchReader.from_batches(schema, taken())


def _run(write: Callable[[WriteTask], DataFile], tasks: Iterable[WriteTask]) -> list[DataFile]:
    """Write files at the same time. After an error none is being written any more."""
    running: list[Future[DataFile]] = []
    try:
        for task in tasks:
            running.append(ExecutorFactory.get_or_create().submit(write, task))
        return [one.result() for one in running]
    finally:
        for one in running:
            one.cancel()
        wait(running)


def _schema_of(arrow: pa.Schema, schema: Schema) -> Schema:
    return pyarrow_to_schema(arrow, schema.name_mapping, format_version=3)


class DataFileWriter:
    """Writes data files of one schema, as PyIceberg's `write_file` does."""

    def __init__(
        self, table: EncryptedTable, metadata: Any, schema: Schema, written: list[str]
    ) -> None:
        """Nothing is written yet; `written` gets the files' locations."""
        self._files, self._metadata = table.io, metadata
        self._schema = sanitize_column_names(schema)
        self._locations = table.location_provider()
        self._written = written
        self._length = data_key_length(self._files.table, metadata.properties)
        # row ids are found by their positions, not by their values
        none = {f"write.metadata.metrics.column.{one.name}": "none" for one in (_ROW_ID, _UPDATED)}
        self._properties = {**metadata.properties, **none}

    def write(self, task: WriteTask) -> DataFile:
        """Write one file, with a key and an AAD prefix of its own."""
        batches = [
            _pyiceberg.requested(
                self._schema,
                task.schema,
                batch,
                include_field_ids=True,
                format_model=ParquetFormatModel(),
            )
            for batch in task.record_batches
        ]
        name = task.generate_data_file_filename("parquet")
        location = self._locations.new_data_location(name, task.partition_key)
        self._written.append(location)
        output = self._files.parquet_output(location)
        key = KeyMetadata(os.urandom(self._length), os.urandom(16), None)
        with writing(self._files.table, location):
            with EncryptedParquetWriter(output, self._schema, self._properties, key) as writer:
                writer.write(pa.Table.from_batches(batches))
            length = len(output)
        made = DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.DATA,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=task.partition_key.partition if task.partition_key else Record(),
            file_size_in_bytes=length,
            key_metadata=KeyMetadata(key.key, key.aad_prefix, length).encode(),
            **self._statistics(writer, batches),
        )
        made.spec_id = self._metadata.default_spec_id
        return EncryptedDataFile.of(made, self._files.pickle_file_keys)

    def _statistics(self, writer: Any, batches: list[pa.RecordBatch]) -> dict[str, Any]:
        """Return PyIceberg's, without bounds of columns with NaN, which it does not count and bounds leave out."""
        told: dict[str, Any] = writer.result().to_serialized_dict()
        for field_id in self._schema.field_ids:
            if not isinstance(self._schema.find_type(field_id), FloatType | DoubleType):
                continue
            name = self._schema.find_column_name(field_id)
            columns = [one.column(name) for one in batches if name in one.schema.names]
            if not columns or any(pc.any(pc.is_nan(one)).as_py() for one in columns):
                for bounds in ("lower_bounds", "upper_bounds"):
                    told[bounds].pop(field_id, None)
        return told


class EncryptedParquetWriter(ParquetFormatWriter):
    """Writes a Parquet file with an encrypted footer; its AAD prefix is not stored in it."""

    def __init__(
        self, output: OutputFile, schema: Schema, properties: Properties, key: KeyMetadata
    ) -> None:
        """As of PyIceberg's; `key` is the file's."""
        super().__init__(output, schema, properties)
        self._parquet_writer_kwargs["encryption_properties"] = pe.create_encryption_properties(
            key.key, aad_prefix=key.aad_prefix, store_aad_prefix=False
        )


class NumberedRows(Rows):
    """Rows with their ids and the sequence numbers of their last updates, as they are or as they are inherited."""

    def opened(
        self, file: DataFile, dictionary_columns: tuple[str, ...] = ()
    ) -> AbstractContextManager[Any]:
        """Open a data or delete file."""
        stored = super().opened(file, dictionary_columns)
        is_numbered = isinstance(file, EncryptedDataFile) and file.first_row_id is not None
        return _numbered(stored, cast("EncryptedDataFile", file)) if is_numbered else stored


@contextmanager
def _numbered(
    stored: AbstractContextManager[Any], file: EncryptedDataFile
) -> Iterator[_NumberedFile]:
    with stored as opened:
        has_ids = all(_FIELD_ID in (field.metadata or {}) for field in opened.schema)
        yield _NumberedFile(opened, file) if has_ids else opened


class _NumberedFile:
    """A data file whose rows have ids, read without a condition: row ids go by positions."""

    def __init__(self, stored: Any, file: EncryptedDataFile) -> None:
        self._stored, self._file = stored, file
        missing = [one for one in (_ROW_ID, _UPDATED) if one.name not in stored.schema.names]
        self.schema = pa.schema([*stored.schema, *schema_to_pyarrow(Schema(*missing))])

    def batches(self, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        if condition is not None:
            raise ValueError("row ids go by positions, which a condition changes")
        at = self._file.first_row_id or 0
        stored = [name for name in columns if name in self._stored.schema.names]
        for batch in self._stored.batches(stored, None):
            inherited = {
                _ROW_ID.name: pa.array(range(at, at + len(batch)), pa.int64()),
                _UPDATED.name: pa.repeat(
                    pa.scalar(self._file.sequence_number, pa.int64()), len(batch)
                ),
            }
            at += len(batch)
            arrays = []
            for name in columns:
                has = batch.column(name) if name in stored else None
                if name in inherited:
                    has = inherited[name] if has is None else pc.coalesce(has, inherited[name])
                arrays.append(has)
            fields = [self.schema.field(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class EncryptedUpdate(UpdateSnapshot):
    """Makes snapshots of an encrypted table."""

    def fast_append(self) -> EncryptedAppend:
        """Append files."""
        return self._made(EncryptedAppend, Operation.APPEND)

    def merge_append(self) -> EncryptedMergeAppend:
        """Append files, and merge manifests."""
        return self._made(EncryptedMergeAppend, Operation.APPEND)

    def overwrite(self, commit_uuid: uuid.UUID | None = None) -> EncryptedOverwrite:
        """Replace files."""
        exists = self._transaction.table_metadata.snapshot_by_name(self._branch) is not None
        operation = Operation.OVERWRITE if exists else Operation.APPEND
        return self._made(EncryptedOverwrite, operation, commit_uuid=commit_uuid)

    def delete(self) -> EncryptedDelete:
        """Delete files."""
        return self._made(EncryptedDelete, Operation.DELETE)

    def _made(self, kind: type[_Made], operation: Operation, **more: Any) -> _Made:
        made = kind(
            operation=operation,
            transaction=self._transaction,
            io=self._io,
            branch=self._branch,
            snapshot_properties=self._snapshot_properties,
            **more,
        )
        made._compression = made._compression.lower()
        return made


class _Encrypted(SnapshotProducer[Any]):
    """What makes a snapshot: its manifests and its list are encrypted, and row ids are assigned.

    The transaction deletes what it wrote, if anyone does: PyIceberg's lists for that stay empty.
    """

    _transaction: Any
    _compression: Any

    def append_data_file(self, data_file: DataFile) -> Any:
        """Add a file that has a key; one without is refused."""
        if not isinstance(data_file, EncryptedDataFile):
            refuse_writing(self._table.loaded.table)
        return super().append_data_file(data_file)

    def new_manifest_writer(self, spec: PartitionSpec) -> EncryptedManifestWriter:
        """Write a manifest."""
        files = self._table.io
        name = f"{self.commit_uuid}-m{next(self._manifest_num_counter)}.avro"
        path = self._table.location_provider().new_metadata_location(name)
        self._transaction._written.append(path)
        return EncryptedManifestWriter(
            files.table,
            spec,
            self._schema_of(spec),
            files.encrypted_output(path, self._key_length),
            self._snapshot_id,
            self._compression,
        )

    def _schema_of(self, spec: PartitionSpec) -> Schema:
        """Return the newest schema with the columns of a spec: those of a former spec may be gone since.

        Raises:
            NotSupportedError: no schema has them any more, so the types of the partitions' values are not known.
        """
        metadata = self._transaction.table_metadata
        columns = {
            one.source_id for one in spec.fields if not isinstance(one.transform, VoidTransform)
        }
        schemas: list[Schema] = [self.schema(), *reversed(metadata.schemas)]
        for schema in schemas:
            if columns <= schema.field_ids:
                return schema
        raise NotSupportedError(
            f"Table {self._table.loaded.table} is not written in Python: this change is of files of partition spec "
            f"{spec.spec_id}, whose columns are in no schema of the table any more",
            "Nothing was committed. Make this change with Spark.",
        )

    @property
    def _table(self) -> EncryptedTable:
        return cast("EncryptedTable", self._transaction._table)

    @property
    def _key_length(self) -> int:
        return data_key_length(self._table.loaded.table, self._table.metadata.properties)

    def _commit(self) -> Any:
        """Write the manifests and their list, and return the snapshot; see PyIceberg's."""
        table, files = self._table, self._table.io
        metadata: Any = self._transaction.table_metadata
        branch = self._target_branch
        before = metadata.refs[branch].snapshot_id if branch in metadata.refs else None
        if branch is not None and before != self._parent_snapshot_id:
            raise CommitFailedException(
                f"Table {files.table}: another change was staged in this transaction since this one began, which would "
                "undo it. This one was not staged: make it again"
            )
        manifests = self._manifests()
        name = f"snap-{self._snapshot_id}-0-{self.commit_uuid}.avro"
        path = table.location_provider().new_metadata_location(name)
        self._transaction._written.append(path)
        output = files.encrypted_output(path, self._key_length)
        sequence, first = metadata.next_sequence_number(), metadata.next_row_id or 0
        with EncryptedManifestListWriter(
            output, first, self._snapshot_id, self._parent_snapshot_id, sequence, self._compression
        ) as writer:
            if manifests:
                writer.add_manifests(manifests)
        told: dict[str, Any] = {
            "snapshot-id": self._snapshot_id,
            "parent-snapshot-id": self._parent_snapshot_id,
            "manifest-list": path,
            "sequence-number": sequence,
            "summary": self._summary(self.snapshot_properties),
            "schema-id": metadata.current_schema_id,
            "first-row-id": first,
            "added-rows": writer.next_row_id - first,
            "key-id": files.keys.sealed(table.writing_kek(), output.written_with()),
        }
        added = AddSnapshotUpdate(snapshot=EncryptedSnapshot(**told))
        if branch is None:
            return (added,), ()
        ref: dict[str, Any] = {
            "snapshot-id": self._snapshot_id,
            "ref-name": branch,
            "type": SnapshotRefType.BRANCH,
        }
        required: dict[str, Any] = {"snapshot-id": before, "ref": branch}
        return (added, SetSnapshotRefUpdate(**ref)), (AssertRefSnapshotId(**required),)


class EncryptedAppend(_Encrypted, FastAppendFiles):
    """Appends files."""


class EncryptedMergeAppend(_Encrypted, MergeAppendFiles):
    """Appends files, and merges manifests."""


class EncryptedOverwrite(_Encrypted, OverwriteFiles):
    """Replaces files."""


class EncryptedDelete(_Encrypted, DeleteFiles):
    """Deletes files whose rows all match."""

    def _commit(self) -> Any:
        return super()._commit() if self.files_affected else ((), ())
