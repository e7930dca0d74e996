"""``decrypt``: an encrypted table in place."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.encryption import decrypt_table


@click.command()
@click.argument("table")
@click.option("--allow-plaintext", is_flag=True, help="Has to be given.")
@_shared.session_options
def decrypt(
    table: str,
    allow_plaintext: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Make the encrypted TABLE (such as lake.db.t) a plaintext one in place.

    Its rows are copied into plaintext files and compared; then one commit makes the copy the table. The encrypted files
    stay until remove_orphan_files deletes them.

    Exit code: 0 it is done, 2 it could not be done, and nothing was changed.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        done = decrypt_table(spark, table, allow_plaintext=allow_plaintext)
        if output == "json":
            _shared.show_json(done.to_dict())
        else:
            _shared.show(done)
