"""A table opened for proof: the same loading and checks as `open_table`, and its files as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog

from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader._load import kms_of, load, of_catalog
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


def opened(source: Source) -> Subject:
    """Load a table, and check its metadata; errors are those of `open_table`."""
    return _loaded(replace(source, kms=source.client()))


def _loaded(source: Source) -> Subject:
    table = load(source.catalog, source.identifier, source.kms, dict(source.properties))
    tables, loaded = table._tables, table.loaded
    storage = table.io.stored if isinstance(table.io, EncryptedFileIO) else table.io
    if source.name is not None:
        loaded = replace(loaded, table=source.name)
    client = source.kms and source.kms.for_table(str(loaded.document.get("table-uuid")))
    keys = TableKeys(loaded.table, loaded.document, client)
    told = None if source.kms is None else str(source.kms)
    trust, settings = tables.source.trust, tables.settings
    return Subject(loaded, keys, told, storage, trust, settings, client, lambda: _loaded(source))
