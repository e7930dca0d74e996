"""Columns without which, or types with which, Iceberg's Java loads no table or reads no file of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.schema import Schema, promote
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import DecimalType, FloatType, IcebergType, IntegerType, UnknownType

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.reader._pyiceberg import TableMetadata

_PROMOTED = (IntegerType, FloatType, UnknownType)  # specification, "Schema Evolution"


def require_changes(table: str, metadata: TableMetadata, updates: Sequence[Any]) -> None:
    """Require changes of the schema that Java makes as well.

    Raises:
        ConfigurationError: one is of another kind.
    """
    schemas, before = [*metadata.schemas], metadata.schema()
    for update in updates:
        if isinstance(update, AddSchemaUpdate):
            _require_defaults(table, update.schema_)
            schemas.append(update.schema_)
        elif isinstance(update, SetCurrentSchemaUpdate):
            chosen = [one for one in schemas if update.schema_id in (-1, one.schema_id)]
            for schema in chosen[-1:]:
                _require_types(table, before, schema)
                require_columns(table, metadata, schema)
                before = schema


def require_columns(table: str, metadata: TableMetadata, schema: Schema) -> None:
    """Require the columns of the default partition spec and sort order.

    Raises:
        ConfigurationError: one is missing, or has a type that its transform does not take.
    """
    try:
        metadata.spec().check_compatible(schema)
        metadata.sort_order().check_compatible(schema)
    except ValidationError as error:
        raise ConfigurationError(
            f"Table {table} would not have the columns that its partitions or its sort order need: {error}",
            "Nothing was committed: Java clients could not load the table. Keep the column, or change the partitions "
            "or the sort order first, with Spark.",
        ) from error


def _require_defaults(table: str, schema: Schema) -> None:
    """Require defaults that JSON has: for others PyIceberg writes null, which a required column cannot have."""
    for one in map(schema.find_field, schema.field_ids):
        for default in (one.initial_default, one.write_default):
            if isinstance(default, float) and not math.isfinite(default):
                name = schema.find_column_name(one.field_id)
                raise ConfigurationError(
                    f"Column {name} of table {table} cannot have the default {default}: metadata has only finite "
                    "numbers",
                    "Nothing was committed. Give the column another default, or none, and have this value in the rows.",
                )


def _require_types(table: str, before: Schema, after: Schema) -> None:
    for one in before.field_ids & after.field_ids:
        former, new = before.find_type(one), after.find_type(one)
        if former != new and not _becomes(former, new):
            name = after.find_column_name(one)
            raise ConfigurationError(
                f"Column {name} of table {table} is of type {former}, which does not become {new}",
                "Nothing was committed. An int becomes a long, a float a double, and a decimal one with more digits; "
                "other clients could not read the files that there are by other types. Add another column instead.",
            )


def _becomes(former: IcebergType, new: IcebergType) -> bool:
    if not (former.is_primitive or new.is_primitive):
        return True  # what differs is in it, and looked at there
    if isinstance(former, DecimalType) and isinstance(new, DecimalType):
        return former.scale == new.scale and former.precision <= new.precision
    try:
        return isinstance(former, _PROMOTED) and promote(former, new) == new
    except ResolveError:
        return False
