"""Pieces of text for terminals of any width: a name, a path or a command is never broken in two."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pyspark_iceberg_crypto.reports._text import advice

# What stays on one line: a command, a statement, or anything else without a space.
_WHOLE = re.compile(
    r"(?:(?<!`)(`+)iceberg-crypto .+?(?<!`)\1(?!`)|(?<=: )iceberg-crypto .*$|CALL [^\s(]+\([^()]*\)|\S)+\s*"
)
_ENDLESS = 100_000


@dataclass(frozen=True)
class Prose:
    """Text with line breaks between words only. What is too long for a line is left to the terminal.

    Attributes:
        text: the text; a line break in it stays.
        hang: how far lines that were broken continue to the right.
    """

    text: Text
    hang: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split("\n", allow_blank=True):
            at = [] if options.no_wrap else self._breaks(line.plain, options.max_width)
            for number, piece in enumerate(line.divide(at)):
                piece.rstrip()
                shown = Text(" " * self.hang * bool(number), no_wrap=True, overflow="ignore")
                yield shown.append_text(piece)

    def _breaks(self, line: str, width: int) -> list[int]:
        found: list[int] = []
        used = len(line) - len(line.lstrip())
        for word in _WHOLE.finditer(line):
            # A mark alone is not left behind on a line.
            if used + cell_len(word[0].rstrip()) > width and used > max(2, self.hang * bool(found)):
                found.append(word.start())
                used = self.hang
            used += cell_len(word[0])
        return found


class Screen(Console):
    """A console on which all text is `Prose`, and nothing is cut off, and which works on without a reader."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *shown: Any, **options: Any) -> None:
        """Print as Rich does."""
        super().print(*shown, **{"crop": False, **options})

    def on_broken_pipe(self) -> None:
        """Continue with what is under way; Rich would end the program, with the code of a problem that was found."""
        drop(self.file)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as Rich does."""
        if isinstance(renderable, Text) and renderable.no_wrap is None and renderable.end == "\n":
            renderable = renderable if (options or self.options).no_wrap else Prose(renderable)
        return super().render(renderable, options)


def drop(stream: IO[str]) -> None:
    """Let go of what is still printed to a stream whose reader has gone, such as `head`, which has seen enough."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


@dataclass(frozen=True)
class Indented:
    """Anything, further to the right. Rich's padding would cut off what is too long for a line."""

    shown: RenderableType
    by: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        within = options.update(width=max(1, options.max_width - self.by))
        for line in Segment.split_lines(console.render(self.shown, within)):
            yield Segment(" " * self.by)
            yield from line
            yield Segment.line()


@dataclass(frozen=True)
class Records:
    """A table; where it is wider than the terminal, a paragraph for each row.

    Attributes:
        columns: their heads.
        rows: what stands in each column.
        title: the columns that name a row.
        right: those with numbers.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Text]]
    title: Sequence[str]
    right: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in self.columns:
            table.add_column(
                column, no_wrap=True, justify="right" if column in self.right else "left"
            )
        for row in self.rows:
            table.add_row(*row)
        yield from _if_it_fits(table, list(map(self._paragraph, self.rows)), console, options)

    def _paragraph(self, row: Sequence[Text]) -> Prose:
        cells = [one for one in zip(self.columns, row, strict=True) if one[1].plain]
        is_mark = bool(cells) and cells[0][0] == "" and len(cells[0][1]) == 1
        mark = cells.pop(0)[1] + " " if is_mark else Text()
        title = Text("  ").join(text for name, text in cells if name in self.title)
        rest = Text(", ").join(
            Text.assemble((name and f"{name} ", "dim"), text)
            for name, text in cells
            if name not in self.title
        )
        return Prose(mark + title + Text("\n    ") + rest if rest.plain else mark + title, 4)


@dataclass(frozen=True)
class Facts:
    """Names and values, in two columns; where these are wider than the terminal, one after the other."""

    rows: Sequence[tuple[Text, Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, show_header=False, pad_edge=False)
        for row in self.rows:
            table.add_row(*row)
        lines = [Prose(Text.assemble(name, "  ", value)) for name, value in self.rows]
        yield from _if_it_fits(table, lines, console, options)


def _if_it_fits(
    table: Table, otherwise: Sequence[Prose], console: Console, options: ConsoleOptions
) -> Iterator[RenderableType | Segment]:
    """Yield a table at its full width; where a terminal is narrower, something else."""
    width = console.measure(table, options=options.update(max_width=_ENDLESS)).maximum
    if options.no_wrap or width <= options.max_width:
        yield from console.render(table, options.update(width=width, max_width=width))
    else:
        yield from otherwise
        yield Text()


def hint(text: object, label: str = "hint") -> Text:
    """Lay out what to do, in the words of where it is read."""
    return Text.assemble((f"{label}: ", "yellow"), advice(text))


def hinted(problem: Text, text: object) -> Text:
    """Lay out a problem, and below it what to do about it, if that is known."""
    return problem.append("\n").append_text(hint(text)) if text else problem
