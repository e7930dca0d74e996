"""What the results of all functions that check or change something have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._data import OK, PROBLEM
from pyspark_iceberg_crypto.reports._text import advice, visible


@dataclass(frozen=True)
class Report(_terminal.Shown):
    """What was found or done. It prints as text."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and nothing is left to do."""
        return True

    @property
    def exit_code(self) -> int:
        """The exit code: 0 it is ok, 1 there is a problem, 2 something could not be checked."""
        return OK if self.ok else PROBLEM

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"ok": self.ok, **asdict(self)}


@dataclass(frozen=True)
class Changed(Report):
    """What was done to a table, or would be done. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether it was changed: not by a dry run.
    """

    table: str
    message: str
    committed: bool


@_terminal.layout.register
def done_shown(found: Changed) -> RenderableType:
    """Lay it out as done, or as not committed."""
    mark, style = ("✓", "bold green") if found.committed else ("·", "bold")
    return Text(f"{mark} {visible(found.table)}: {advice(found.message)}", style)
