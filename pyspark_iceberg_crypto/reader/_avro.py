"""Avro data and delete files: fastavro reads them, and Arrow gets their rows with field ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import (
    IcebergType,
    ListType,
    MapType,
    StructType,
    UUIDType,
)
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import reading

_ROWS = 16_384  # of a batch


class AvroFile:
    """An Avro file whose header was read.

    Attributes:
        schema: its columns, with field ids.
    """

    def __init__(self, reader: Any, file: ExpectedFile) -> None:
        self._reader = reader
        self._file = file
        with reading(file):
            written = AvroSchemaConversion().avro_to_iceberg(
                json.loads(reader.metadata["avro.schema"])
            )
            self._type = written.as_struct()
            self.schema: pa.Schema = schema_to_pyarrow(written, include_field_ids=True)

    def batches(self, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows that meet a condition, in the file's order."""
        with reading(self._file):
            while rows := [_arrow(self._type, row) for row in islice(self._reader, _ROWS)]:
                batch = pa.Table.from_pylist(rows, schema=self.schema)
                if condition is not None:
                    batch = batch.filter(condition)
                yield from batch.select(columns).combine_chunks().to_batches()


@contextmanager
def opened(table: str, stored: InputFile) -> Iterator[AvroFile]:
    """Open an Avro file.

    Raises:
        TamperedError: it is not what was written.
        ConfigurationError: fastavro is not installed.
    """
    try:
        import fastavro
    except ModuleNotFoundError:
        raise ConfigurationError(
            f"Table {table} has Avro files, and fastavro is not installed, which reads them",
            "pip install 'pyspark-iceberg-crypto[reader]'",
        ) from None
    file = ExpectedFile(table, stored.location)
    with reading(file):
        stream: Any = stored.open()
    with stream:
        with reading(file):
            reader = fastavro.reader(stream)
        yield AvroFile(reader, file)


def _arrow(kind: IcebergType | Schema, value: Any) -> Any:
    """A value of fastavro as Arrow takes it."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {one.name: _arrow(one.field_type, value.get(one.name)) for one in kind.fields}
    if isinstance(kind, ListType):
        return [_arrow(kind.element_type, one) for one in value]
    if isinstance(kind, MapType):
        pairs = (
            value.items() if isinstance(value, dict) else ((e["key"], e["value"]) for e in value)
        )
        return [(_arrow(kind.key_type, k), _arrow(kind.value_type, v)) for k, v in pairs]
    if isinstance(kind, UUIDType) and isinstance(value, UUID):
        return value.bytes
    return value
