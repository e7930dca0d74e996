"""How the keys of a table look: one line a master key, KEK and value key, and one for all others of a kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.reports._data import NOT_OF_FILES
from pyspark_iceberg_crypto.reports._layout import Indented, Prose, Records
from pyspark_iceberg_crypto.reports._text import advice, plural, visible

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.verbs.keys import EncryptionKey, KeysReport

COLUMNS = ("", "kind", "key", "age", "snapshots", "bits", "KMS", "notes")
SHOWN_PROBLEMS = 20
NOT_READ = "the keys of manifests and data files are in the manifests, which were not read"


@dataclass(frozen=True)
class Line:
    """One line: its mark, and what stands in each column behind it."""

    mark: str
    cells: tuple[str, ...]


def text(found: KeysReport) -> RenderableType:
    """Lay out the keys for a terminal."""
    styles = {"✓": "green", "!": "yellow", "✗": "red"}
    rows = [
        [Text(line.mark, styles[line.mark]), *(Text(visible(cell)) for cell in line.cells)]
        for line in _lines(found)
    ]
    right = ("age", "snapshots", "bits")
    table = Records(COLUMNS, rows, title=("kind", "key"), right=right)
    good, verdict = _verdict(found)
    parts: list[RenderableType] = [table]
    said = f"{'✓' if good else '✗'} {visible(verdict)}"
    parts.append(Text(said, "bold green" if good else "bold red"))
    scope = Text(f"{visible(_scope(found))}\n{NOT_READ}", "dim")
    parts.append(Indented(Prose(scope, 0)))
    for row in _broken(found)[:SHOWN_PROBLEMS]:
        told = Text.assemble(("✗ ", "red"), (row.kind, "bold"), "  ", visible(row.key_id))
        used = f"{row.used_for}: " if row.used_for else ""
        parts += ["", Indented(told.append(f"\n{advice(f'{used}{row.problem}')}"))]
    if left := _left(found):
        parts += ["", Text(advice(f"  and {left:,} more; report.keys has each key"))]
    return Group(*parts)


def html(found: KeysReport) -> str:
    """Lay out the keys for a notebook. Every text that comes from a table is escaped."""
    colours = {"✓": "green", "!": "darkgoldenrod", "✗": "firebrick"}
    heads = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = "".join(
        f"<tr><td style='color:{colours[line.mark]}'>{line.mark}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in line.cells)
        + "</tr>"
        for line in _lines(found)
    )
    problems = "".join(
        f"<li><b>{escape(row.kind)}</b> <code>{escape(row.key_id)}</code><br>"
        f"{escape(f'{row.used_for}: ' if row.used_for else '')}{escape(row.problem or '')}</li>"
        for row in _broken(found)[:SHOWN_PROBLEMS]
    )
    left = _left(found)
    more = f"<p>and {left:,} more; report.keys has each key</p>" if left else ""
    good, verdict = _verdict(found)
    return (
        f"<div><p style='color:{'green' if good else 'firebrick'};font-weight:bold'>"
        f"{'✓' if good else '✗'} {escape(verdict)}</p>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{escape(_scope(found))}<br>{NOT_READ}</p>"
        f"{f'<ul>{problems}</ul>' if problems else ''}{more}</div>"
    )


def _broken(found: KeysReport) -> list[EncryptionKey]:
    return [row for row in found.keys if row.problem is not None]


def _left(found: KeysReport) -> int:
    """How many problems are not shown."""
    return max(0, len(_broken(found)) - SHOWN_PROBLEMS)


def _verdict(found: KeysReport) -> tuple[bool, str]:
    if found.kms_problem is not None:
        return False, f"the keys of {found.table} could not be checked: the KMS did not answer"
    if problems := len(found.problems):
        return False, f"{plural(problems, 'key')} of {found.table} with a problem"
    return True, f"every key of {found.table} can be used"


def _scope(found: KeysReport) -> str:
    length = found.data_key_length
    bits = f"{int(length) * 8} bits" if length in ("16", "24", "32") else repr(length)
    return f"{found.kms}, {plural(found.kms_calls, 'call')}; new data keys have {bits}"


def _lines(found: KeysReport) -> Iterator[Line]:
    for kind, group in groupby(found.keys, key=lambda row: row.kind):
        rows = list(group)
        if kind in NOT_OF_FILES:  # each has a line of its own
            yield from (_single(found, row) for row in rows)
        else:
            yield _together(kind, rows)


def _single(found: KeysReport, row: EncryptionKey) -> Line:
    answers = {None: "", True: "answers", False: "NO ANSWER"}[row.kms_answers]
    if row.kms_answers is False and found.kms_problem is None:
        answers = "REFUSES"
    notes = []
    if row.overdue:
        notes.append(f"overdue: older than {found.kek_max_age_days} days")
    if row.authenticated_wrapping is False and row.kind == "master":
        notes.append("wrapping is not authenticated")
    mark = "✗" if row.problem or row.overdue else "!" if notes else "✓"
    age = "" if row.age_days is None else plural(row.age_days, "day")
    bits = "" if row.key_length is None else str(row.key_length * 8)
    cells = (row.kind, row.key_id, age, f"{row.snapshots:,}", bits, answers)
    return Line(mark, (*cells, "; ".join(notes)))


def _together(kind: str, rows: list[EncryptionKey]) -> Line:
    lengths = sorted({row.key_length * 8 for row in rows if row.key_length is not None})
    snapshots = sum(row.snapshots for row in rows)
    note = "used by nothing" if kind == "dead" else ""
    mark = "✗" if any(row.problem for row in rows) else "!" if note else "✓"
    bits = ", ".join(map(str, lengths))
    return Line(mark, (kind, plural(len(rows), "key"), "", f"{snapshots:,}", bits, "", note))
