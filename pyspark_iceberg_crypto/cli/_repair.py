"""``repair``: what is wrong with tables, and its repair."""

from __future__ import annotations

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.verbs.repair import repair_table


@_session.command()
@_targets.targets
@_targets.confirm_option
def repair(targets: tuple[str, ...], confirm: bool, output: str) -> None:
    """Say what is wrong with tables, and repair them.

    This is for tables that other clients or a crash have left unusable. A TARGET is a table (lake.db.t), a namespace
    (lake.db.*) or a catalog (lake). Each finding has a hint. One commit of metadata makes all possible repairs. Nothing
    is rolled back or deleted.

    \b
    Examples:
      iceberg-crypto repair lake.db.t
      iceberg-crypto repair lake.db.t lake.db.u --confirm

    Exit codes: 0 nothing is wrong, or everything was repaired, 1 findings are left, 2 it could not be examined, 64 the
    command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    _targets.changes(
        targets,
        lambda spark, table, confirm: repair_table(spark, table, confirm=confirm),
        confirm,
        output,
        pending=lambda found: any(one.repairable for one in found.left),
    )
