"""Changes of an encrypted table: PyIceberg's transactions, whose files are all encrypted.

Each file has a key and an AAD prefix of its own, of the system's random numbers. Parquet's modular encryption encrypts
data files with AES_GCM_V1, footer and columns with the same key; manifests and manifest lists are AES GCM streams.
"""

from __future__ import annotations

import itertools
import os
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as _compute
import pyarrow.parquet.encryption as pe
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import ALWAYS_TRUE, TableProperties
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.typedef import EMPTY_DICT, Properties, Record
from pyiceberg.types import DoubleType, FloatType, LongType, NestedField
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_int

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError
from pyspark_iceberg_crypto.reader import _checks, _commit, _mac, _pyiceberg
from pyspark_iceberg_crypto.reader._io import refuse_writing, writing
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._manifests import (
    EncryptedDataFile,
    EncryptedManifestListWriter,
    EncryptedManifestWriter,
    EncryptedSnapshot,
)
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

    from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
    from pyspark_iceberg_crypto.reader._keys import EncryptedKey
    from pyspark_iceberg_crypto.reader._settings import Settings
    from pyspark_iceberg_crypto.reader._table import EncryptedTable

pc: Any = _compute  # which makes its functions as it is imported
DATA_KEY_LENGTH = "encryption.data-key-length"
_LENGTHS = ("16", "24", "32")
_ROW_ID = NestedField(2147483540, "_row_id", LongType(), required=False)
_UPDATED = NestedField(2147483539, "_last_updated_sequence_number", LongType(), required=False)
_FIELD_ID = b"PARQUET:field_id"
# Table properties of encryption that do not change how files are written; value keys are for values, not for files.
_HARMLESS = ("encryption.plaintext-", "encryption.value-key.")
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
    values = {
        "write.format.default": ("parquet",),
        "write.parquet.page-version": ("v1", "parquet_1_0"),
        "write.location-provider.impl": (),
        "write.py-location-provider.impl": (),
    }
    for name, value in properties.items():
        allowed = values.get(name, None if name.startswith("encryption.") else (value.lower(),))
        if name in known or name.startswith(_HARMLESS):
            continue
        if allowed is None or value.lower() not in allowed:
            raise _not_written(table, f"it has {name}={value}")
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
            "Use 16, 24 or 32 (bytes).",
        )
    return int(value)


def writing_kek(table: EncryptedTable) -> EncryptedKey:
    """Return the KEK of a commit."""
    files = _files(table)
    length = data_key_length(files.table, table.metadata.properties)
    master_key = table.loaded.key_id or ""
    return files.keys.for_writing(master_key, length, files.settings.kek_max_age_days)


def _files(table: Any) -> EncryptedFileIO:
    return cast("EncryptedFileIO", table.io)


