"""A table's metadata: found, read once, checked; and the table that is made of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    NotSupportedError,
    TableNotFoundError,
    TamperedError,
)
from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader import _ags1, _checks, _document, _pyiceberg
from pyspark_iceberg_crypto.reader._checks import Loaded, Trust
from pyspark_iceberg_crypto.reader._commit import (
    Committer,
    Hadoop,
    Rest,
    Sql,
    local,
    refused_catalog,
    refused_file,
    refused_storage,
)
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._hadoop import absolute, current_metadata, folder_of
from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
from pyspark_iceberg_crypto.reader._keys import TableKeys, in_table
from pyspark_iceberg_crypto.reader._manifests import EncryptedSnapshot
from pyspark_iceberg_crypto.reader._pyiceberg import Found, Pointer, TableMetadata
from pyspark_iceberg_crypto.reader._settings import Settings
from pyspark_iceberg_crypto.reader._table import EncryptedTable, OpenedTable, PlaintextTable

_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$")
_LOOK_AGAIN_S = (0.01, 0.02, 0.04, 0.08, 0.16)  # name and hash are two rows of Hive's database


def tables_of(
    catalog: Catalog | str | Path,
    identifier: str | tuple[str, ...] | None,
    kms: Any,
    properties: dict[str, str],
    pickle_file_keys: bool = False,
) -> Tables:
    """Make what loads a table; arguments as of `open_table`."""
    if isinstance(catalog, Catalog):
        if identifier is None:
            raise ConfigurationError(
                "open_table needs a table's name", "open_table(catalog, 'db.t', kms=...)"
            )
        source: Source = OfCatalog(catalog, identifier)
        properties = of_catalog(catalog, properties)
    else:
        source = OfPath(str(catalog), identifier, properties)
    return Tables(source, kms_of(kms, properties), Settings.of(properties), pickle_file_keys)


def of_catalog(catalog: Catalog, properties: Mapping[str, str]) -> dict[str, str]:
    """Return what names the KMS and has the rules: the properties of a catalog with those of a call, which come first.

    A REST server may add properties to those that its catalog was made with, so there they are those of the call alone:
    Iceberg's own names, such as `kms.endpoint`, say where the KMS is, too.

    Raises:
        ConfigurationError: a REST catalog has a property of encryption that the call has not.
    """
    if _pyiceberg.trust(catalog) is Trust.SERVER:
        for name, value in catalog.properties.items():
            if name.lower().startswith("encryption.") and properties.get(name) != value:
                raise ConfigurationError(
                    f"Property {name} of REST catalog {catalog.name} may be one that its server sent",
                    "Nothing was read. Pass it to open_table, in properties=..., and not to the catalog.",
                )
        return dict(properties)
    return {**catalog.properties, **properties}


def kms_of(kms: Any, properties: Mapping[str, str]) -> CachedKms | None:
    """Return what unwraps keys, with a cache; None if nothing says which KMS it is."""
    if kms is not None:
        return kms if isinstance(kms, CachedKms) else CachedKms(kms)
    named = any(name.lower().startswith("encryption.kms-") for name in properties)
    return from_properties(properties) if named else None


class Source:
    """Where a table is loaded from, again with each refresh."""

    catalog: Catalog
    trust: Trust

    def find(self) -> Found:
        """Find the table, and read its metadata file once."""
        raise NotImplementedError

    def io(self, location: str) -> FileIO:
        """Make the FileIO of its files."""
        raise NotImplementedError

    def committer(self, table: str, settings: Settings) -> Committer:
        """Return what commits changes.

        Raises:
            NotSupportedError: the table is only read.
        """
        raise NotImplementedError

    def _read(self, name: str, location: str) -> bytes:
        file = ExpectedFile(name, location)
        try:
            with self.io(location).new_input(location).open() as stream:
                length = _ags1.length_of(stream, file)
                _document.require_length(location, length)
                stream.seek(0)
                return bytes(stream.read(length))
        except IcebergCryptoError as error:
            raise in_table(error, name) from error
        except Exception as error:
            raise file.unreadable(error) from error


class OfCatalog(Source):
    """A table of a PyIceberg catalog."""

    def __init__(self, catalog: Catalog, identifier: str | tuple[str, ...]) -> None:
        self.catalog = catalog
        self.trust = _pyiceberg.trust(catalog)
        self._identifier = identifier

    def find(self) -> Found:
        """Find the table, and read its metadata file once."""
        try:
            at = _pyiceberg.pointer(self.catalog, self._identifier)
        except NoSuchTableError as error:
            raise TableNotFoundError(
                f"There is no table {_name(self._identifier)} in catalog {self.catalog.name}",
                "Check the name, and that it is a table of Iceberg.",
            ) from error
        name = f"{self.catalog.name}.{'.'.join(at.identifier)}"
        return Found(at, name, None if at.answer is not None else self._read(name, at.location))

    def io(self, location: str) -> FileIO:
        """Make the FileIO of its files."""
        return _pyiceberg.file_io(self.catalog, location)

    def committer(self, table: str, settings: Settings) -> Committer:
        """Return what commits changes."""
        if self.trust is Trust.SERVER:
            return Rest()
        if _pyiceberg.type_of(self.catalog) != "jdbc":
            raise refused_catalog(table, self.catalog)
        return Sql(_checks.authenticates(self.trust, settings))


class OfPath(Source):
    """A table of a Hadoop warehouse, or one whose folder or metadata file is given."""

    trust = Trust.POINTER

    def __init__(
        self, path: str, identifier: str | tuple[str, ...] | None, properties: Mapping[str, str]
    ) -> None:
        self.catalog = NoopCatalog("path")
        self._path = absolute(path).rstrip("/")
        self._properties = properties
        self._name = self._path
        if identifier is not None:
            self._name = _name(identifier)
            self._path = folder_of(self._path, identifier)

    def find(self) -> Found:
        """Find the table, and read its metadata file once."""
        location = self._path
        if not _METADATA_FILE.search(location):
            location = current_metadata(self.io(location), location)
        at = Pointer(("path", self._name), location)
        return Found(at, self._name, self._read(self._name, location))

    def io(self, location: str) -> FileIO:
        """Make the FileIO of its files."""
        return _pyiceberg.file_io(self._properties, location)

    def committer(self, table: str, settings: Settings) -> Committer:
        """Return what commits changes."""
        if _METADATA_FILE.search(self._path):
            raise refused_file(table)
        if local(self._path) is None:
            raise refused_storage(table, self._path)
        return Hadoop(_checks.authenticates(self.trust, settings))


class Tables:
    """Loads one table, with its keys and checks."""

    def __init__(
        self,
        source: Source,
        kms: CachedKms | None,
        settings: Settings,
        pickle_file_keys: bool = False,
    ) -> None:
        self.source = source
        self.kms = kms
        self.settings = settings
        self.pickle_file_keys = pickle_file_keys

    def load(self, has_rows: bool = True) -> OpenedTable:
        """Load the table, and check its metadata; a hash of Hive that differs is looked at again.

        Args:
            has_rows: as of `made`.
        """
        for delay in _LOOK_AGAIN_S if self.source.trust is Trust.HIVE else ():
            try:
                return self.made(self.source.find(), has_rows)
            except TamperedError:
                time.sleep(delay)
        return self.made(self.source.find(), has_rows)

    def made(self, found: Found, has_rows: bool = True) -> OpenedTable:
        """Make a table of what was found, and check its metadata.

        Args:
            found: its metadata.
            has_rows: whether rows are read, of columns whose types PyIceberg has to know.
        """
        text = None if found.stored is None else _text(found)
        document = _parsed(found, text)
        loaded = Loaded(found.name, found.at.location, document, found.stored, found.at.parameters)
        kms = self._for_table(loaded)
        keys = TableKeys(found.name, loaded.document, kms)
        _checks.check(loaded, keys, kms, self.source.trust, self.settings)
        metadata = _metadata(found, document, text, has_rows)
        if problem := _document.contradiction(document):
            raise _contradictory(found, problem)
        io = found.at.io or self.source.io(found.at.location)
        kind: type[OpenedTable] = PlaintextTable
        if loaded.key_id is not None:
            kind = EncryptedTable
            metadata = _pyiceberg.with_snapshots(metadata, loaded.document, EncryptedSnapshot)
            io = EncryptedFileIO(
                io,
                found.name,
                keys,
                self.settings,
                pickle_file_keys=self.pickle_file_keys,
            )
        return kind(
            found.at.identifier,
            metadata,
            found.at.location,
            io,
            self.source.catalog,
            dict(found.at.config),
            tables=self,
            loaded=loaded,
        )

    def _for_table(self, loaded: Loaded) -> CachedKms:
        if self.kms is not None:
            return self.kms.for_table(str(loaded.document.get("table-uuid")))
        if loaded.was_encrypted:
            raise ConfigurationError(
                f"Table {loaded.table} is encrypted, and no KMS was given to open_table",
                "open_table(..., kms=...), or the property encryption.kms-type; docs/python.md has examples.",
            )
        return CachedKms(_NoKms())


class _NoKms:
    """Of tables without keys."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        raise NotImplementedError

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        raise NotImplementedError


