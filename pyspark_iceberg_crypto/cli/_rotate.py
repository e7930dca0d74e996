"""``rotate``: other keys for existing tables."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli import _session, _shared, _targets
from pyspark_iceberg_crypto.verbs.rotation import (
    RotateKekReport,
    RotateMasterKeyReport,
    rotate_kek,
    rotate_master_key,
)
from pyspark_iceberg_crypto.verbs.rotation_many import RotateCatalogReport, rotate_catalog


@_session.command()
@_targets.targets
@click.option("--new-key-id", metavar="KEY_ID", help="Another master key of the same KMS.")
@click.option("--kek", is_flag=True, help="Make a new KEK; the master key stays.")
@click.option("--rewrap", is_flag=True, help="With --kek: have existing snapshots use the new KEK.")
@click.option(
    "--from-catalog",
    metavar="NAME",
    help="A catalog that the profile, --conf or spark-defaults.conf sets up with the KMS that the tables have, when "
    "TARGET's is another one.",
)
@click.option(
    "--older-than-days",
    type=float,
    metavar="DAYS",
    help="With --kek, of many tables: those whose newest KEK is older.",
)
@click.option("--again", is_flag=True, help="Of many tables, also those that have the wanted key.")
@_targets.confirm_option
def rotate(
    targets: tuple[str, ...],
    new_key_id: str | None,
    kek: bool,
    rewrap: bool,
    from_catalog: str | None,
    older_than_days: float | None,
    again: bool,
    confirm: bool,
    output: str,
) -> None:
    """Change a key of tables without rewriting a file.

    A TARGET is a table (lake.db.t, or its path), or all tables of a namespace (lake.db.*) or of a catalog (lake).
    Those that already have the wanted master key in its newest version are skipped.

    Without options, the newest version of its master key wraps the table's KEKs from now on; first create one with
    `iceberg-crypto kms rotate-key`. With --new-key-id, another master key does. With --kek, the table gets a new KEK.
    Without --confirm everything is done but the commit, calls of the KMS included.

    \b
    Examples:
      iceberg-crypto rotate lake.db.t
      iceberg-crypto rotate 'lake.db.*' --new-key-id k2
      iceberg-crypto rotate lake --confirm \\
          --kek --older-than-days 730

    Exit codes: 0 it is done, 1 some of the tables are left, or the KMS has no newer version of a named table's master
    key, 2 it could not be done, and nothing was changed unless the error says so, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    if kek and new_key_id is not None:
        raise click.UsageError("--kek and --new-key-id are two rotations: do one after the other.")
    if kek and from_catalog is not None:
        raise click.UsageError("--from-catalog is for the master key.")
    if rewrap and not kek:
        raise click.UsageError("--rewrap is for --kek.")
    if (again or older_than_days is not None) and not all(map(_names.is_whole, targets)):
        raise click.UsageError("--again and --older-than-days are for many tables.")

    def rotated(
        target: str, confirm: bool
    ) -> RotateMasterKeyReport | RotateKekReport | RotateCatalogReport:
        if _names.is_whole(target):
            return rotate_catalog(
                spark,
                target,
                new_key_id,
                kek=kek,
                rewrap=rewrap,
                from_catalog=from_catalog,
                older_than_days=older_than_days,
                again=again,
                dry_run=not confirm,
            )
        if kek:
            return rotate_kek(spark, target, rewrap=rewrap, dry_run=not confirm)
        return rotate_master_key(
            spark, target, new_key_id, from_catalog=from_catalog, dry_run=not confirm
        )

    also = [] if from_catalog is None else [from_catalog]
    with (
        _shared.errors_told(),
        _targets.opened(targets, also) as spark,
    ):
        code = _targets.confirmed(
            lambda confirm: _targets.each_whole(
                targets, lambda target: rotated(target, confirm), output, _is_pending, not confirm
            ),
            confirm,
            output,
        )
    sys.exit(code)


def _is_pending(found: RotateMasterKeyReport | RotateKekReport | RotateCatalogReport) -> bool:
    return bool(found.done) if isinstance(found, RotateCatalogReport) else found.ok
