"""``decrypt``: encrypted tables in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports._report import Changed
from pyspark_iceberg_crypto.verbs.encryption import decrypt_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@_session.command()
@_targets.targets
@_targets.confirm_option
def decrypt(targets: tuple[str, ...], confirm: bool, output: str) -> None:
    """Decrypt tables in place.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). The rows of a table are copied into
    plaintext files and compared; then one commit makes the copy the table. The encrypted files stay until
    remove_orphan_files deletes them.

    \b
    Examples:
      iceberg-crypto decrypt lake.db.t
      iceberg-crypto decrypt lake.db.t --confirm

    Exit codes: 0 it is done, 2 it could not be done, and nothing was changed unless the error says so, 64 the
    command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)

    def do(spark: SparkSession, table: str, confirm: bool) -> Changed:
        if confirm:
            return decrypt_table(spark, table, confirm=True)
        key_id = _jvm.run(spark, "master_key_use", table=table)["key_id"]
        return Changed(table, f"is encrypted with {key_id!r}; it would become plaintext", False)

    _targets.changes(targets, do, confirm, output)
