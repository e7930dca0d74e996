"""``keys``: the keys of a table."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.keys import encryption_keys


@click.command()
@click.argument("table")
@_shared.session_options
def keys(table: str, catalog_conf: tuple[str, ...], conf: tuple[str, ...], output: str) -> None:
    """List the keys of TABLE (such as lake.db.t), and ask its KMS for each.

    Master key, KEKs with their age, keys of manifest lists and statistics, entries that nothing uses; whether
    the KMS gives each key, and whether others than its users could wrap with it. No key is shown. For master
    keys as such, without a table, see `iceberg-crypto kms`.

    Exit code: 0 every key can be used, 1 a key is overdue or has a problem, 2 the KMS did not answer, or the
    table could not be loaded.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        report = encryption_keys(spark, table)
        if output == "json":
            _shared.show_json(report.to_dict())
        else:
            _shared.show(report)
    if report.kms_problem is not None:
        sys.exit(_shared.UNCHECKED)
    sys.exit(_shared.OK if report.ok else _shared.PROBLEM)
