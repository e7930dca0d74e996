"""``decrypt``: encrypted tables in place."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.verbs.encryption import decrypt_table


@_session.command()
@_targets.targets
@click.option("--confirm", is_flag=True, help="Required, because the rows become plaintext.")
def decrypt(targets: tuple[str, ...], confirm: bool, output: str) -> None:
    """Decrypt tables in place.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). The rows of a table are copied into
    plaintext files and compared; then one commit makes the copy the table. The encrypted files stay until
    remove_orphan_files deletes them.

    \b
    Example:
      iceberg-crypto decrypt lake.db.t --confirm

    Exit code: 0 it is done, 2 it could not be done, and nothing was changed, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    _targets.act(
        targets,
        lambda spark, table: decrypt_table(spark, table, confirm=confirm),
        output,
    )
