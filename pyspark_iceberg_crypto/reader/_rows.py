"""The rows of planned files: read, without those that were deleted, in the columns that a scan asks for."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Collection, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as _compute
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.visitors import bind, extract_field_ids, translate_column_names
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import expression_to_pyarrow, pyarrow_to_schema
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table import FileScanTask
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StructType,
)
from pyiceberg.utils.concurrent import ExecutorFactory

from pyspark_iceberg_crypto.errors import NotSupportedError
from pyspark_iceberg_crypto.reader import _avro, _parquet, _pyiceberg
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import EncryptedFileIO, reading
from pyspark_iceberg_crypto.reader._manifests import EncryptedDataFile
from pyspark_iceberg_crypto.reader._pyiceberg import DataFile, TaskReader

pc: Any = _compute  # which makes its functions as it is imported
_AT_ONCE = 16  # files that are read ahead of who takes the rows
_PROMOTED = (IntegerType, FloatType, DecimalType)  # there are wider types, with other numbers
_Opened = _parquet.ParquetFile | _avro.AvroFile


@dataclass(frozen=True)
class _Ahead:
    """What is read ahead of who takes the rows.

    Attributes:
        part: bytes of rows, of each file.
        files: bytes of all of them together, as they are stored; a larger file is read alone.
    """

    part: int = 16 << 20
    files: int = 128 << 20

    def has_room(self, running: Collection[_Reading], task: FileScanTask) -> bool:
        size = sum(one.size for one in running) + task.file.file_size_in_bytes
        return not running or (len(running) < _AT_ONCE and size <= self.files)


class _Reading:
    """A file that is read in parts: the next one while the rows of the last are used."""

    def __init__(self, task: FileScanTask, batches: Iterator[pa.RecordBatch], part: int) -> None:
        self.size = task.file.file_size_in_bytes
        self.ended = False
        self._batches = batches
        self._part = part
        self._next = self._begin()

    def take(self) -> list[pa.RecordBatch]:
        """Return the next part, and begin the one after it."""
        found, self.ended = self._next.result()
        if not self.ended:
            self._next = self._begin()
        return found

    def cancel(self) -> None:
        """Close the file, once what is being read of it is read."""
        self._next.cancel()
        self._next.add_done_callback(lambda _: cast("Generator[Any]", self._batches).close())

    def _begin(self) -> Future[tuple[list[pa.RecordBatch], bool]]:
        return ExecutorFactory.get_or_create().submit(self._read)

    def _read(self) -> tuple[list[pa.RecordBatch], bool]:
        batches, size = [], 0
        for batch in self._batches:
            batches.append(batch)
            size += batch.nbytes
            if size >= self._part:
                return batches, False
        return batches, True


class Rows(TaskReader):
    """PyIceberg's reader of tasks, for encrypted files.

    It also reads Avro and applies equality deletes. Of the rows that are read ahead, some are in memory, not all.
    """

    files: EncryptedFileIO
    _ahead = _Ahead()

    def to_table(self, tasks: Iterable[FileScanTask]) -> pa.Table:
        """Read the rows of tasks, in their order, all into memory: so nothing waits until rows are taken."""
        self._ahead = _Ahead(sys.maxsize, sys.maxsize)
        return super().to_table(tasks)

    def to_record_batches(self, tasks: Iterable[FileScanTask]) -> Iterator[pa.RecordBatch]:
        """Read the rows of tasks, in their order.

        Files are read in parts, which wait until they are taken: not in a thread, which another scan may need.
        """
        tasks = list(tasks)
        deletes = _Deletes(self, tasks)
        waiting = deque(tasks)
        running: deque[_Reading] = deque()
        left = self.limit
        try:
            while waiting or running:
                while waiting and self._ahead.has_room(running, waiting[0]):
                    task = waiting.popleft()
                    rows = self._limited(self._batches(task, deletes))
                    running.append(_Reading(task, rows, self._ahead.part))
                batches = running[0].take()
                if running[0].ended:
                    running.popleft()
                for batch in batches:
                    if left is not None:
                        batch = batch.slice(0, left)
                        left -= len(batch)
                    yield batch
                    if left == 0:
                        return
        finally:
            for one in running:
                one.cancel()

    def _limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = self.limit
        for batch in batches:
            yield batch if left is None else batch.slice(0, left)
            if left is not None and (left := left - len(batch)) <= 0:
                return

    def _batches(self, task: FileScanTask, deletes: _Deletes) -> Iterator[pa.RecordBatch]:
        file, metadata = task.file, self.table_metadata
        positions, equality = deletes.positions_of(task), deletes.equality_of(task)
        with self.opened(file, self.dictionary_columns) as stored:
            schema = self.schema_of(stored)
            is_stored = self._has_filtered(schema)
            wanted = self.projected if is_stored else self._with_those_of_filter()
            missing = _pyiceberg.missing_values(
                file,
                wanted,
                metadata.schema(),
                metadata.specs().get(file.spec_id),
                schema.field_ids,
            )
            condition, by_files = self._condition(schema) if is_stored else (None, None)
            ids = self.projected_ids.union(*(one.ids for one in equality), _around(wanted, schema))
            read = prune_columns(schema, ids, select_full_types=False)
            columns = [column.name for column in read.columns]
            at = 0
            for batch in stored.batches(columns, None if positions else by_files):
                at += len(batch)
                if positions:
                    batch = batch.take(_pyiceberg.combine_positions(positions, at - len(batch), at))
                if positions or by_files is None:
                    batch = _filtered(batch, condition)
                for one in equality:
                    batch = one.without(batch, read, file)
                if len(batch):
                    batch = _pyiceberg.requested(
                        wanted,
                        read,
                        batch,
                        downcast_ns_timestamp_to_us=self.downcasts,
                        projected_missing_fields=missing,
                        allow_timestamp_tz_mismatch=True,
                    )
                    if not is_stored:
                        with reading(ExpectedFile(self.files.table, file.file_path)):
                            batch = self._shown(wanted, batch)
                    yield batch

    def _has_filtered(self, schema: Schema) -> bool:
        """Whether a file has the columns of the filter, in types that have all numbers of the table's."""
        table, ids = self.table_metadata.schema(), extract_field_ids(self.row_filter)
        return ids <= schema.field_ids and not any(
            isinstance(schema.find_type(one), _PROMOTED)
            and schema.find_type(one) != table.find_type(one)
            for one in ids
        )

    def _with_those_of_filter(self) -> Schema:
        """Return the columns that are asked for, and those of the filter."""
        schema = self.table_metadata.schema()
        return prune_columns(schema, self.projected_ids, select_full_types=False)

    def _shown(self, schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are meant, and of them what is asked for.

        A filter of columns that a file lacks is about their defaults, values of partitions and nulls; one of columns
        that have another type since, about their values in that. These are there by now.
        """
        condition = expression_to_pyarrow(self.row_filter, self.table_metadata.schema())
        return _pyiceberg.requested(self.projected, schema, _filtered(batch, condition))

    def opened(
        self, file: DataFile, dictionary_columns: tuple[str, ...] = ()
    ) -> AbstractContextManager[_Opened]:
        """Open a data or delete file."""
        files = self.files
        stored = _stored(files, file)
        if file.file_format == FileFormat.PARQUET:
            return _parquet.opened(files.table, stored, dictionary_columns)
        if file.file_format == FileFormat.AVRO:
            return _avro.opened(files.table, stored)
        raise NotSupportedError(
            f"Table {files.table}: {file.file_path} is not read: its format is {file.file_format.name}",
            "Encrypted tables have Parquet and Avro files: Iceberg does not encrypt ORC.",
        )

    def schema_of(self, stored: _Opened) -> Schema:
        """Return the columns of a file as Iceberg has them."""
        return pyarrow_to_schema(
            stored.schema,
            self.table_metadata.name_mapping(),
            downcast_ns_timestamp_to_us=self.downcasts,
            format_version=self.table_metadata.format_version,
        )

    def _condition(self, schema: Schema) -> tuple[Any, Any]:
        """Return which rows are meant, and what of that Arrow may ask of files: it leaves out their NaN by minima."""
        if isinstance(self.row_filter, AlwaysTrue):
            return None, None
        translated = translate_column_names(
            self.row_filter, schema, case_sensitive=self.case_sensitive
        )
        bound = bind(schema, translated, case_sensitive=self.case_sensitive)
        condition = expression_to_pyarrow(bound, schema)
        kinds = [schema.find_type(one) for one in extract_field_ids(bound)]
        has_nan = any(isinstance(one, FloatType | DoubleType) for one in kinds)
        return condition, None if has_nan else condition


class _Deletes:
    """The deletes of tasks, each file of them read once."""

    def __init__(self, rows: Rows, tasks: list[FileScanTask]) -> None:
        self._rows = rows
        wanted = {task.file.file_path for task in tasks}
        by_equality: dict[str, DataFile] = {}
        by_position: dict[str, list[DataFile]] = defaultdict(list)
        for file in (file for task in tasks for file in task.delete_files):
            if file.content == DataFileContent.EQUALITY_DELETES:
                by_equality[file.file_path] = file
            else:
                by_position[file.file_path].append(file)  # a Puffin file has vectors of several
        executor = ExecutorFactory.get_or_create()
        found = executor.map(lambda files: self._positions(files, wanted), by_position.values())
        self._positions_by = dict(zip(by_position, found, strict=True))
        read = executor.map(lambda file: _Equality(rows, file), by_equality.values())
        self._equality = dict(zip(by_equality, read, strict=True))

    def positions_of(self, task: FileScanTask) -> list[pa.ChunkedArray]:
        """The positions that a task's own delete files have of its data file."""
        path = task.file.file_path
        paths = {one.file_path for one in task.delete_files} & self._positions_by.keys()
        return [self._positions_by[one][path] for one in paths if path in self._positions_by[one]]

    def equality_of(self, task: FileScanTask) -> list[_Equality]:
        return [
            self._equality[one.file_path]
            for one in task.delete_files
            if one.file_path in self._equality
        ]

    def _positions(
        self, delete_files: list[DataFile], wanted: set[str]
    ) -> dict[str, pa.ChunkedArray]:
        """Read one file, which may be listed once for each deletion vector in it."""
        files, file = self._rows.files, delete_files[0]
        if file.file_format == FileFormat.PUFFIN:
            expected = ExpectedFile(files.table, file.file_path)
            with reading(expected):
                with _stored(files, file).open() as stream:
                    puffin = PuffinFile(bytes(stream.read()))
                vectors = zip(
                    puffin.footer.blobs, deletion_vectors_from_puffin_file(puffin), strict=True
                )
                by_place = {
                    (one.referenced_data_file, blob.offset, blob.length): one
                    for blob, one in vectors
                }
            found = {}
            for one in delete_files:
                place = one.vector if isinstance(one, EncryptedDataFile) else None
                if place not in by_place:
                    raise expected.changed(
                        "it has no deletion vector where its manifest says that there is one"
                    )
                found[place[0]] = by_place[place].to_vector()
            return found
        with self._rows.opened(file, ("file_path",)) as stored:
            batches = list(stored.batches(["file_path", "pos"], None))
        parts: dict[str, list[pa.Array]] = defaultdict(list)
        for batch in batches:
            paths = batch.column("file_path")
            for path in wanted.intersection(paths.unique().to_pylist()):
                parts[path].append(batch.column("pos").filter(pc.equal(paths, path)))
        return {path: pa.chunked_array(chunks) for path, chunks in parts.items()}


def _stored(files: EncryptedFileIO, file: DataFile) -> InputFile:
    if isinstance(file, EncryptedDataFile):
        return files.open(file.file_path, file.listed)
    return files.new_input(file.file_path)


class _Equality:
    """An equality delete file: it deletes rows whose values in some columns are those of a row of it; null is null."""

    def __init__(self, rows: Rows, file: DataFile) -> None:
        self._table = rows.files.table
        self.ids = set(file.equality_ids or ())
        if not self.ids:
            raise ExpectedFile(self._table, file.file_path).unreadable(
                "its manifest does not say by which columns it deletes"
            )
        schemas = [rows.table_metadata.schema(), *reversed(rows.table_metadata.schemas)]
        # a column may be gone since, and deletes by it apply still
        self._columns = [
            prune_columns(next(one for one in schemas if column in one.field_ids), {column}, False)
            for column in sorted(self.ids)
        ]
        with rows.opened(file) as stored:
            schema = rows.schema_of(stored)
            read = prune_columns(schema, self.ids, select_full_types=False)
            names = [column.name for column in read.columns]
            batches = [self._values(batch, read, file) for batch in stored.batches(names, None)]
        self._deleted = [pa.chunked_array(parts) for parts in zip(*batches, strict=True)]

    def without(self, batch: pa.RecordBatch, schema: Schema, file: DataFile) -> pa.RecordBatch:
        """Return the rows of a data file that are not deleted."""
        if not self._deleted or not len(batch):
            return batch
        count = len(self._deleted[0])
        codes = pa.repeat(pa.scalar(0, pa.int64()), count + len(batch))
        for deleted, values in zip(self._deleted, self._values(batch, schema, file), strict=True):
            both = pa.chunked_array([*deleted.chunks, values.cast(deleted.type)])
            many = pa.scalar(len(codes) + 1, pa.int64())
            codes = _codes(pc.add(pc.multiply(codes, many), _codes(both.combine_chunks())))
        gone = pc.is_in(codes.slice(count), value_set=codes.slice(0, count))
        return batch.filter(pc.invert(gone))

    def _values(self, batch: pa.RecordBatch, schema: Schema, file: DataFile) -> list[pa.Array]:
        """The values of the columns by which it deletes, in the types that the table has now."""
        found = []
        for column in self._columns:
            with reading(ExpectedFile(self._table, file.file_path)):
                values = _pyiceberg.requested(
                    column, schema, batch, allow_timestamp_tz_mismatch=True
                ).column(0)
            kind = column.fields[0].field_type
            while isinstance(kind, StructType):
                values, kind = pc.struct_field(values, [0]), kind.fields[0].field_type
            found.append(values.storage if isinstance(values, pa.ExtensionArray) else values)
        return found


def _codes(values: pa.Array) -> pa.Array:
    """Return numbers that are equal where values are equal, or both null."""
    encoded = values.dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64())


def _around(wanted: Schema, schema: Schema) -> set[int]:
    """Return what a file has of columns of which it lacks a part: that says where a struct, list or map is null."""
    columns = (
        Schema(schema.find_field(one.field_id))
        for one in wanted.fields
        if one.field_id in schema.field_ids and not Schema(one).field_ids <= schema.field_ids
    )
    return {
        part
        for column in columns
        for part in column.field_ids
        if not isinstance(column.find_type(part), ListType | MapType)
    }


def _filtered(batch: pa.RecordBatch, condition: Any) -> pa.RecordBatch:
    if condition is None or not len(batch):
        return batch
    kept = pa.Table.from_batches([batch]).filter(condition).combine_chunks().to_batches()
    return kept[0] if kept else batch.slice(0, 0)
