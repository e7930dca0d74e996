"""``cat``: rows of a table, without Spark and without a JVM."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from pyspark_iceberg_crypto.cli import _opening, _session, _shared
from pyspark_iceberg_crypto.cli._options import KmsCommand
from pyspark_iceberg_crypto.reports._text import visible

_OUTPUT = click.Choice(["table", "json", "csv"])


@click.command(cls=KmsCommand)
@click.argument("table", metavar="TABLE")
@click.option("--where", metavar="FILTER", help="Which rows, such as \"day > '2026-01-01'\".")
@click.option("--columns", metavar="A,B", help="Which columns; with commas between them.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many rows."
)
@click.option("--snapshot-id", type=int, help="The table as of this snapshot.")
@click.option("--branch", metavar="NAME", help="The table as of this branch or tag.")
@click.option("--catalog-conf", **_session.CATALOG_CONF)
@click.option("--config", **_session.CONFIG)
@click.option(
    "--output", type=_OUTPUT, default="table", show_default=True, help="How to print the rows."
)
def cat(
    table: str,
    where: str | None,
    columns: str | None,
    limit: int,
    snapshot_id: int | None,
    branch: str | None,
    catalog_conf: tuple[str, ...],
    config: Path | None,
    output: str,
    **kms: Any,
) -> None:
    """Show rows of a table, encrypted or not.

    A TABLE is one of a catalog of the profile (lake.db.t), or the path of a table's folder or metadata file. Neither
    Spark nor a JVM is needed, but PyIceberg: pip install 'pyspark-iceberg-crypto[reader]'. Every file is
    authenticated as it is read.

    \b
    Examples:
      iceberg-crypto cat lake.db.t
      iceberg-crypto cat lake.db.t --where "id > 5" --columns id,note --output csv

    Exit codes: 0 the rows are printed, 1 a file or the metadata is not what was written, or is plaintext, 2 the
    table could not be read, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told(findings=True):
        from pyspark_iceberg_crypto.reader import open_table

        if snapshot_id is not None and branch is not None:
            raise _shared.CommandLineError("--snapshot-id and --branch", "give one of them")
        opened = open_table(**_opening.place(table, _shared.pairs(catalog_conf), config, kms))
        names = tuple(one.strip() for one in columns.split(",")) if columns else ("*",)
        try:
            scan = opened.scan(where or "true", names, snapshot_id=snapshot_id, limit=limit)
            scan = scan.use_ref(branch) if branch is not None else scan
            scan.projection()
            if where:
                _bind(scan)
        except Exception as error:
            raise _shared.CommandLineError(
                f"{table} cannot be read so: {error}",
                "check --where, --columns, --snapshot-id and --branch",
            ) from error
        rows = scan.to_arrow()
        _print(rows.select(names) if {*names} <= {*rows.column_names} else rows, output)


def _bind(scan: Any) -> None:
    """Check the columns of a filter."""
    from pyiceberg.expressions.visitors import bind

    bind(scan.table_metadata.schema(), scan.row_filter, scan.case_sensitive)


def _print(rows: Any, output: str) -> None:
    if output == "json":
        _shared.show_json([_plain(row) for row in rows.to_pylist()])
        return
    cells = [["" if v is None else _text(v) for v in row.values()] for row in rows.to_pylist()]
    if output == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(rows.column_names)
        writer.writerows(cells)
        return
    shown = Table(*(visible(name) for name in rows.column_names))
    for row in cells:
        shown.add_row(*map(visible, row))
    _shared.show(shown)


def _text(value: Any) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else str(plain)


def _plain(value: Any) -> Any:
    """A value as JSON has it: bytes in hexadecimal digits, times by ISO 8601, other numbers as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
