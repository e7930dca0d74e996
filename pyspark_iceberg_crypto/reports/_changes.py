"""What the operations that change a table have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._text import visible


@dataclass(frozen=True)
class Changed(_terminal.Shown):
    """What was done to a table; it prints as text."""

    table: str
    message: str
    committed: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return asdict(self)


@_terminal.layout.register
def done_shown(found: Changed) -> RenderableType:
    """Lay it out as done, or as not committed."""
    mark, style = ("✓", "bold green") if found.committed else ("·", "bold")
    return Text(f"{mark} {visible(found.table)}: {visible(found.message)}", style)