class EncryptedTransaction(Transaction):
    """A transaction of an encrypted table. What it does not write encrypted is refused."""

    _table: Any

    def __init__(self, table: EncryptedTable) -> None:
        """Begin; a KEK is there before a file is written."""
        super().__init__(table)
        self._written: list[str] = []
        self._began = table.metadata_location
        writing_kek(table)

    def _scan(
        self, row_filter: str | BooleanExpression = ALWAYS_TRUE, case_sensitive: bool = True
    ) -> DataScan:
        scan: DataScan = self._table.scan(row_filter, case_sensitive=case_sensitive)
        return scan.update(table_metadata=self.table_metadata)

    def update_snapshot(
        self, snapshot_properties: dict[str, str] = EMPTY_DICT, branch: str | None = MAIN_BRANCH
    ) -> EncryptedUpdate:
        """Make a snapshot, of the branch of the others; see `pyiceberg.table.Transaction.update_snapshot`."""
        if any(one._target_branch != branch for one in self._snapshot_producers):
            raise _not_written(
                self._table.loaded.table,
                f"branch {branch} would be the second one of a transaction",
            )
        return EncryptedUpdate(self, self._table.io, branch, snapshot_properties)

    def append(
        self,
        df: pa.Table | pa.RecordBatchReader,
        snapshot_properties: dict[str, str] = EMPTY_DICT,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Append rows; see `pyiceberg.table.Transaction.append`."""
        self._check(df)
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
        self._check(df)
        if overwrite_filter != AlwaysFalse():
            self.delete(
                overwrite_filter, snapshot_properties, case_sensitive, branch, Operation.OVERWRITE
            )
        self.append(df, snapshot_properties, branch)

    def delete(
        self,
        delete_filter: str | BooleanExpression,
        snapshot_properties: dict[str, str] = EMPTY_DICT,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        _isolation_operation: Operation | None = None,
    ) -> None:
        """Delete rows; see `pyiceberg.table.Transaction.delete`.

        Files with both kinds of rows are written again without those that are deleted, now or before. The other rows
        keep their row ids (specification, "Row Lineage").
        """
        properties = self.table_metadata.properties
        if properties.get(TableProperties.DELETE_MODE) == TableProperties.DELETE_MODE_MERGE_ON_READ:
            warnings.warn(
                "Merge on read is not yet supported, falling back to copy-on-write", stacklevel=2
            )
        if isinstance(delete_filter, str):
            delete_filter = _pyiceberg.parse_row_filter(delete_filter)
        isolation = _isolation_operation or Operation.DELETE
        update = self.update_snapshot(snapshot_properties, branch)
        with update.delete() as whole:
            whole._isolation_operation = isolation
            whole.delete_by_predicate(delete_filter, case_sensitive)
        if whole.rewrites_needed:
            commit_uuid = uuid.uuid4()
            replaced = self._without(delete_filter, case_sensitive, branch, commit_uuid)
            if replaced:
                with self.update_snapshot(snapshot_properties, branch).overwrite() as producer:
                    producer._isolation_operation = isolation
                    producer._starting_snapshot_id = whole._starting_snapshot_id
                    producer.commit_uuid = commit_uuid
                    producer.delete_by_predicate(delete_filter, case_sensitive)
                    for old, new in replaced:
                        producer.delete_data_file(old)
                        for file in new:
                            producer.append_data_file(file)
        elif not whole.files_affected:
            warnings.warn("Delete operation did not match any records", stacklevel=2)

    def commit_transaction(self) -> Any:
        """Commit; see `pyiceberg.table.Transaction.commit_transaction`.

        When it is certain that nothing was committed, the files that this transaction wrote are deleted.
        """
        producers = list(self._snapshot_producers)
        if self._table.metadata_location != self._began:  # another transaction, or a refresh
            self._failed = True
            self._delete_all(producers)
            raise CommitFailedException(_commit.changed(self._table.loaded.table))
        if self._updates:  # with none left PyIceberg does not try again: partitions, row ids and keys are those of then
            self._snapshot_producers = []
        try:
            table = super().commit_transaction()
        except Exception as error:
            if _commit.is_certain(error):
                made = self._table.has_any({one._snapshot_id for one in producers})
                if made:  # whoever answered had asked twice
                    raise _commit.unknown(self._table.loaded.table, error) from error
                if made is False:
                    self._delete_all(producers)
            if isinstance(error, CommitFailedException):
                told = f"{_commit.changed(self._table.loaded.table)}: {error}"
                raise CommitFailedException(told) from error
            raise
        committed = (
            one
            for made in producers
            for one in (*made._written_manifests, *made._written_manifest_lists)
        )
        _files(self._table).uncommitted.difference_update(self._written, committed)
        self._written.clear()
        return table

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Commit; or, after an error before the commit, delete the files that were written."""
        if isinstance(error, Exception) and not self._failed:
            self._delete_all(self._snapshot_producers)
        super().__exit__(kind, error, trace)

    def _apply(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()
    ) -> Transaction:
        self._table.refuse_others(updates)
        return super()._apply(updates, requirements)

    def _delete_all(self, producers: Iterable[Any]) -> None:
        for producer in producers:
            producer._clean_all_uncommitted()
        self._delete_written()

    def _delete_written(self) -> None:
        while self._written:
            location = self._written.pop()
            try:
                _files(self._table).delete(location)
            except FileNotFoundError:
                pass  # nothing was written yet
            except Exception as error:  # noqa: BLE001 (it is of no table; the error that led here counts)
                warnings.warn(f"{location} could not be deleted: {error}", stacklevel=2)

    def _check(self, df: Any) -> None:
        """Check that rows have the table's columns."""
        if not isinstance(df, pa.Table | pa.RecordBatchReader):
            raise ValueError(f"Expected pa.Table or pa.RecordBatchReader, got: {df}")
        metadata = self.table_metadata
        schema = metadata.schema()
        _pyiceberg.check_compatible(schema, df.schema, format_version=metadata.format_version)
        given = _schema_of(df.schema, schema)
        for name in schema.column_names:
            field = schema.find_field(name)
            if field.write_default != field.initial_default and name not in given.column_names:
                raise ConfigurationError(
                    f"Table {self._table.loaded.table}: column {name} is missing, and PyIceberg does not write its "
                    f"default, {field.write_default}",
                    "Add the column to the rows. Nothing was written.",
                )

    def _without(
        self, deleted: BooleanExpression, case_sensitive: bool, branch: str | None, commit_uuid: Any
    ) -> list[tuple[DataFile, list[DataFile]]]:
        """Write the files again that have rows of a filter, without these rows."""
        metadata = self.table_metadata
        schema = metadata.schema()
        kept = _pyiceberg.complementary(bind(schema, deleted, case_sensitive), schema)
        scan = self._scan(deleted, case_sensitive)
        counter = itertools.count()
        replaced: list[tuple[DataFile, list[DataFile]]] = []
        numbered = Schema(*schema.fields, _ROW_ID, _UPDATED)
        for task in (scan if branch is None else scan.use_ref(branch)).plan_files():
            rows = NumberedRows(metadata, _files(self._table), numbered, AlwaysTrue())
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
        run: Any = ExecutorFactory.get_or_create().map
        if isinstance(df, pa.RecordBatchReader):
            if not spec.is_unpartitioned():
                raise NotImplementedError(
                    "Rows of a partitioned table are given as a pa.Table, not as a pa.RecordBatchReader"
                )
            run = map  # one file's rows in memory
            parts = [(None, _pyiceberg.bin_pack_record_batches(df, size))]
        elif not len(df):
            parts = []
        elif spec.is_unpartitioned():
            parts = [(None, _pyiceberg.bin_pack_arrow_table(df, size))]
        else:
            parts = (
                (
                    one.partition_key,
                    _pyiceberg.bin_pack_arrow_table(one.arrow_table_partition, size),
                )
                for one in _pyiceberg.partitions(spec, schema, df)
            )
        tasks = (
            WriteTask(commit_uuid, next(numbers), given, batches, partition_key=key)
            for key, packed in parts
            for batches in packed
        )
        writer = DataFileWriter(self._table, metadata, file_schema or schema, self._written)
        return list(run(writer.write, tasks))


def _refused(name: str) -> Any:
    def refuse(self: EncryptedTransaction, *_: Any, **__: Any) -> NoReturn:
        refuse_writing(self._table.loaded.table)

    refuse.__name__, refuse.__doc__ = name, "Refused."
    return refuse


for _name in _REFUSED:
    setattr(EncryptedTransaction, _name, _refused(_name))


def _schema_of(arrow: pa.Schema, schema: Schema) -> Schema:
    return pyarrow_to_schema(arrow, schema.name_mapping, format_version=3)


class DataFileWriter:
    """Writes data files of one schema, as PyIceberg's `write_file` does."""

    def __init__(
        self, table: EncryptedTable, metadata: Any, schema: Schema, written: list[str]
    ) -> None:
        """Nothing is written yet; `written` gets the files' locations."""
        self._files, self._metadata = _files(table), metadata
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
        made: EncryptedAppend = self._made(EncryptedAppend, Operation.APPEND)
        return made

    def merge_append(self) -> EncryptedMergeAppend:
        """Append files, and merge manifests."""
        made: EncryptedMergeAppend = self._made(EncryptedMergeAppend, Operation.APPEND)
        return made

    def overwrite(self, commit_uuid: uuid.UUID | None = None) -> EncryptedOverwrite:
        """Replace files."""
        exists = self._transaction.table_metadata.snapshot_by_name(self._branch) is not None
        operation = Operation.OVERWRITE if exists else Operation.APPEND
        made: EncryptedOverwrite = self._made(
            EncryptedOverwrite, operation, commit_uuid=commit_uuid
        )
        return made

    def delete(self) -> EncryptedDelete:
        """Delete files."""
        made: EncryptedDelete = self._made(EncryptedDelete, Operation.DELETE)
        return made

    def _made(self, kind: Any, operation: Operation, **more: Any) -> Any:
        return kind(
            operation=operation,
            transaction=self._transaction,
            io=self._io,
            branch=self._branch,
            snapshot_properties=self._snapshot_properties,
            **more,
        )


class _Encrypted(SnapshotProducer[Any]):
    """What makes a snapshot: its manifests and its list are encrypted, and row ids are assigned."""

    def append_data_file(self, data_file: DataFile) -> Any:
        """Add a file that has a key; one without is refused."""
        if not isinstance(data_file, EncryptedDataFile):
            refuse_writing(self._table.loaded.table)
        return super().append_data_file(data_file)

    def new_manifest_writer(self, spec: PartitionSpec) -> EncryptedManifestWriter:
        """Write a manifest."""
        files = _files(self._table)
        name = f"{self.commit_uuid}-m{next(self._manifest_num_counter)}.avro"
        path = self._table.location_provider().new_metadata_location(name)
        self._written_manifests.append(path)
        return EncryptedManifestWriter(
            files.table,
            spec,
            self.schema(),
            files.encrypted_output(path, self._key_length),
            self._snapshot_id,
            self._compression,
        )

    @property
    def _table(self) -> EncryptedTable:
        return cast("EncryptedTable", self._transaction._table)

    @property
    def _key_length(self) -> int:
        return data_key_length(_files(self._table).table, self._table.metadata.properties)

    def _commit(self) -> Any:
        """Write the manifests and their list, and return the snapshot; see PyIceberg's."""
        table, files = self._table, _files(self._table)
        metadata: Any = self._transaction.table_metadata
        manifests = self._manifests()
        name = f"snap-{self._snapshot_id}-0-{self.commit_uuid}.avro"
        path = table.location_provider().new_metadata_location(name)
        self._written_manifest_lists.append(path)
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
            "key-id": files.keys.sealed(writing_kek(table), output.written_with()),
        }
        added = AddSnapshotUpdate(snapshot=EncryptedSnapshot(**told))
        branch = self._target_branch
        if branch is None:
            return (added,), ()
        before = metadata.refs[branch].snapshot_id if branch in metadata.refs else None
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
