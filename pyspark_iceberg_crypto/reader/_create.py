"""New encrypted tables: checked, with a first KEK, and committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertCreate

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError, TableNotFoundError
from pyspark_iceberg_crypto.kms import CachedKms
from pyspark_iceberg_crypto.reader import _checks, _commit, _mac, _pyiceberg, _schemas, _write
from pyspark_iceberg_crypto.reader._hadoop import absolute, current_metadata, folder_of
from pyspark_iceberg_crypto.reader._keys import EncryptedKey, TableKeys
from pyspark_iceberg_crypto.reader._load import Tables, tables_of
from pyspark_iceberg_crypto.reader._table import OpenedTable


@dataclass(frozen=True)
class New:
    """What a new table has; see `create_table`."""

    key_id: str
    schema: Any
    location: str | None
    partition_spec: Any
    sort_order: Any
    table_properties: dict[str, str]

    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return {**self.table_properties, _checks.KEY_ID: self.key_id}


def create(
    catalog: Catalog | str | Path,
    identifier: str | tuple[str, ...],
    new: New,
    kms: Any,
    properties: dict[str, str],
) -> OpenedTable:
    """See `create_table`."""
    tables = tables_of(catalog, identifier, kms, properties)
    names = Catalog.identifier_to_tuple(identifier)
    table = ".".join(names if isinstance(catalog, (str, Path)) else (catalog.name, *names))
    client = _checked(table, new, tables)
    committer = tables.source.committer(table, tables.settings)
    if isinstance(committer, _commit.Rest):
        _on_server(table, names, new, tables, client)
    elif isinstance(committer, _commit.Sql):
        location = new.location or _pyiceberg.default_location(tables.source.catalog, names)
        path, stored = _made(table, new, location, 0, committer, tables, client)
        io = tables.source.io(path)
        committer.create(table, tables.source.catalog, names, io, path, stored)
    elif isinstance(committer, _commit.Hadoop):
        location = _of_warehouse(table, str(catalog), names, new)
        if _exists(tables.source.io(location), location):  # its version 1 may be gone
            raise TableAlreadyExistsError(f"Table {table} already exists")
        path, stored = _made(table, new, location, 1, committer, tables, client)
        try:
            committer.create(table, path, stored)
        except CommitFailedException as error:
            raise TableAlreadyExistsError(f"Table {table} already exists") from error
    return tables.load()


def _checked(table: str, new: New, tables: Tables) -> CachedKms:
    """Check what is asked for, before anything is written."""
    if not new.key_id.strip():
        raise ConfigurationError(
            f"Table {table} is to be encrypted, and key_id is empty",
            "Give the id of a master key in the KMS.",
        )
    if tables.kms is None:
        raise ConfigurationError(
            f"Table {table} is to be encrypted, and no KMS was given to create_table",
            "create_table(..., kms=...), or the property encryption.kms-type; docs/python.md has examples.",
        )
    for name in new.schema.column_names if isinstance(new.schema, Schema) else ():
        field = new.schema.find_field(name)
        if field.initial_default is not None or field.write_default is not None:
            raise ConfigurationError(
                f"Table {table} is to be created with a default of column {name}, which PyIceberg would drop",
                "Create it without, and then give the column its default: update_schema().set_default_value(...). "
                "Nothing was written.",
            )
    for name in ("format-version", _checks.KEY_ID):
        allowed = {"format-version": "3", _checks.KEY_ID: new.key_id}[name]
        if new.table_properties.get(name, allowed) != allowed:
            raise ConfigurationError(
                f"Table {table} is to be created with {name}={new.table_properties[name]}, and not {allowed}",
                "Leave it out of table_properties: encrypted tables have format version 3, and their key_id.",
            )
    _write.check_properties(table, _without_version(new.properties()), tables.settings)
    tables.settings.allowed_key_ids.check(table, {new.key_id})
    if _checks.authenticates(tables.source.trust, tables.settings):
        _checks.require_authenticated_wrapping(table, new.key_id, tables.kms)
    return tables.kms


def _made(
    table: str,
    new: New,
    location: str,
    version: int,
    committer: _commit.InStorage,
    tables: Tables,
    kms: CachedKms,
) -> tuple[str, bytes]:
    """Make the first metadata file."""
    metadata = _pyiceberg.new_metadata(
        new.schema,
        new.partition_spec or UNPARTITIONED_PARTITION_SPEC,
        new.sort_order or UNSORTED_SORT_ORDER,
        location.rstrip("/"),
        _without_version(new.properties()),
    )
    _schemas.require_columns(table, metadata, metadata.schema())
    made = metadata.model_dump(mode="json", exclude_none=True)
    document = _commit.in_order({**made, "encryption-keys": []})
    keys = TableKeys(table, document, kms.for_table(document["table-uuid"]))
    kek = _first_kek(keys, new, tables)
    document["encryption-keys"] = [kek.json()]
    return committer.made(document, version, keys, kek)


def _on_server(
    table: str, names: tuple[str, ...], new: New, tables: Tables, kms: CachedKms
) -> None:
    """Have a REST server create it: it chooses the table's UUID, which the KMS may need."""
    staged, changes = _pyiceberg.staged(
        tables.source.catalog,
        names,
        new.schema,
        new.location,
        new.partition_spec or UNPARTITIONED_PARTITION_SPEC,
        new.sort_order or UNSORTED_SORT_ORDER,
        {**new.properties(), "format-version": "3"},
    )
    if (version := staged.metadata.format_version) != 3:
        raise NotSupportedError(
            f"Table {table}: the catalog's server creates it with format version {version}, although 3 was requested",
            "Nothing was written. Use a version of the server that supports that format, or another catalog.",
        )
    keys = TableKeys(table, {}, kms.for_table(str(staged.metadata.table_uuid)))
    kek = _first_kek(keys, new, tables)
    changes.append(_commit.added_key(kek))
    try:
        _, document = _commit.Rest().post(table, staged, changes, (AssertCreate(),))
    except CommitFailedException as error:
        document = _found(tables)
        if not _has(document, kek):  # else a proxy asked twice
            raise TableAlreadyExistsError(f"Table {table} already exists") from error
    if not _has(document, kek):
        raise _commit.refused_server(table)


def _found(tables: Tables) -> dict[str, Any]:
    """Return what a REST server says of the table that is there; nothing if it does not answer."""
    try:
        return dict(tables.source.find().at.answer or {})
    except Exception:  # noqa: BLE001 (the error that led here counts)
        return {}


def _has(document: Mapping[str, Any], kek: EncryptedKey) -> bool:
    return kek.key_id in [one.get("key-id") for one in document.get("encryption-keys") or []]


def _first_kek(keys: TableKeys, new: New, tables: Tables) -> EncryptedKey:
    length = _write.data_key_length(keys.table, new.properties())
    return keys.for_writing(new.key_id, length, tables.settings.kek_max_age_days)


def _of_warehouse(table: str, warehouse: str, names: tuple[str, ...], new: New) -> str:
    if new.location is not None:
        raise ConfigurationError(
            f"Table {table} of a Hadoop catalog has no location but its folder in the warehouse",
            "Leave location out.",
        )
    if _mac.METADATA_PATH in new.table_properties:
        raise _commit.refused_path(table)
    path = folder_of(absolute(warehouse), names)
    return path if urlparse(path).scheme else f"file://{path}"


def _exists(io: FileIO, location: str) -> bool:
    try:
        current_metadata(io, location)
    except TableNotFoundError:
        return False
    return True


def _without_version(properties: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != "format-version"}
