"""A Hive metastore, as far as loading a table asks it."""

import base64
import hashlib
from contextlib import nullcontext
from types import SimpleNamespace

from harness.encrypted_tables import Writer
from pyiceberg.catalog.hive import HiveCatalog


class Metastore:
    """The one call of a Hive metastore that a load makes."""

    def __init__(self, *tables: SimpleNamespace) -> None:
        self.tables = [*tables]

    def get_table(self, dbname: str, tbl_name: str) -> SimpleNamespace:
        return self.tables.pop(0) if len(self.tables) > 1 else self.tables[0]


def hive(*tables: SimpleNamespace) -> tuple[HiveCatalog, Metastore]:
    catalog, metastore = HiveCatalog.__new__(HiveCatalog), Metastore(*tables)
    catalog.name, catalog.properties = "lake", {}
    catalog._client = nullcontext(metastore)
    return catalog, metastore


def entry(writer: Writer, **changes: str) -> SimpleNamespace:
    """As Iceberg's Java keeps it: the hash is of compact JSON, which the writer's is."""
    digest = hashlib.sha256(writer.metadata.read_bytes()).digest()
    parameters = {
        "table_type": "ICEBERG",
        "metadata_location": writer.location,
        "encryption.key-id": "k1",
        "encryption.data-key-length": "16",
        "metadata_hash": base64.b64encode(digest).decode(),
    }
    return SimpleNamespace(dbName="db", tableName="t", parameters=parameters | changes)
