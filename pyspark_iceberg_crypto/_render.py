"""How reports look: for a terminal with Rich, for a notebook as HTML."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.verify import FileInspection, VerifyReport

WIDTH = 110
SHOWN_PROBLEMS = 20


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


def verdict(report: VerifyReport) -> str:
    """Say in one line what was found."""
    files = _count(report.file_count, "file")
    if report.ok:
        return f"all {files} of {report.table} are encrypted (master key {report.key_id!r})"
    if report.key_id is None:
        return f"{report.table} is not encrypted ({files} checked)"
    problems = _count(report.problem_count, "problem")
    return f"{problems} found in {files} of {report.table} (master key {report.key_id!r})"


def report(found: VerifyReport) -> RenderableType:
    """Lay out a report: counts, the verdict, the problems with their hints."""
    style, mark = ("bold green", "✓") if found.ok else ("bold red", "✗")
    reach = "all snapshots" if found.all_snapshots else "current snapshot"
    scope = f"  {reach}, {size(found.byte_count)}, {found.seconds:.1f} s"
    parts: list[RenderableType] = [_counts(found)] if found.counts else []
    parts += [Text(f"{mark} {verdict(found)}", style), Text(scope, "dim")]
    for problem in found.problems[:SHOWN_PROBLEMS]:
        lines = Text.assemble(("✗ ", "red"), (problem.kind, "bold"), "  ", problem.path)
        lines.append(f"\n{problem.problem}")
        if problem.hint:
            lines.append("\nhint: ", "yellow").append(problem.hint)
        parts.append(Padding(lines, (1, 0, 0, 2)))
    left = found.problem_count - min(len(found.problems), SHOWN_PROBLEMS)
    if left > 0:
        parts.append(Text(f"\n  and {left} more; report.files has each file"))
    return Group(*parts)


def _counts(found: VerifyReport) -> Table:
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


def report_html(found: VerifyReport) -> str:
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
        f"{escape(problem.problem)}<br><i>hint: {escape(problem.hint)}</i></li>"
        for problem in found.problems[:SHOWN_PROBLEMS]
    )
    return (
        f"<div><p style='color:{colour};font-weight:bold'>"
        f"{'✓' if found.ok else '✗'} {escape(verdict(found))}</p>"
        "<table><thead><tr><th></th><th>kind</th><th>magic</th><th>files</th><th>bytes</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>{f'<ul>{problems}</ul>' if problems else ''}</div>"
    )


def inspection(found: FileInspection) -> RenderableType:
    """Lay out what is known of one file."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in found.to_dict().items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        table.add_row(Text(key.replace("_", " "), "dim"), Text(str(shown)))
    style = "bold green" if found.encrypted else "bold red"
    return Group(table, Text("✓ encrypted" if found.encrypted else "✗ not encrypted", style))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
