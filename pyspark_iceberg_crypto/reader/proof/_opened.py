"""A table opened for proof: the same loading and checks as `open_table`, and its files as they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._checks import Loaded, Trust
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader._load import of_catalog
from pyspark_iceberg_crypto.reader._open import open_table
from pyspark_iceberg_crypto.reader._settings import Settings
from pyspark_iceberg_crypto.reader._table import EncryptedTable
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
        """Return the properties of the catalog, and those that go before them."""
        if isinstance(self.catalog, Catalog):
            return of_catalog(self.catalog, self.properties)
        return dict(self.properties)

    def client(self) -> CachedKms | None:
        """Return what unwraps keys; None: nothing says which KMS it is."""
        if self.kms is not None:
            return self.kms if isinstance(self.kms, CachedKms) else CachedKms(self.kms)
        properties = self.all_properties()
        named = any(name.lower().startswith("encryption.kms-") for name in properties)
        return from_properties(properties) if named else None

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
    table = open_table(
        source.catalog, source.identifier, kms=source.kms, properties=source.properties
    )
    is_path = not isinstance(source.catalog, Catalog)
    trust = Trust.POINTER if is_path else _pyiceberg.trust(source.catalog)  # type: ignore[arg-type]
    settings = Settings.of(source.all_properties())
    storage: Any = table.io
    if isinstance(table, EncryptedTable):
        loaded, storage = table.loaded, storage.stored
    else:
        loaded = _plaintext(source, table)
    if source.name is not None:
        loaded = replace(loaded, table=source.name)
    client = source.kms and source.kms.for_table(str(loaded.document.get("table-uuid")))
    keys = TableKeys(loaded.table, loaded.document, client)
    told = None if source.kms is None else str(source.kms)
    return Subject(loaded, keys, told, storage, trust, settings, client, lambda: _loaded(source))


def _plaintext(source: Source, table: Table) -> Loaded:
    document = json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True))
    name = ".".join(table.name())
    if isinstance(source.catalog, Catalog):
        name = f"{source.catalog.name}.{name}"
    return Loaded(name, table.metadata_location, document)
