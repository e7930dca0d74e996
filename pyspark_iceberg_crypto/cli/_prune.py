"""``prune``: tables' metadata without keys that nothing needs."""

from __future__ import annotations

from pyspark_iceberg_crypto.cli import _session, _targets
from pyspark_iceberg_crypto.verbs.pruning import prune_encryption_keys


@_session.command()
@_targets.targets
@_targets.confirm_option
def prune(targets: tuple[str, ...], confirm: bool, output: str) -> None:
    """Remove the keys that nothing needs from tables' metadata.

    A TARGET is a table (lake.db.t), a namespace (lake.db.*) or a catalog (lake). For tables that grew under stock
    Iceberg, which keeps the keys of expired snapshots. Commits of this project's catalogs remove them automatically.

    \b
    Examples:
      iceberg-crypto prune lake.db.t
      iceberg-crypto prune 'lake.db.*' --confirm --output json

    Exit codes: 0 it is done, or there was nothing to remove, 2 it could not be done, and nothing was changed, 64 the
    command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    _targets.changes(
        targets,
        lambda spark, table, confirm: prune_encryption_keys(spark, table, dry_run=not confirm),
        confirm,
        output,
        pending=lambda found: found.removed > 0,
    )
