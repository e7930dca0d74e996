"""Which engines can open a table: what `iceberg-crypto readers` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._layout import Facts, Indented
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import listed, visible

_MARKS = {True: ("✓", "green"), None: ("?", "yellow"), False: ("✗", "red")}


@dataclass(frozen=True)
class TableReader:
    """An engine, and whether it can open a table.

    Attributes:
        engine: its name.
        version: the version of which this is known.
        opens: whether it can open the table; null: that is not documented.
        reasons: why it cannot, or may not.
        without: what it leaves out of what the table has.
        tested: whether a test of this project runs the engine; otherwise it is as documented.
    """

    engine: str
    version: str
    opens: bool | None
    reasons: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    tested: bool = True


@dataclass(frozen=True)
class ReadersReport(Report):
    """Which engines can open a table as it is now. It prints as text.

    Attributes:
        table: the table's full name.
        encrypted: whether it is.
        catalog: the type of its catalog.
        kms: the type of its KMS; null: that is not known.
        format_version: Iceberg's format version of the table.
        snapshot_id: the snapshot that was looked at; null: the table is empty.
        uses: what the table has that an engine may lack, and how many files have it; null: the table as a whole.
        readers: the engines; none of a table that is not encrypted, which any engine of Iceberg opens.
    """

    table: str
    encrypted: bool
    catalog: str
    kms: str | None
    format_version: int
    snapshot_id: int | None
    uses: dict[str, int | None]
    readers: list[TableReader]

    @property
    def ok(self) -> bool:
        """Whether an engine can open the table."""
        return not self.encrypted or any(one.opens for one in self.readers)


@_terminal.layout.register
def readers_shown(found: ReadersReport) -> RenderableType:
    """Lay out what the table uses, and the engines."""
    head = Text(visible(found.table), "bold")
    if not found.encrypted:
        said = f"it is not encrypted: engines that read format version {found.format_version} can open it"
        return Group(head, Text(said))
    uses = [name if count is None else f"{name} ({count:,})" for name, count in found.uses.items()]
    facts = [
        ("catalog", found.catalog),
        ("KMS", found.kms or "not known"),
        ("snapshot", str(found.snapshot_id or "none: it is empty")),
        ("uses", listed(uses, len(uses))),
    ]
    told = [(Text(name, "dim"), Text(visible(value))) for name, value in facts]
    shown = [line for one in found.readers for line in _lines(one)]
    return Group(head, Facts(told), Text(""), *shown)


def _lines(one: TableReader) -> Iterator[RenderableType]:
    mark, style = _MARKS[one.opens]
    documented = "" if one.tested else " (as documented, not tested here)"
    yield Text.assemble((f"{mark} ", style), f"{one.engine}, {one.version}", (documented, "dim"))
    # what a closed table would be read without does not matter
    yield from (Indented(Text(note, "dim"), 4) for note in one.reasons or one.without)
