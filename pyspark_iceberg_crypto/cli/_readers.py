"""``readers``: which engines can open a table, and why not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli import _opening, _session, _shared
from pyspark_iceberg_crypto.cli._options import KmsCommand


@click.command(cls=KmsCommand)
@click.argument("table", metavar="TABLE")
@click.option("--catalog-conf", **_session.CATALOG_CONF)
@click.option("--config", **_session.CONFIG)
@_shared.output_option
def readers(
    table: str, catalog_conf: tuple[str, ...], config: Path | None, output: str, **kms: Any
) -> None:
    """Say which engines can open a table, and why others cannot.

    A TABLE is one of a catalog of the profile (lake.db.t), or the path of a table's folder or metadata file. Its
    metadata and the manifests of its current snapshot are read, no data. Neither Spark nor a JVM is needed, but
    PyIceberg: pip install 'pyspark-iceberg-crypto[reader]'.

    \b
    Examples:
      iceberg-crypto readers lake.db.t
      iceberg-crypto readers lake.db.t --output json

    Exit codes: 0 an engine can open it, 1 none can, or the metadata or a manifest is not what was written, 2 the
    table could not be read, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told(findings=True):
        from pyspark_iceberg_crypto.reader import table_readers

        wanted = _shared.pairs(catalog_conf)
        name = None if _names.is_path(table) else table
        found = table_readers(**_opening.place(table, wanted, config, kms), name=name)
        _shared.show_report(found, output)
    sys.exit(found.exit_code)
