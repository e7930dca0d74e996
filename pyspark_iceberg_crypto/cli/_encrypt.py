"""``encrypt``: plaintext tables in place, and their plaintext deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto.cli import _session, _shared, _targets
from pyspark_iceberg_crypto.encryption import (
    EncryptedTable,
    PurgedPlaintext,
    encrypt_table,
    purge_plaintext,
)
from pyspark_iceberg_crypto.errors import NotEncryptedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@_session.command()
@_targets.targets
@click.option("--key-id", metavar="KEY_ID", help="The master key of the KMS that it gets.")
@click.option("--purge", is_flag=True, help="Delete the plaintext of a table encrypted before.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    help="How much this call copies of each table; the next calls go on.",
)
@click.option("--dry-run", is_flag=True, help="Only say what there is to do.")
def encrypt(
    targets: tuple[str, ...],
    key_id: str | None,
    purge: bool,
    max_bytes: int | None,
    dry_run: bool,
    output: str,
) -> None:
    """Encrypt tables in place.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). The rows of a table are copied into
    encrypted files, every file is verified, all rows are compared; then one commit makes the copy the table. Others
    read and write it meanwhile. To go on after a crash, run it again.

    The plaintext stays until --purge, a call of its own, which lists and deletes it, and proves that none is left.

    \b
    Examples:
      iceberg-crypto encrypt lake.db.t --key-id sales --dry-run
      iceberg-crypto encrypt lake.db.t --key-id sales
      iceberg-crypto encrypt lake.db.t --purge

    Exit code: 0 it is done, 1 a part of it (--max-bytes), 2 it could not be done, and nothing was changed unless the
    error says so, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    if purge == (key_id is not None):
        raise click.UsageError("Give --key-id to encrypt the table, or --purge afterwards.")

    def do(spark: SparkSession, table: str) -> EncryptedTable | PurgedPlaintext:
        if key_id is None:
            return purge_plaintext(spark, table, dry_run=dry_run)
        return encrypt_table(spark, table, key_id, dry_run=dry_run, max_bytes=max_bytes)

    def code(done: EncryptedTable | PurgedPlaintext) -> int:
        is_part = isinstance(done, EncryptedTable) and done.files_left and not dry_run
        return _shared.PROBLEM if is_part else _shared.OK

    def paths(done: EncryptedTable | PurgedPlaintext) -> str:
        return "\n".join(done.paths) if isinstance(done, PurgedPlaintext) and dry_run else ""

    def skip(spark: SparkSession, table: str) -> str:
        if key_id is None:
            return ""
        try:
            _jvm.call(spark, "masterKeyUse", table)
        except NotEncryptedError:
            return ""
        return "it is encrypted already"

    _targets.act(targets, do, output, code, paths, skip)
