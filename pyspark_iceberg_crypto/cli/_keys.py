"""``keys``: the keys of tables."""

from __future__ import annotations

import sys

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli import _session, _shared, _targets
from pyspark_iceberg_crypto.verbs.keys import KeysReport, encryption_keys
from pyspark_iceberg_crypto.verbs.rotation_many import KeyVersionsReport, key_versions_in_use


@_session.command()
@_targets.targets
def keys(targets: tuple[str, ...], output: str) -> None:
    """List the keys of tables, and ask the KMS for each.

    For a table (lake.db.t), these are the master key, KEKs with their age, keys of manifest lists and statistics, and
    entries that nothing uses; whether the KMS gives each key, and whether anyone but its users could wrap with it. No
    key is shown. For master keys without a table, see `iceberg-crypto kms`.

    For a namespace (lake.db.*) or a catalog (lake), these are the versions of master keys that its tables need.

    \b
    Examples:
      iceberg-crypto keys lake.db.t
      iceberg-crypto keys lake --output json

    Exit codes: 0 every key can be used, 1 a key is overdue or has a problem, 2 the KMS did not answer, or the
    table could not be loaded, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)

    def ask(target: str) -> KeysReport | KeyVersionsReport:
        if _names.is_whole(target):
            return key_versions_in_use(spark, target)
        return encryption_keys(spark, target)

    with _shared.errors_told(), _targets.opened(targets) as spark:
        code, _ = _targets.each_whole(targets, ask, output)
    sys.exit(code)
