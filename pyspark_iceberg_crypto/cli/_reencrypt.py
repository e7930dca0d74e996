"""``reencrypt``: new keys for all files of a table, after one leaked."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.maintenance import reencrypt_table


@click.command()
@click.argument("table")
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of Iceberg's rewrite_data_files. Can be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Count files and bytes, and write nothing.")
@_shared.session_options
def reencrypt(
    table: str,
    options: tuple[str, ...],
    dry_run: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Write all files of a TABLE's main branch anew, under new keys: for when the key of a file leaked.

    Older snapshots, other branches and tags keep the files of before. The result says how to expire them.

    Exit code: 0 it is done, 1 some files of before are left in main, 2 it could not be done.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        given = _shared.pairs(options, example="target-file-size-bytes=536870912")
        done = reencrypt_table(spark, table, options=given, dry_run=dry_run)
        _shared.show_done(done, output)
    if not done.ok:
        sys.exit(_shared.PROBLEM)