def _text(found: Found) -> bytes:
    try:
        return _document.text(found.at.location, found.stored or b"")
    except IcebergCryptoError as error:
        raise in_table(error, found.name) from error


def _parsed(found: Found, text: bytes | None) -> dict[str, Any]:
    try:
        return _document.formed(found.at.answer) if text is None else _document.metadata(text)
    except (ValueError, RecursionError) as error:
        raise _not_metadata(found, error) from error


def _metadata(
    found: Found, document: Mapping[str, Any], text: bytes | None, has_rows: bool
) -> TableMetadata:
    try:
        return _pyiceberg.table_metadata(text or json.dumps(document).encode())
    except Exception as error:
        if unknown := _pyiceberg.unknown_types(document):
            if not has_rows:
                known = _pyiceberg.with_types(document, dict.fromkeys(unknown, "binary"))
                return _metadata(found, known, None, has_rows)
            raise NotSupportedError(
                f"Table {found.name} is not read in Python: it has, or had, columns of type {', '.join(unknown)}, "
                "which PyIceberg does not know",
                "Use Spark. verify_table, inspect_file and table_readers work in Python, too.",
            ) from error
        raise _not_metadata(found, error) from error


def _not_metadata(found: Found, why: object) -> IcebergCryptoError:
    return IcebergCryptoError(
        f"Table {found.name}: {found.at.location} is not the metadata of a table: {why}",
        "It was cut off or replaced, or a later version of Iceberg wrote it. Compare it with a backup or an object "
        "version.",
    )


def _contradictory(found: Found, problem: str) -> IcebergCryptoError:
    do = "Compare it with a backup or an object version."
    if found.stored is None:
        do = "Load the table again. If that does not help, ask whoever runs the REST server, whose answer it is."
    return IcebergCryptoError(
        f"Table {found.name}: its metadata {found.at.location} contradicts itself: {problem}",
        f"Nothing was read, as rows would be missing. {do}",
    )


def _name(identifier: str | tuple[str, ...]) -> str:
    return identifier if isinstance(identifier, str) else ".".join(identifier)
