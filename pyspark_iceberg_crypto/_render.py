"""How reports look: for a terminal with Rich, for a notebook as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from html import escape
from io import StringIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pyspark_iceberg_crypto._report import FileReport, KeyReport, Status, Step, TableReport
from pyspark_iceberg_crypto.kms import KeyInfo

WIDTH = 110
SHOWN_PROBLEMS = 20


class Shown:
    """A report that prints as text: in a terminal with colours, as a string without."""

    def __rich__(self) -> RenderableType:
        return layout(self)

    def __str__(self) -> str:
        return text(layout(self))


@singledispatch
def layout(found: object) -> RenderableType:
    """Lay out a report for a terminal."""
    raise TypeError(f"{type(found).__name__} is no report")


def text(renderable: RenderableType) -> str:
    """Return what a terminal would show, without colours."""
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, legacy_windows=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def size(count: int) -> str:
    """Say a number of bytes the way people read it."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def verdict(report: TableReport) -> str:
    """Say in one line what was found."""
    files = _count(report.file_count, "file")
    if report.ok:
        return f"all {files} of {report.table} are encrypted (master key {report.key_id!r})"
    if report.key_id is None:
        return f"{report.table} is not encrypted ({files} checked)"
    problems = _count(report.problem_count, "problem")
    return f"{problems} found in {files} of {report.table} (master key {report.key_id!r})"


def metadata(report: TableReport) -> str:
    """Say in one line whether the metadata that names the files is authenticated."""
    word = "is" if report.metadata_authenticated else "is not"
    return f"its metadata {word} authenticated: {report.metadata_authentication}"


@layout.register
def report(found: TableReport) -> RenderableType:
    """Lay out a report: counts, the verdict, the problems with their hints."""
    style, mark = ("bold green", "✓") if found.ok else ("bold red", "✗")
    reach = "all snapshots" if found.all_snapshots else "current snapshot"
    scope = f"  {reach}, {size(found.byte_count)}, {found.seconds:.1f} s"
    parts: list[RenderableType] = [_counts(found)] if found.counts else []
    parts += [Text(f"{mark} {verdict(found)}", style), Text(scope, "dim")]
    parts.append(Text(f"  {metadata(found)}", "dim" if found.metadata_authenticated else "yellow"))
    for problem in found.problems[:SHOWN_PROBLEMS]:
        lines = Text.assemble(("✗ ", "red"), (problem.kind, "bold"), "  ", problem.path)
        lines.append(f"\n{problem.problem}")
        if problem.hint:
            lines.append("\nhint: ", "yellow").append(problem.hint)
        parts.append(Padding(lines, (1, 0, 0, 2)))
    if left := _left(found):
        parts.append(Text(f"\n  and {left} more; report.files has each file"))
    return Group(*parts)


