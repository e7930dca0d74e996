"""``purge``: the plaintext that tables had before they were encrypted in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports._text import visible
from pyspark_iceberg_crypto.verbs.encryption import PurgeReport, purge_plaintext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@_session.command()
@_targets.targets
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="URI",
    help="Another folder in which old files are this table's alone. Can be repeated.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="URI",
    help="A folder in which nothing is deleted, because others need it. Can be repeated.",
)
@click.option(
    "--accept-missing",
    is_flag=True,
    help="Finish even if metadata that named old files is lost.",
)
@_targets.confirm_option
def purge(
    targets: tuple[str, ...],
    folders: tuple[str, ...],
    keep: tuple[str, ...],
    accept_missing: bool,
    confirm: bool,
    output: str,
) -> None:
    """Delete the plaintext of tables that `iceberg-crypto encrypt` encrypted.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). Without --confirm, the files are
    listed. With it they are deleted, and it is proved that no plaintext of the table is left. What the table was before
    cannot be read any more.

    \b
    Examples:
      iceberg-crypto purge lake.db.t
      iceberg-crypto purge lake.db.t --confirm

    Exit codes: 0 it is done, 1 plaintext elsewhere is left, or, without --confirm, what --folder, --keep or
    --accept-missing would have to settle first, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)

    def paths(done: PurgeReport) -> str:
        told = [
            *(() if done.committed else done.paths),
            *(f"not in its folders: {path}" for path in done.outside_paths),
            *(f"left: {path}" for path in done.left_paths),
            *(f"cannot be read: {gap}" for gap in done.gaps),
        ]
        return "\n".join(map(visible, told))

    def skip(spark: SparkSession, table: str) -> str:
        use = _jvm.run(spark, "master_key_use", table=table)
        return "" if use["has_old_plaintext"] else "it has no plaintext to purge"

    _targets.changes(
        targets,
        lambda spark, table, confirm: purge_plaintext(
            spark,
            table,
            dry_run=not confirm,
            folders=folders,
            keep=keep,
            accept_missing=accept_missing,
        ),
        confirm,
        output,
        paths,
        skip=skip,
        pending=lambda found: not found.outside and (accept_missing or not found.gaps),
    )
