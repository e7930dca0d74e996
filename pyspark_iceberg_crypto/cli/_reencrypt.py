"""``reencrypt``: new keys for all files of tables, after one leaked."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _session, _shared, _targets
from pyspark_iceberg_crypto.verbs.reencryption import reencrypt_table


@_session.command()
@_targets.targets
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of Iceberg's rewrite_data_files. Can be repeated.",
)
@_targets.confirm_option
def reencrypt(
    targets: tuple[str, ...], options: tuple[str, ...], confirm: bool, output: str
) -> None:
    """Rewrite all files of tables' main branches under new keys.

    This is for when the key of a file leaked. A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog
    (lake). Older snapshots, other branches and tags keep the earlier files. The result says how to expire them.

    \b
    Examples:
      iceberg-crypto reencrypt lake.db.t
      iceberg-crypto reencrypt lake.db.t --confirm \\
          --option target-file-size-bytes=536870912

    Exit codes: 0 it is done, 1 some earlier files are left in main, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        given = _shared.pairs(options, example="target-file-size-bytes=536870912")
    _targets.changes(
        targets,
        lambda spark, table, confirm: reencrypt_table(
            spark, table, options=given, dry_run=not confirm
        ),
        confirm,
        output,
        pending=lambda found: found.data_files + found.delete_files > 0,
    )
