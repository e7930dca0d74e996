"""``keys``: the keys of a table."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.keys import KeysReport, encryption_keys
from pyspark_iceberg_crypto.rotation_many import KeyVersionsReport, key_versions_in_use


@click.command()
@click.argument("target")
@_shared.session_options
def keys(target: str, catalog_conf: tuple[str, ...], conf: tuple[str, ...], output: str) -> None:
    """List the keys of a table (TARGET, such as lake.db.t), and ask its KMS for each.

    Master key, KEKs with their age, keys of manifest lists and statistics, entries that nothing uses; whether
    the KMS gives each key, and whether others than its users could wrap with it. No key is shown. For master
    keys as such, without a table, see `iceberg-crypto kms`.

    Where TARGET is a namespace (lake.db.*) or a catalog (lake): which versions of their master keys its tables need.

    Exit code: 0 every key can be used, 1 a key is overdue or has a problem, 2 the KMS did not answer, or the
    table could not be loaded.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(target), _shared.pairs(catalog_conf)) as spark,
    ):
        if _shared.is_whole(target):
            _show(key_versions_in_use(spark, target), output)
            return
        report = encryption_keys(spark, target)
        _show(report, output)
    if report.kms_problem is not None:
        sys.exit(_shared.UNCHECKED)
    sys.exit(_shared.OK if report.ok else _shared.PROBLEM)


def _show(report: KeysReport | KeyVersionsReport, output: str) -> None:
    if output == "json":
        _shared.show_json(report.to_dict())
    else:
        _shared.show(report)
    if isinstance(report, KeyVersionsReport) and not report.ok:
        sys.exit(_shared.UNCHECKED)
