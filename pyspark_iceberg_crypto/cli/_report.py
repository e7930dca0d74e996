"""``report``: reports that were kept as JSON."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Group
from rich.text import Text

from pyspark_iceberg_crypto.cli import _help, _python_alone, _session, _shared
from pyspark_iceberg_crypto.errors import TamperedError
from pyspark_iceberg_crypto.evidence._evidence import TableEvidence, VerifyTablesReport
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._layout import hinted
from pyspark_iceberg_crypto.reports._text import advice, visible
from pyspark_iceberg_crypto.schemas import report_schema
from pyspark_iceberg_crypto.verbs.kept_reports import check_report


@click.group(cls=_help.Group)
def report() -> None:
    """Check reports that `verify --sign-with` signed, and print their JSON schema."""


@report.command(cls=_session.SessionCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--key-id",
    help="The master key that must have signed it. Default: any that the catalog allows.",
)
@click.option(
    "--catalog", default="lake", show_default=True, help="The catalog whose KMS has the key."
)
@_python_alone.option
@click.option(
    "--html", type=click.Path(path_type=Path), help="Write its page, made from the checked report."
)
def check(
    file: Path,
    key_id: str | None,
    catalog: str,
    html: Path | None,
    output: str,
    without_spark: bool,
) -> None:
    """Check that the report in FILE (JSON) is as it was signed.

    A genuine report does not mean that its table is encrypted: read what it says.

    \b
    Example:
      iceberg-crypto report check report.json --key-id audit

    Exit codes: 0 it is genuine, 1 it is not, 2 it could not be checked: it is not signed, or the KMS does not answer,
    64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    opened: Any = nullcontext() if without_spark else _session.session(catalog)
    with _shared.errors_told(), opened as spark:
        try:
            if without_spark:
                found = _python_alone.check_report(catalog, file, key_id)
            else:
                found = check_report(spark, catalog, file, key_id)
        except TamperedError as error:
            _not_genuine(error, output)
        if html is not None:
            _shared.write(html, found.to_html())
        _show(found, output)


@report.command()
def schema() -> None:
    """Print the JSON schema (2020-12) of reports."""
    _shared.show_json(report_schema())


def _not_genuine(error: TamperedError, output: str) -> NoReturn:
    if output == "json":
        _shared.show_json({"genuine": False, "problem": error.message, "hint": error.hint})
    else:
        _shared.show(hinted(Text(f"✗ {advice(error.message)}", "bold red"), error.hint))
    sys.exit(_shared.PROBLEM)


def _show(found: TableEvidence | VerifyTablesReport, output: str) -> None:
    signature = found.signature or {}
    if output == "json":
        told = {name: signature.get(name) for name in ("key_id", "algorithm", "signed_at")}
        _shared.show_json({"genuine": True, **told, "report": found.to_dict()})
        return
    by = f"signed with master key {signature.get('key_id')!r} at {signature.get('signed_at')}"
    says = Text("It says:", "dim")
    _shared.show(
        Group(Text(f"✓ genuine: {visible(by)}", "bold green"), says, _terminal.layout(found))
    )
