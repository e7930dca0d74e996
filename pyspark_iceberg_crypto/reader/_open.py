"""`open_table` and `create_table`, where a user starts; and which engines can open a table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.sorting import SortOrder

    from pyspark_iceberg_crypto.kms import KeyManagementClient
    from pyspark_iceberg_crypto.reports._readers import ReadersReport

SUPPORTED = "0.12"


def open_table(
    catalog: Catalog | str | Path,
    identifier: str | tuple[str, ...] | None = None,
    *,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    pickle_file_keys: bool = False,
) -> Table:
    """Open an Iceberg table, encrypted or not.

    What it returns is a `Table` of PyIceberg: `scan`, `refresh`, `inspect`, time travel, branches and incremental scans
    are PyIceberg's own. Before anything is read, the table's metadata is checked as far as the kind of its catalog
    allows; each file is decrypted and authenticated as it is read. `append`, `overwrite`, `delete` and `update_schema`
    write encrypted files; other changes of an encrypted table are refused.

    Args:
        catalog: a catalog of PyIceberg (REST, SQL, Hive, Glue); or a path: of a Hadoop warehouse, with an
            identifier; or of a table's folder or metadata file, without.
        identifier: the table's name, such as ``db.t``.
        kms: what unwraps the table's keys: a KMS of this package, or any object with
            ``unwrap_key(wrapped_key: bytes, wrapping_key_id: str) -> bytes``. Left out: the properties
            `encryption.kms-type` and `encryption.kms.*` say.
        properties: of the catalog, as Spark's catalogs have them: `encryption.*`; for a path also PyIceberg's own, such
            as `s3.endpoint`. They go before those of a PyIceberg catalog.
        pickle_file_keys: whether scans and their tasks can be pickled. A task then has the keys of its files with it,
            and whoever sees it can read them. Never pickled are the table's other keys, the KMS, and its settings.

    Raises:
        ConfigurationError: PyIceberg is missing or of another version; a property or an argument is wrong.
        TableNotFoundError: there is no such table.
        TamperedError: the metadata is not what was committed.
        AccessDeniedError: the table names a master key that the catalog does not allow; or the KMS refuses.
        PlaintextFoundError: the table is not encrypted, and the catalog refuses such tables.
        IcebergCryptoError: any other error; it names the table, and the file or the key id.
    """
    _require_pyiceberg()
    from pyspark_iceberg_crypto.reader import _load

    given = dict(properties or {})
    return _load.tables_of(catalog, identifier, kms, given, pickle_file_keys).load()


def create_table(
    catalog: Catalog | str | Path,
    identifier: str | tuple[str, ...],
    schema: Schema | pa.Schema,
    *,
    key_id: str,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    partition_spec: PartitionSpec | None = None,
    sort_order: SortOrder | None = None,
    table_properties: Mapping[str, str] | None = None,
) -> Table:
    """Create an encrypted table, of format version 3.

    The KMS wraps a first KEK, so a master key that cannot be used is found out before anything is written.

    Args:
        catalog: a SQL or REST catalog of PyIceberg, or the path of a Hadoop warehouse in a local file system.
        identifier: the table's name, such as ``db.t``.
        schema: its columns, of PyIceberg or Arrow.
        key_id: the id of its master key in the KMS.
        kms: as of `open_table`.
        properties: of the catalog, as of `open_table`.
        location: where its files are; left out, where the catalog puts them. Not for a Hadoop warehouse.
        partition_spec: its partitions; left out, it has none.
        sort_order: its sort order, which Spark's writers follow.
        table_properties: others of its properties, such as `encryption.data-key-length`.

    Returns:
        The table, as `open_table` does.

    Raises:
        pyiceberg.exceptions.TableAlreadyExistsError: there is a table of this name.
        ConfigurationError: PyIceberg is missing or of another version; a property or an argument is wrong.
        AccessDeniedError: the catalog does not allow the master key; or the KMS refuses.
        NotSupportedError: tables of this catalog, or with these properties, are not written without Spark.
        IcebergCryptoError: any other error; it names the table, or the key id.
    """
    _require_pyiceberg()
    from pyspark_iceberg_crypto.reader import _create, _mac

    own = _mac.without_anothers(table_properties or {})
    new = _create.New(key_id, schema, location, partition_spec, sort_order, own)
    return _create.create(catalog, identifier, new, kms, dict(properties or {}))


def table_readers(
    catalog: Catalog | str | Path,
    identifier: str | tuple[str, ...] | None = None,
    *,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
) -> ReadersReport:
    """Say which engines can open a table as it is now, and why others cannot.

    The metadata and the manifests of the current snapshot are read, no data. The KMS is asked for their KEKs, once for
    each.

    Args:
        catalog: as of `open_table`, and so are the next three.
        identifier: the table's name.
        kms: what unwraps the table's keys.
        properties: of the catalog.
        name: what to call the table in the report; None: as its catalog does.

    Raises:
        IcebergCryptoError: as `open_table`; or a manifest cannot be read, or is not what was written.
    """
    _require_pyiceberg()
    from pyspark_iceberg_crypto.reader import _readers
    from pyspark_iceberg_crypto.reader.proof._opened import Source

    return _readers.readers_of(Source(catalog, identifier, kms, dict(properties or {}), name))


@cache  # looking for it takes as long as reading metadata
def _require_pyiceberg() -> None:
    how: dict[str, Any] = {
        "hint": f"pip install 'pyspark-iceberg-crypto[reader]', which brings PyIceberg {SUPPORTED}"
    }
    try:
        version = metadata.version("pyiceberg")
    except metadata.PackageNotFoundError:
        raise ConfigurationError("PyIceberg is not installed, which reads tables", **how) from None
    if version.split(".")[:2] != SUPPORTED.split("."):
        raise ConfigurationError(
            f"PyIceberg {version} is installed, and encrypted tables are read with {SUPPORTED}",
            **how,
        )
