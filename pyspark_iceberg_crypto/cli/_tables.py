"""``verify`` and ``demo``."""

from __future__ import annotations

import re
import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.session import SESSION_CATALOG
from pyspark_iceberg_crypto.verify import VerifyReport, verify_table


@click.command()
@click.argument("table")
@click.option("--all-snapshots", is_flag=True, help="Check the files of all snapshots.")
@_shared.catalog_conf_option
@_shared.conf_option
@_shared.output_option
def verify(
    table: str,
    all_snapshots: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Check that every file of TABLE (such as lake.db.t) is encrypted.

    --catalog-conf is for the catalog that TABLE begins with; for one of two parts, such as db.t, that is
    Spark's own, spark_catalog.

    Exit code: 0 all files are encrypted, 1 a problem was found, 2 it could not be checked.
    """
    with (
        _shared.errors_told(),
        _shared.session(conf, _catalog_of(table), _shared.pairs(catalog_conf)) as spark,
    ):
        report = verify_table(spark, table, all_snapshots=all_snapshots)
        _show(report, output)
    sys.exit(_shared.OK if report.ok else _shared.PROBLEM)


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder with the tables and keys.")
def demo(keep: bool) -> None:
    """Encrypt 336,776 real flights, prove it, and try to read them without the key."""
    from pyspark_iceberg_crypto.demo import run

    with _shared.errors_told():
        run(keep=keep)


def _show(found: VerifyReport, output: str) -> None:
    if output == "json":
        _shared.show_json(found.to_dict())
    else:
        _shared.show(found)


def _catalog_of(table: str) -> str:
    """Return the catalog's name in a table's full name, whose parts may be quoted as in SQL."""
    parts = re.findall(r"`(?:[^`]|``)*`|[^.`]+", table)
    return parts[0].strip("`") if len(parts) > 2 else SESSION_CATALOG
