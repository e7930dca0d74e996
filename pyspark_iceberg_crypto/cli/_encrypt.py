"""``encrypt``: a plaintext table in place, and its plaintext deleted."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.encryption import (
    EncryptedTable,
    PurgedPlaintext,
    encrypt_table,
    purge_plaintext,
)


@click.command()
@click.argument("table")
@click.option("--key-id", metavar="KEY_ID", help="The master key of the KMS that it gets.")
@click.option("--purge", is_flag=True, help="Delete the plaintext of a table encrypted before.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    help="How much this call copies; the next calls go on.",
)
@click.option("--dry-run", is_flag=True, help="Only say what there is to do.")
@_shared.session_options
def encrypt(
    table: str,
    key_id: str | None,
    purge: bool,
    max_bytes: int | None,
    dry_run: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Encrypt TABLE (such as lake.db.t) in place.

    Its rows are copied into encrypted files, every file is verified, all rows are compared; then one commit makes the
    copy the table. Others read and write it meanwhile. To go on after a crash, run it again.

    The plaintext stays until --purge, a call of its own, which lists and deletes it, and proves that none is left.

    Exit code: 0 it is done, 1 a part of it (--max-bytes), 2 it could not be done, and nothing was changed unless the
    error says so.
    """
    if purge == (key_id is not None):
        raise click.UsageError("Give --key-id to encrypt the table, or --purge afterwards.")
    done: EncryptedTable | PurgedPlaintext
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        if key_id is None:
            done = purge_plaintext(spark, table, dry_run=dry_run)
        else:
            done = encrypt_table(spark, table, key_id, dry_run=dry_run, max_bytes=max_bytes)
        if output == "json":
            _shared.show_json(done.to_dict())
        else:
            _shared.show(done)
            if isinstance(done, PurgedPlaintext) and dry_run:
                _shared.show("\n".join(done.paths))
    if isinstance(done, EncryptedTable) and done.files_left and not dry_run:
        sys.exit(_shared.PROBLEM)
