"""``repair``: what is wrong with a table, and mending it."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.repair import repair_table


@click.command()
@click.argument("table")
@click.option("--yes", is_flag=True, help="Mend what can be mended. Without it nothing is changed.")
@_shared.session_options
def repair(
    table: str, yes: bool, catalog_conf: tuple[str, ...], conf: tuple[str, ...], output: str
) -> None:
    """Say what is wrong with TABLE (such as lake.db.t), which other clients or a crash have left unusable.

    Each finding has a remedy. With --yes, what can be mended is mended in one commit of metadata; nothing is rolled
    back or deleted.

    Exit code: 0 nothing is wrong, or all was mended, 1 findings are left, 2 it could not be looked at.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _shared.catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        report = repair_table(spark, table, yes=yes)
        if output == "json":
            _shared.show_json(report.to_dict())
        else:
            _shared.show(report)
    if not report.complete:
        sys.exit(_shared.UNCHECKED)
    sys.exit(_shared.OK if report.ok else _shared.PROBLEM)
