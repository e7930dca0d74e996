"""``encrypt``: plaintext tables in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.errors import NotEncryptedError
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.verbs.encryption import encrypt_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@_session.command()
@_targets.targets
@click.option(
    "--key-id",
    metavar="KEY_ID",
    required=True,
    help="The table's new master key, a key of the KMS.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    help="How much this call copies of each table. The next calls continue.",
)
@click.option(
    "--throttle",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="How many bytes a second are copied at most, on average.",
)
@_targets.confirm_option
def encrypt(
    targets: tuple[str, ...],
    key_id: str,
    max_bytes: int | None,
    throttle: int | None,
    confirm: bool,
    output: str,
) -> None:
    """Encrypt tables in place.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). The rows of a table are copied into
    encrypted files, every file is verified, all rows are compared; then one commit makes the copy the table. Others
    can read and write it meanwhile. To continue after a crash, run it again.

    The plaintext stays until `iceberg-crypto purge` deletes it.

    \b
    Examples:
      iceberg-crypto encrypt lake.db.t --key-id k1
      iceberg-crypto encrypt lake.db.t --key-id k1 --confirm

    Exit codes: 0 it is done, 1 a part of it is done (--max-bytes), 2 it could not be done, and nothing was changed
    unless the error says so, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)

    def skip(spark: SparkSession, table: str) -> str:
        try:
            _jvm.run(spark, "master_key_use", table=table)
        except NotEncryptedError:
            return ""
        return "it is already encrypted"

    _targets.changes(
        targets,
        lambda spark, table, confirm: encrypt_table(
            spark, table, key_id, dry_run=not confirm, max_bytes=max_bytes, throttle=throttle
        ),
        confirm,
        output,
        skip=skip,
    )
