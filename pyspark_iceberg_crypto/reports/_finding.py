"""Something that is wrong with a table: doctor and repair_table find the same."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from pyspark_iceberg_crypto.reports._layout import hint
from pyspark_iceberg_crypto.reports._text import advice, visible


@dataclass(frozen=True)
class TableFinding:
    """Something that is wrong with a table.

    Attributes:
        table: the table's full name; a namespace's where that could not be listed.
        kind: what, such as "key id removed"; the page on repair has them all.
        problem: which key, file or property.
        consequence: what it means for those who use the table.
        hint: what to do; where it is repairable, what that does.
        repairable: whether repair_table can repair it, as far as was looked.
        repaired: whether it did.
    """

    table: str
    kind: str
    problem: str
    consequence: str
    hint: str
    repairable: bool
    repaired: bool

    def lines(self, mark: str, style: str, with_hint: bool = True) -> Text:
        """Lay it out for a terminal."""
        lines = Text.assemble(
            (f"{mark} {visible(self.table)}: {self.kind}: ", style), advice(self.problem)
        )
        if with_hint and self.hint:
            label = "repaired" if self.repaired else "hint"
            lines.append("\n").append_text(hint(self.hint, label))
        return lines