def _counts(found: TableReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("kind")
    table.add_column("magic")
    table.add_column("files", justify="right")
    table.add_column("bytes", justify="right")
    for count in found.counts:
        style, word = ("green", "encrypted") if count.encrypted else ("red", "PLAINTEXT")
        table.add_row(
            Text(word, style),
            Text(count.kind),
            Text(count.magic, style),
            f"{count.files:,}",
            f"{count.bytes:,}",
        )
    return table


def report_html(found: TableReport) -> str:
    """Lay out a report for a notebook. Every text that comes from a table is escaped."""
    colour = "green" if found.ok else "firebrick"
    rows = "".join(
        f"<tr><td style='color:{'green' if count.encrypted else 'firebrick'}'>"
        f"{'encrypted' if count.encrypted else 'PLAINTEXT'}</td>"
        f"<td>{escape(count.kind)}</td><td><code>{escape(count.magic)}</code></td>"
        f"<td>{count.files:,}</td><td>{count.bytes:,}</td></tr>"
        for count in found.counts
    )
    problems = "".join(
        f"<li><b>{escape(problem.kind)}</b> <code>{escape(problem.path)}</code><br>"
        f"{escape(problem.problem)}{_hint_html(problem.hint)}</li>"
        for problem in found.problems[:SHOWN_PROBLEMS]
    )
    left = _left(found)
    more = f"<p>and {left} more; report.files has each file</p>" if left else ""
    return (
        f"<div><p style='color:{colour};font-weight:bold'>"
        f"{'✓' if found.ok else '✗'} {escape(verdict(found))}</p>"
        f"<p>{escape(metadata(found))}</p>"
        "<table><thead><tr><th></th><th>kind</th><th>magic</th><th>files</th><th>bytes</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>{f'<ul>{problems}</ul>' if problems else ''}{more}</div>"
    )


def _hint_html(hint: str) -> str:
    return f"<br><i>hint: {escape(hint)}</i>" if hint else ""


def _left(found: TableReport) -> int:
    """How many problems are not shown."""
    return found.problem_count - min(len(found.problems), SHOWN_PROBLEMS)


@layout.register
def inspection(found: FileReport) -> RenderableType:
    """Lay out what is known of one file."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in found.to_dict().items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        table.add_row(Text(key.replace("_", " "), "dim"), Text(str(shown)))
    style = "bold green" if found.encrypted else "bold red"
    return Group(table, Text("✓ encrypted" if found.encrypted else "✗ not encrypted", style))


_MARKS = {
    Status.OK: ("✓", "green"),
    Status.WARNING: ("!", "yellow"),
    Status.FAILED: ("✗", "red"),
    Status.NOT_REACHED: ("-", "dim"),
}


@layout.register
def diagnosis(found: KeyReport) -> RenderableType:
    """Lay out an examination: a row a step, the verdict."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", "step", "master key", "", "found"):
        table.add_column(column, overflow="fold")
    key_id = None
    for step in found.steps:
        is_next_key = step.key_id != key_id
        if is_next_key:
            table.add_section()
            key_id = step.key_id
        mark, style = _MARKS[step.status]
        told = Text(step.detail)
        if step.hint:
            told.append("\nhint: " if step.detail else "hint: ", "yellow").append(step.hint)
        shown_key = Text(key_id or "" if is_next_key else "", "bold")
        status = Text(step.status.value, style)
        table.add_row(Text(mark, style), Text(step.name), shown_key, status, told)
    return Group(table, _diagnosis_verdict(found))


def _diagnosis_verdict(found: KeyReport) -> Text:
    failed = [step for step in found.steps if step.status is Status.FAILED]
    if failed:
        names = ", ".join(dict.fromkeys(map(_place, failed)))
        return Text(f"✗ {found.catalog} cannot use its master keys: {names} failed", "bold red")
    if not found.complete:
        return Text(f"- {found.catalog} has no fault so far; not everything was checked", "bold")
    keys = dict.fromkeys(step.key_id for step in found.steps if step.key_id is not None)
    names = ", ".join(map(repr, keys))
    return Text(f"✓ {found.catalog} can use {names}", "bold green")


def _place(step: Step) -> str:
    return f"{step.name} of {step.key_id!r}" if step.key_id else step.name


def keys(found: Sequence[KeyInfo]) -> RenderableType:
    """Lay out master keys, one a row."""
    if not found:
        return Text("no keys", "dim")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("key id", "state", "algorithm", "version", "versions", "created"):
        table.add_column(column, overflow="fold")
    for key in found:
        style = "green" if key.state == "enabled" else "yellow"
        versions = "" if key.versions is None else str(key.versions)
        others = map(Text, (key.algorithm, key.version, versions, key.created or ""))
        table.add_row(Text(key.key_id, "bold"), Text(key.state, style), *others)
    return table


def key(found: KeyInfo) -> RenderableType:
    """Lay out all that is known of one master key."""
    table = Table(box=None, show_header=False, pad_edge=False)
    facts = {name: value for name, value in found.to_dict().items() if name != "detail"}
    for name, value in {**facts, **found.detail}.items():
        if value not in (None, ""):
            table.add_row(Text(name.replace("_", " "), "dim"), Text(str(value), overflow="fold"))
    return table


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
