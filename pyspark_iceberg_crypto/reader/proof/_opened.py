"""A table opened for proof: the same loading and checks as `open_table`, and its files as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._checks import Loaded, Trust
from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader._load import kms_of, of_catalog, tables_of
from pyspark_iceberg_crypto.reader.proof import _named
from pyspark_iceberg_crypto.reader.proof._subject import Subject


@dataclass(frozen=True)
class Source:
    """Where a table is; arguments as of `open_table`.

    Attributes:
        name: what to call the table in reports; None: as its catalog does.
    """

    catalog: Catalog | str | Path
    identifier: str | tuple[str, ...] | None = None
    kms: Any = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str | None = None

    def all_properties(self) -> dict[str, str]:
        """Return what names the KMS and has the rules; see `of_catalog`."""
        if isinstance(self.catalog, Catalog):
            return of_catalog(self.catalog, self.properties)
        return dict(self.properties)

    def client(self) -> CachedKms | None:
        """Return what unwraps keys; None: nothing says which KMS it is."""
        return kms_of(self.kms, self.all_properties())

    def require_client(self) -> CachedKms:
        """Return what unwraps keys.

        Raises:
            ConfigurationError: nothing says which KMS it is.
        """
        return self.client() or from_properties(self.all_properties())


def opened(source: Source, all_snapshots: bool = False) -> Subject:
    """Load a table, and check its metadata; errors are those of `open_table`.

    Args:
        source: where it is.
        all_snapshots: whether its metadata has to list all snapshots that it has.

    Raises:
        IcebergCryptoError: a REST server does not list them, and its metadata file does not tell.
    """
    if isinstance(source.catalog, Catalog):  # a report says which snapshots were not checked
        source = replace(source, catalog=_pyiceberg.with_all_snapshots(source.catalog))
    return _loaded(replace(source, kms=source.client()), all_snapshots)


def _loaded(source: Source, all_snapshots: bool) -> Subject:
    given = dict(source.properties)
    tables = tables_of(source.catalog, source.identifier, source.kms, given)
    table = tables.load(has_rows=False)
    loaded = table.loaded
    storage = table.io.stored if isinstance(table.io, EncryptedFileIO) else table.io
    if source.name is not None:
        loaded = replace(loaded, table=source.name)
    trust, settings = tables.source.trust, tables.settings
    if all_snapshots and trust is Trust.SERVER and _named.lacks_snapshots(loaded.document):
        loaded = _whole(loaded, storage)
    client = source.kms and source.kms.for_table(str(loaded.document.get("table-uuid")))
    keys = TableKeys(loaded.table, loaded.document, client)
    if loaded.key_id is not None:
        settings.allowed_key_ids.check(loaded.table, keys.master_key_ids)
    told = None if source.kms is None else str(source.kms)
    return Subject(
        *(loaded, keys, told, storage, trust, settings, client),
        lambda: _loaded(source, all_snapshots),
    )


def _whole(loaded: Loaded, storage: Any) -> Loaded:
    """Add what a server does not list: it may tell of the heads of branches alone."""
    document, problem = _named.with_those_of_file(storage, loaded.document, loaded.location)
    if problem is not None:
        raise IcebergCryptoError(
            f"Table {loaded.table}: its REST server does not list all snapshots, and its metadata file "
            f"{loaded.location} does not tell of the others: {problem.words}",
            "Nothing was verified. Let the storage give access to that file, or the server list all snapshots; or "
            "verify without all_snapshots.",
        )
    return replace(loaded, document=document)
