"""``verify``: the proof, for one table or several."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _render
from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.evidence._evidence import TablesReport
from pyspark_iceberg_crypto.session import SESSION_CATALOG
from pyspark_iceberg_crypto.verify import VerifyReport, verify_table


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TABLE...")
@click.option("--all-snapshots", is_flag=True, help="Check the files of all snapshots.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page for auditors.")
@click.option("--json-file", type=click.Path(path_type=Path), help="Write the report as JSON.")
@click.option("--sign-with", metavar="KEY_ID", help="Sign the report with this master key.")
@_shared.catalog_conf_option
@_shared.conf_option
@_shared.output_option
def verify(
    targets: tuple[str, ...],
    all_snapshots: bool,
    html: Path | None,
    json_file: Path | None,
    sign_with: str | None,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Check that every file of each TABLE (such as lake.db.t) is encrypted.

    --catalog-conf is for the catalogs that the TABLEs begin with; for a name of two parts, such as db.t, that
    is Spark's own, spark_catalog.

    Exit code: 0 all files are encrypted, 1 a problem was found, 2 it could not all be checked.
    """
    catalogs = list(dict.fromkeys(map(_catalog_of, targets)))
    with (
        _shared.errors_told(),
        _shared.session(conf, catalogs, _shared.pairs(catalog_conf)) as spark,
    ):
        report = _verify(spark, targets, all_snapshots)
        if sign_with is not None:
            report = report.sign(spark, catalogs[0], sign_with)
        if html is not None:
            _shared.write(html, report.to_html())
        if json_file is not None:
            _shared.write(json_file, report.to_json() + "\n")
        if output == "json":
            click.echo(report.to_json())
        else:
            _shared.show(_render.layout(report))
    sys.exit(report.exit_code)


def _verify(
    spark: SparkSession, targets: tuple[str, ...], all_snapshots: bool
) -> VerifyReport | TablesReport:
    if len(targets) == 1:
        return verify_table(spark, targets[0], all_snapshots=all_snapshots)
    reports: list[VerifyReport] = []
    not_checked = []
    for target in targets:
        try:
            reports.append(verify_table(spark, target, all_snapshots=all_snapshots))
        except Exception as error:  # noqa: BLE001 (of one table; the others are still to be checked)
            message, hint = _shared.told(error)
            not_checked.append({"table": target, "problem": message, "hint": hint})
    return TablesReport(", ".join(targets), reports, not_checked)


def _catalog_of(table: str) -> str:
    """Return the catalog's name in a table's full name, whose parts may be quoted as in SQL."""
    parts = re.findall(r"`(?:[^`]|``)*`|[^.`]+", table)
    return parts[0].strip("`") if len(parts) > 2 else SESSION_CATALOG
