"""What tables need repair: above all, those that a client without encryption wrote in plaintext under a key id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports import _data, _terminal
from pyspark_iceberg_crypto.reports._data import OK, PROBLEM
from pyspark_iceberg_crypto.reports._finding import TableFinding
from pyspark_iceberg_crypto.reports._layout import Indented, Records
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import advice, plural
from pyspark_iceberg_crypto.verbs import _progress

SHOWN = 10
UNCHECKED = "unchecked"
NO_FAILURE = ("unauthenticated", UNCHECKED)


@dataclass(frozen=True)
class DoctorTablesReport(Report):
    """What was found on examining tables. It prints as text.

    Attributes:
        examined: how many Iceberg tables were looked at.
        encrypted: how many of them have a key id.
        others: how many were not looked at: views, and tables that are not Iceberg's.
        counts: how many findings there are of each kind, the worst first.
        findings: the findings in that order, the first thousand of each kind.
        key_ids: master keys that the tables name, the first thousand.
    """

    examined: int
    encrypted: int
    others: int
    counts: dict[str, int]
    findings: list[TableFinding] = field(repr=False)
    key_ids: list[str] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether everything was examined, and nothing needs repair. Metadata may be unauthenticated."""
        return self.exit_code == OK

    @property
    def exit_code(self) -> int:
        """0 it is ok, 1 something needs repair, 2 something could not be examined."""
        if any(count for kind, count in self.counts.items() if kind not in NO_FAILURE):
            return PROBLEM
        return _data.UNCHECKED if self.counts.get(UNCHECKED) else OK


def diagnose_tables(
    spark: SparkSession, names: str | Iterable[str], *, progress: bool | None = None
) -> DoctorTablesReport:
    """Look at tables for what needs repair. What is wrong is in the result, not raised.

    The catalog is one of this project, or stock Iceberg's, in which less can be checked. A table costs a load
    of its metadata and the first bytes of one manifest list, and the KMS no more than a load does. Files of
    data are not looked at: that is `verify_table`'s work.

    Args:
        spark: a session that knows the tables' catalogs.
        names: of catalogs ("lake"), namespaces ("lake.db") or tables ("lake.db.t").
        progress: whether to show progress on stderr; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: no name is given, or an empty one.
        NoSessionError: there is no session, or it was stopped.
    """
    _jvm.require_session(spark)
    asked = [names] if isinstance(names, str) else list(names)
    if not asked or not all(isinstance(name, str) and name.strip() for name in asked):
        raise ConfigurationError(f"{names!r} are not names of tables", "for example 'lake.db'")
    found = _progress.run(spark, ", ".join(asked), progress, "examine_tables", names=asked)
    findings = [TableFinding(**one) for one in found.pop("findings")]
    return DoctorTablesReport(findings=findings, **found)


@_terminal.layout.register
def _(found: DoctorTablesReport) -> RenderableType:
    parts: list[RenderableType] = []
    if found.counts:
        rows = []
        for kind, count in found.counts.items():
            mark, style = _mark(kind)
            means = next(one.consequence for one in found.findings if one.kind == kind)
            rows.append([Text(mark, style), Text(kind, style), Text(f"{count:,}"), Text(means)])
        columns = ("", "kind", "findings", "means")
        parts.append(Records(columns, rows, title=("kind",), right=("findings",)))
    parts.append(_verdict(found))
    for kind, count in found.counts.items():
        parts += _of_one_kind(found, kind, count)
    return Group(*parts)


def _mark(kind: str) -> tuple[str, str]:
    if kind == UNCHECKED:
        return "-", "yellow"
    return ("!", "yellow") if kind in NO_FAILURE else ("✗", "red")


def _verdict(found: DoctorTablesReport) -> Text:
    said = f"{plural(found.examined, 'table')} examined, {found.encrypted:,} with a key id"
    if found.others:
        said += f"; {found.others:,} left out: views, and tables of other formats"
    if found.exit_code == PROBLEM:
        return Text(f"✗ tables need repair ({said})", "bold red")
    if not found.ok:
        return Text(f"- not everything could be examined ({said})", "bold yellow")
    return Text(f"✓ no table needs repair ({said})", "bold green")


def _of_one_kind(found: DoctorTablesReport, kind: str, count: int) -> Iterator[RenderableType]:
    """The first findings of a kind. A hint that differs in the table's name only is shown once."""
    mark, style = _mark(kind)
    shown = [finding for finding in found.findings if finding.kind == kind][:SHOWN]
    last = ""
    for finding in shown:
        general = finding.hint.replace(finding.table, "")
        yield Text()
        yield Indented(finding.lines(mark, style, with_hint=general != last))
        last = general
    if left := count - len(shown):
        yield Text()
        yield Text(advice(f"  and {left:,} more such; report.findings has them"))
