"""How reports look in a terminal, with Rich. As HTML: `evidence`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from io import StringIO
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.kms import KeyInfo
from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._data import Problem, TableReport
from pyspark_iceberg_crypto.reports._layout import (
    Facts,
    Indented,
    Prose,
    Records,
    Screen,
    hint,
    hinted,
)
from pyspark_iceberg_crypto.reports._text import advice, visible

WIDTH = 110
SHOWN_PROBLEMS = 20
_STYLES = {"good": "green", "bad": "red", "wrong": "red", "open": "yellow", "plain": "dim"}


class Shown:
    """A report that prints as text: in a terminal with colours, as a string without."""

    def __rich__(self) -> RenderableType:
        return layout(self)

    def __str__(self) -> str:
        return text(layout(self))


@singledispatch
def layout(found: object) -> RenderableType:
    """Lay out a report for a terminal."""
    raise TypeError(f"{type(found).__name__} is not a report")


def text(renderable: RenderableType) -> str:
    """Return what a terminal would show, without colours."""
    out = StringIO()
    Screen(file=out, width=WIDTH, color_system=None, legacy_windows=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def left(table: str, problem: str, hint: str) -> RenderableType:
    """Lay out a table, or a namespace, to which something was not done."""
    return hinted(Text(f"✗ {visible(table)}: {advice(problem)}", "red"), hint)


def all_left(found: Sequence[Mapping[str, str]]) -> Iterator[RenderableType]:
    """Lay out the tables and namespaces to which something was not done, and each hint once."""
    shown = found[:SHOWN_PROBLEMS]
    rows = [
        [Text("✗", "red"), Text(visible(one["table"])), Text(advice(one["problem"]), "red")]
        for one in shown
    ]
    if rows:
        yield Records(("", "table", "problem"), rows, title=("table",))
    yield from not_shown(len(found) - len(shown), "report.left has them")
    yield from map(hint, dict.fromkeys(one["hint"] for one in shown if one["hint"]))


def not_shown(count: int, where: str) -> Iterator[RenderableType]:
    """Lay out how many are not shown, if there are any, and where they are."""
    if count > 0:
        yield Text(advice(f"  and {count:,} more; {where}"))


@layout.register
def report(found: TableReport) -> RenderableType:
    """Lay out a report: counts, the verdict, the problems with their hints, what could not be checked."""
    known = _words.kind(found.exit_code)
    style = f"bold {_STYLES[known]}"
    counts: list[RenderableType] = [_counts(found)] if found.counts else []
    verdict = Text(f"{_words.mark(known)} {advice(_words.verdict(found))}", style)
    return Group(*counts, verdict, _under(_words.scope(found), "dim"), *findings(found))


def findings(found: TableReport) -> Iterator[RenderableType]:
    """Lay out which state of the table it was, the problems, and what could not be checked."""
    if plaintext := _words.plaintext(found):
        yield _under(advice(plaintext), "bold red")
    authenticated = "dim" if found.metadata_authenticated else "yellow"
    if metadata := _words.metadata(found):
        yield _under(visible(metadata), authenticated)
    yield from (_under(line, "dim") for line in _evidence(found))
    yield from _problems(found.wrong, found.problem_count, "bad", "and {:,} more")
    if found.unchecked_count:
        said = "Could not be checked, so nothing is known about them:"
        yield Text(f"\n{said}", "bold yellow")
        more = "and {:,} more not checked"
        yield from _problems(found.unchecked, found.unchecked_count, "open", more)


def _under(line: str, style: str) -> Indented:
    """A line below the verdict."""
    return Indented(Prose(Text(line, style), 0))


def _evidence(found: TableReport) -> list[str]:
    """Which state of the table it was, in a line or two; JSON and page have all of it."""
    lines = []
    if found.table_uuid or found.current_snapshot_id is not None:
        ids = [("table", found.table_uuid), ("snapshot", found.current_snapshot_id)]
        lines.append(", ".join(f"{name} {value}" for name, value in ids if value is not None))
    if found.metadata_location:
        lines.append(f"metadata {found.metadata_location.rpartition('/')[2]}")
    if found.signature:
        lines.append(f"signed with master key {found.signature.get('key_id')!r}")
    return [visible(line) for line in lines]


def _problems(
    listed: Sequence[Problem], count: int, known: str, more: str
) -> Iterator[RenderableType]:
    shown = listed[:SHOWN_PROBLEMS]
    for problem, following in zip_longest(shown, shown[1:]):
        lines = Text()
        lines.append(f"{_words.mark(known)} ", _STYLES[known]).append(problem.kind, "bold")
        lines.append(f"  {visible(problem.path)}\n{visible(problem.problem)}")
        if problem.hint and (following is None or following.hint != problem.hint):
            lines.append("\n").append_text(hint(problem.hint))
        yield Text()
        yield Indented(lines)
    left = count - min(len(listed), SHOWN_PROBLEMS)
    if left > 0:
        yield Text()
        yield Text(advice(f"  {more.format(left)}; report.files has each file"))


def _counts(found: TableReport) -> Records:
    rows = [
        [
            Text(part.word, _STYLES[part.state]),
            Text(visible(part.count.kind)),
            Text(part.count.magic or "-", _STYLES[part.state]),
            Text(f"{part.files:,}"),
            Text(f"{part.bytes:,}"),
        ]
        for part in _words.parts_of(found)
    ]
    columns = ("", "kind", "magic", "files", "bytes")
    return Records(columns, rows, title=("kind",), right=("files", "bytes"))


def keys(found: Sequence[KeyInfo]) -> RenderableType:
    """Lay out master keys, one a row."""
    if not found:
        return Text("no keys", "dim")
    rows = [
        [
            Text(visible(key.key_id), "bold"),
            Text(key.state, "green" if key.state == "enabled" else "yellow"),
            *map(Text, (key.algorithm, key.version)),
            Text("" if key.versions is None else str(key.versions)),
            Text(key.created or ""),
        ]
        for key in found
    ]
    columns = ("key id", "state", "algorithm", "version", "versions", "created")
    return Records(columns, rows, title=("key id",))


def key(found: KeyInfo) -> RenderableType:
    """Lay out all that is known of one master key."""
    facts = {name: value for name, value in found.to_dict().items() if name != "detail"}
    return Facts(
        [
            (Text(name.replace("_", " "), "dim"), Text(visible(value)))
            for name, value in {**facts, **found.detail}.items()
            if value not in (None, "")
        ]
    )
