"""``prune``: a table's metadata without keys that nothing needs."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.maintenance import prune_encryption_keys


@click.command()
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Do everything but the commit.")
@_shared.session_options
def prune(
    table: str,
    dry_run: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Remove the keys that nothing needs from a TABLE's metadata, such as lake.db.t.

    For tables that grew under stock Iceberg, which keeps the keys of expired snapshots. Commits of this project's
    catalogs remove them by themselves.

    Exit code: 0 it is done, or there was nothing to remove, 2 it could not be done, and nothing was changed.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        _shared.show_done(prune_encryption_keys(spark, table, dry_run=dry_run), output)
