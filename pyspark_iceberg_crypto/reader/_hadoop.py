"""Which metadata file of a folder is in force, as Iceberg's HadoopTableOperations finds it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlparse

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO

from pyspark_iceberg_crypto.errors import IcebergCryptoError, TableNotFoundError
from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import reading

_HINT = 64  # bytes of the file with the hint, which has a number
# Plain and gzip, the latter by either name; Iceberg looks for them in this order.
_VERSION = re.compile(r"v([0-9]{1,9})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_NAMES = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")


def current_metadata(io: FileIO, table: str) -> str:
    """Return the location of the newest version's metadata file.

    The hint may be behind, so later versions are looked for one by one. Without a hint the folder is listed.

    Args:
        io: how files are read.
        table: the table's folder.

    Raises:
        TableNotFoundError: there is no table.
        IcebergCryptoError: the version that the hint names is missing.
    """
    hinted = _hint(io, table)
    version = _highest(io, table) if hinted is None else hinted
    found = None if version is None else _version(io, table, version)
    if found is None and hinted is not None:
        raise IcebergCryptoError(
            f"Table {table}: the metadata file of version {hinted}, which version-hint.text names, is missing",
            "Nothing was read: an older version lacks the commits since. Restore the file from a backup or an object "
            "version; if a newer version is there, correct the hint.",
        )
    if found is None or version is None:
        raise TableNotFoundError(
            f"There is no table in {table}: metadata has no version-hint.text and no v<number>.metadata.json",
            "Give the folder of a Hadoop catalog's table; for tables of other catalogs the catalog, or the location of "
            "a metadata file.",
        )
    while later := _version(io, table, version + 1):
        found, version = later, version + 1
    return found


def absolute(path: str) -> str:
    """Make a local path absolute, as metadata has it; links in it stay, unless `..` follows one."""
    if urlparse(path).scheme:
        return path
    made = Path(path).absolute()
    return str(made.resolve() if ".." in made.parts else made)


def folder_of(warehouse: str, identifier: str | tuple[str, ...]) -> str:
    """Return the folder of a table in a warehouse: one folder for each part of its name, which may have dots."""
    return "/".join((warehouse.rstrip("/"), *Catalog.identifier_to_tuple(identifier)))


def _highest(io: FileIO, table: str) -> int | None:
    folder = f"{table}/metadata"
    with reading(ExpectedFile(table, folder)):
        versions = map(_VERSION.fullmatch, _pyiceberg.names_in(io, folder))
        return max((int(one[1]) for one in versions if one), default=None)


def _hint(io: FileIO, table: str) -> int | None:
    location = f"{table}/metadata/version-hint.text"
    with reading(ExpectedFile(table, location)):
        try:
            with io.new_input(location).open() as stream:
                text = bytes(stream.read(_HINT)).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return None
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _version(io: FileIO, table: str, version: int) -> str | None:
    for name in _NAMES:
        location = f"{table}/metadata/{name.format(version)}"
        with reading(ExpectedFile(table, location)):
            if io.new_input(location).exists():
                return location
    return None
