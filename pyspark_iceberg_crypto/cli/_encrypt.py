"""``encrypt``: plaintext tables in place, and their plaintext deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.errors import NotEncryptedError
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.verbs.encryption import (
    EncryptReport,
    PurgeReport,
    encrypt_table,
    purge_plaintext,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@_session.command()
@_targets.targets
@click.option("--key-id", metavar="KEY_ID", help="The table's new master key, a key of the KMS.")
@click.option("--purge", is_flag=True, help="Delete the plaintext of a table encrypted before.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    help="How much this call copies of each table; the next calls continue.",
)
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="URI",
    help="With --purge: another folder in which old files are this table's alone. Repeatable.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="URI",
    help="With --purge: a folder in which nothing is deleted, because others need it. Repeatable.",
)
@click.option(
    "--accept-missing",
    is_flag=True,
    help="With --purge: finish even if metadata that named old files is lost.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def encrypt(
    targets: tuple[str, ...],
    key_id: str | None,
    purge: bool,
    max_bytes: int | None,
    folders: tuple[str, ...],
    keep: tuple[str, ...],
    accept_missing: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Encrypt tables in place.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). The rows of a table are copied into
    encrypted files, every file is verified, all rows are compared; then one commit makes the copy the table. Others
    can read and write it meanwhile. To continue after a crash, run it again.

    The plaintext stays until a separate call with --purge, which lists and deletes it, and proves that none is left.

    \b
    Examples:
      iceberg-crypto encrypt lake.db.t --key-id sales --dry-run
      iceberg-crypto encrypt lake.db.t --key-id sales
      iceberg-crypto encrypt lake.db.t --purge

    Exit code: 0 it is done, 1 a part of it (--max-bytes), or plaintext elsewhere was left (--purge), 2 it could not be
    done, and nothing was changed unless the error says so, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    if purge == (key_id is not None):
        raise click.UsageError("Give --key-id to encrypt the table, or --purge afterwards.")
    if not purge and (folders or keep or accept_missing):
        raise click.UsageError("--folder, --keep and --accept-missing are for --purge.")

    def do(spark: SparkSession, table: str) -> EncryptReport | PurgeReport:
        if key_id is None:
            return purge_plaintext(
                spark,
                table,
                dry_run=dry_run,
                folders=folders,
                keep=keep,
                accept_missing=accept_missing,
            )
        return encrypt_table(spark, table, key_id, dry_run=dry_run, max_bytes=max_bytes)

    def paths(done: EncryptReport | PurgeReport) -> str:
        if not isinstance(done, PurgeReport):
            return ""
        told = [
            *(f"not in its folders: {path}" for path in done.outside_paths),
            *(f"left: {path}" for path in done.left_paths),
            *(f"cannot be read: {gap}" for gap in done.gaps),
        ]
        return "\n".join([*(done.paths if dry_run else ()), *told])

    def skip(spark: SparkSession, table: str) -> str:
        if key_id is None:
            return ""
        try:
            _jvm.run(spark, "master_key_use", table=table)
        except NotEncryptedError:
            return ""
        return "it is already encrypted"

    _targets.act(targets, do, output, paths, skip)
